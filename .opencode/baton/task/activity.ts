import { isAbsolute, relative } from "node:path"
import type { Todo } from "@opencode-ai/sdk"
import type { GitState } from "../host/git.ts"
import { pathsToWrite } from "../host/messages.ts"
import { quoted } from "../host/quoted.ts"
import { isRecord } from "../host/schema.ts"
import { redact, redactedLine } from "../host/secrets.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { cutText } from "../host/text.ts"

/** Reads and changes of one file; `byShell` is true if a shell command was seen to change it. */
type FileTrace = { path: string; reads: number; changes: number; byShell: boolean }

/** A command whose last run failed; `exitCode` is null if it was aborted or timed out. */
type FailedCommand = { command: string; exitCode: number | null }

/** The files and failed commands of a session, newest last. Bounded, so that 10,000 messages cost as much as 10. */
export type Activity = {
  files: readonly FileTrace[]
  failures: readonly FailedCommand[]
  /** Number of files dropped from the list. */
  forgottenFiles: number
  /** Paths that tools changed since the last snapshot; the snapshot does not count them again. */
  changedSinceSnapshot: readonly string[]
}

export const MAX_FILES = 300
export const MAX_FAILURES = 8
const MAX_COMMAND_CHARACTERS = 300

export const EMPTY_ACTIVITY: Activity = { files: [], failures: [], forgottenFiles: 0, changedSinceSnapshot: [] }

/** A finished tool call as OpenCode's tool.execute.after gives it. */
export type ToolUse = { tool: string; args: unknown; metadata: unknown }

const shownPath = (path: string, root: string): string => {
  const inside = isAbsolute(path) ? relative(root, path) : path
  return inside === "" || inside.startsWith("..") ? path : inside
}

const touch = (activity: Activity, path: string, change: (trace: FileTrace) => FileTrace): Activity => {
  const before = activity.files.find((file) => file.path === path) ?? { path, reads: 0, changes: 0, byShell: false }
  const others = activity.files.filter((file) => file.path !== path)
  const files = [...others, change(before)]
  if (files.length <= MAX_FILES) return { ...activity, files }
  // Drops the oldest file that was only read, else the oldest.
  const victim = Math.max(
    files.findIndex((file) => file.changes === 0),
    0,
  )
  return { ...activity, files: files.toSpliced(victim, 1), forgottenFiles: activity.forgottenFiles + 1 }
}

const withCommand = (activity: Activity, command: string, exitCode: number | null): Activity => {
  const shown = redactedLine(command, MAX_COMMAND_CHARACTERS)
  const others = activity.failures.filter((failure) => failure.command !== shown)
  if (exitCode === 0) return { ...activity, failures: others }
  return { ...activity, failures: [...others, { command: shown, exitCode }].slice(-MAX_FAILURES) }
}

const withChange = (activity: Activity, path: string): Activity => {
  const touched = touch(activity, path, (file) => ({ ...file, changes: file.changes + 1 }))
  return { ...touched, changedSinceSnapshot: [...touched.changedSinceSnapshot, path].slice(-MAX_FILES) }
}

/** @param root the worktree; paths inside it are kept relative to it */
export const afterToolUse = (activity: Activity, use: ToolUse, root: string): Activity => {
  const args = isRecord(use.args) ? use.args : {}
  const { filePath, command } = args
  if (use.tool === "read" && typeof filePath === "string") {
    return touch(activity, shownPath(filePath, root), (file) => ({ ...file, reads: file.reads + 1 }))
  }
  if (use.tool === "bash" && typeof command === "string") {
    const { exit } = isRecord(use.metadata) ? use.metadata : {}
    return withCommand(activity, command, typeof exit === "number" ? exit : null)
  }
  return [...new Set(pathsToWrite(use.tool, args))].map((path) => shownPath(path, root)).reduce(withChange, activity)
}

/**
 * Adds the changes seen by a step's snapshot (OpenCode's `patch` part). Changes that no tool made count as a shell command's.
 *
 * @param files absolute paths, or relative to `root`
 */
export const afterSnapshot = (activity: Activity, files: readonly string[], root: string): Activity => {
  const known = new Set(activity.changedSinceSnapshot)
  let next: Activity = { ...activity, changedSinceSnapshot: [] }
  for (const file of files.slice(0, MAX_FILES)) {
    const path = shownPath(file, root)
    if (known.has(path)) continue
    next = touch(next, path, (trace) => ({ ...trace, changes: trace.changes + 1, byShell: true }))
  }
  return next
}

/** One tool use or snapshot of a stored session. */
export type Step =
  | ({ readonly kind: "tool" } & ToolUse)
  | { readonly kind: "snapshot"; readonly files: readonly string[] }

/** Reads the steps of a stored message. Only what an activity needs is kept, so that a long session's outputs are freed. */
export const stepsOf = ({ info, parts }: StoredMessage): Step[] =>
  info.role === "user"
    ? []
    : parts.flatMap((part): Step[] => {
        if (part.type === "patch") return [{ kind: "snapshot", files: part.files }]
        if (part.type !== "tool" || part.state.status !== "completed") return []
        const { filePath, command, patchText } = part.state.input
        const metadata = { exit: part.state.metadata?.exit }
        return [{ kind: "tool", tool: part.tool, args: { filePath, command, patchText }, metadata }]
      })

/** @param steps oldest first @param root folder that paths are relative to */
export const activityOf = (steps: readonly Step[], root: string): Activity =>
  steps.reduce<Activity>(
    (activity, step) =>
      step.kind === "tool" ? afterToolUse(activity, step, root) : afterSnapshot(activity, step.files, root),
    EMPTY_ACTIVITY,
  )

/** Facts about a session that need no model. */
export type Facts = {
  /** Compactions of this session so far, without a running one. */
  compactions: number
  activity: Activity
  todos: readonly Pick<Todo, "content" | "status">[]
  git?: GitState | undefined
  /** Start of the turn in which the process ended. */
  crashedSince?: string | undefined
}

const SHOWN_FILES = 40
const TODO_CHARACTERS = 160

const isOpen = ({ status }: Pick<Todo, "status">): boolean => status !== "completed" && status !== "cancelled"

const listed = (items: readonly string[], total: number): string =>
  total > items.length ? `${items.join(", ")}, and ${total - items.length} more` : items.join(", ")

/** No path of a system's is longer. */
const PATH_CHARACTERS = 4_096

/** A path as a model or the ledger gets it: in one line, without secrets. */
export const pathWithoutSecrets = (path: string): string =>
  quoted(redact(cutText(path, PATH_CHARACTERS)), PATH_CHARACTERS)

const changedFile = (file: FileTrace): string =>
  `${pathWithoutSecrets(file.path)} ×${file.changes}${file.byShell ? " (by shell)" : ""}`
const readFile = (file: FileTrace): string => `${pathWithoutSecrets(file.path)} ×${file.reads}`

const fileLine = (label: string, files: readonly FileTrace[], show: (file: FileTrace) => string): string[] => {
  if (files.length === 0) return []
  const newestFirst = files.toReversed().slice(0, SHOWN_FILES).map(show)
  return [`- ${label} (${files.length}, newest first): ${listed(newestFirst, files.length)}`]
}

const GIT_LINE = /^- Git: branch (\S.*) at ([0-9a-f]{12})$/m

/** Reads branch and HEAD (12 digits) from a facts block. */
export const parseGitFact = (facts: string): GitState | undefined => {
  const [, branch, head] = GIT_LINE.exec(facts) ?? []
  return branch === undefined || head === undefined ? undefined : { branch, head }
}

export const FACTS_HEADING = "## Facts gathered by program"

/** Renders the facts block without the todos: a heading and a list. */
export const renderFacts = ({
  compactions,
  activity,
  git,
  crashedSince,
}: Partial<Facts> & Pick<Facts, "activity">): string =>
  [
    FACTS_HEADING,
    ...(compactions === undefined ? [] : [`- Compactions of this session so far: ${compactions}`]),
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
    ...(crashedSince === undefined ? [] : [`- The session ended in the middle of the turn of ${crashedSince}`]),
    ...activity.failures
      .toReversed()
      .map(
        ({ command, exitCode }) =>
          `- Failed when last run: \`${command}\` → ${exitCode === null ? "ended early" : `exit ${exitCode}`}`,
      ),
  ].join("\n")

/** Stored todos are those that a person or an agent has not taken off the list. A list of more is no plan. */
const MAX_TODOS = 200

/** Renders the open todos, those in progress first, as many as there is room for. @returns "" for none */
export const renderTodos = (todos: Facts["todos"], fits: (text: string) => boolean = () => true): string => {
  const open = todos.filter(isOpen)
  const shown = [
    ...open.filter(({ status }) => status === "in_progress"),
    ...open.filter(({ status }) => status !== "in_progress"),
  ]
    .slice(0, MAX_TODOS)
    .map(({ status, content }) => `  - [${quoted(status)}] ${redactedLine(content, TODO_CHARACTERS)}`)
  const render = (count: number): string => {
    const left = open.length - count
    const more = left === 0 ? [] : [`  - and ${left} more, for which there is no room`]
    return [`- Open todos (${open.length}):`, ...shown.slice(0, count), ...more].join("\n")
  }
  for (let count = shown.length; count > 0; count--) if (fits(render(count))) return render(count)
  return ""
}
