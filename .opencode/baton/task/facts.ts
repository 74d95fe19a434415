import type { Todo } from "@opencode-ai/sdk"
import type { GitState } from "../host/git-files.ts"
import type { Activity, FileTrace } from "./activity.ts"

/** What a program can know about a session without asking a model. */
export type Facts = {
  /** Compactions of this session up to now, the running one not counted. */
  compactions: number
  activity: Activity
  todos: readonly Pick<Todo, "content" | "status">[]
  git?: GitState
}

const SHOWN_FILES = 40
const SHOWN_TODOS = 20
const TODO_CHARACTERS = 160

const isOpen = ({ status }: Pick<Todo, "status">): boolean => status !== "completed" && status !== "cancelled"

const listed = (items: readonly string[], total: number): string =>
  total > items.length ? `${items.join(", ")}, and ${total - items.length} more` : items.join(", ")

const changedFile = (file: FileTrace): string => `${file.path} ×${file.changes}${file.byShell ? " (by shell)" : ""}`
const readFile = (file: FileTrace): string => `${file.path} ×${file.reads}`

const fileLine = (label: string, files: readonly FileTrace[], show: (file: FileTrace) => string): string[] => {
  if (files.length === 0) return []
  const newestFirst = files.toReversed().slice(0, SHOWN_FILES).map(show)
  return [`- ${label} (${files.length}, newest first): ${listed(newestFirst, files.length)}`]
}

const GIT_LINE = /^- Git: branch (\S.*) at ([0-9a-f]{12})$/m

/** Branch and HEAD (12 digits) out of a facts block. */
export const parseGitFact = (facts: string): GitState | undefined => {
  const [, branch, head] = GIT_LINE.exec(facts) ?? []
  return branch === undefined || head === undefined ? undefined : { branch, head }
}

/** The facts block: one markdown list under one heading. Never empty, since the count of compactions is always known. */
export const renderFacts = ({ compactions, activity, todos, git }: Facts): string => {
  const open = todos.filter(isOpen)
  const shownTodos = open
    .slice(0, SHOWN_TODOS)
    .map((todo) => `[${todo.status}] ${todo.content.replace(/\s+/g, " ").slice(0, TODO_CHARACTERS)}`)
  return [
    "## Facts gathered by program",
    `- Compactions of this session so far: ${compactions}`,
    ...(git ? [`- Git: branch ${git.branch} at ${git.head.slice(0, 12)}`] : []),
    ...fileLine(
      "Files changed",
      activity.files.filter((file) => file.changes > 0),
      changedFile,
    ),
    ...fileLine(
      "Files read",
      activity.files.filter((file) => file.reads > 0),
      readFile,
    ),
    ...(activity.forgottenFiles > 0 ? [`- Older files no longer listed: ${activity.forgottenFiles}`] : []),
    ...activity.failures
      .toReversed()
      .map(
        ({ command, exitCode }) =>
          `- Failed when last run: \`${command}\` → ${exitCode === null ? "ended early" : `exit ${exitCode}`}`,
      ),
    ...(open.length > 0 ? [`- Open todos (${open.length}): ${listed(shownTodos, open.length)}`] : []),
  ].join("\n")
}
