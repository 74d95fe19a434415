import { cutText } from "../host/log.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { afterSnapshot, afterToolUse, EMPTY_ACTIVITY } from "../task/activity.ts"
import { collectUserText } from "../task/parse.ts"
import { detect } from "./detect.ts"
import { findSecret } from "./secrets.ts"

/** What was done around a user's message. */
export type Surroundings = {
  /** What the agent had done before, in a few words; `""` for nothing that can be told. */
  readonly answered: string
  /** Files changed before and after it, up to the user's next message, the newest first; relative to the worktree. */
  readonly files: readonly string[]
  /** Whether the agent then changed files, and the user's next message is no objection. */
  readonly confirmed: boolean
}

const SHOWN_FILES = 5
const SHOWN_CHARACTERS = 160
const COMMAND_CHARACTERS = 60

/** The bundle's own records are in the first snapshots of a project that has no .gitignore for them yet. */
const STATE_FOLDER = ".opencode/state/"

const isUsers = ({ info, parts }: StoredMessage): boolean =>
  info.role === "user" && collectUserText(parts).trim() !== ""

const oneLine = (text: string, length: number): string => {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > length ? `${cutText(line, length - 1)}…` : line
}

const changedFiles = (messages: readonly StoredMessage[], root: string): string[] => {
  let activity = EMPTY_ACTIVITY
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type === "patch") activity = afterSnapshot(activity, part.files, root)
    if (part.type !== "tool" || part.state.status !== "completed") continue
    const use = { tool: part.tool, args: part.state.input, metadata: part.state.metadata }
    activity = afterToolUse(activity, use, root)
  }
  return activity.files
    .filter(({ path, changes }) => changes > 0 && !path.startsWith(STATE_FOLDER))
    .map(({ path }) => path)
    .toReversed()
}

const commandsRun = (messages: readonly StoredMessage[]): string[] =>
  messages
    .flatMap(({ parts }) => parts)
    .flatMap((part) => {
      const command = part.type === "tool" && part.tool === "bash" ? part.state.input.command : undefined
      return typeof command === "string" && findSecret(command) === undefined
        ? [oneLine(command, COMMAND_CHARACTERS)]
        : []
    })

const describeWork = (messages: readonly StoredMessage[], root: string): string => {
  const files = changedFiles(messages, root).slice(0, SHOWN_FILES)
  const command = commandsRun(messages).at(-1)
  const done = [
    ...(files.length > 0 ? [`changed ${files.join(", ")}`] : []),
    ...(command === undefined ? [] : [`ran ${command}`]),
  ]
  if (done.length > 0) return oneLine(done.join("; "), SHOWN_CHARACTERS)
  const said = messages.flatMap(({ parts }) => parts).findLast((part) => part.type === "text")
  const text = said?.type === "text" ? oneLine(said.text, SHOWN_CHARACTERS) : ""
  return text === "" || findSecret(text) !== undefined ? "" : `said ${JSON.stringify(text)}`
}

/**
 * Looks around one message of a session. Pure.
 *
 * @param messages oldest first
 * @param root the worktree's folder
 * @returns undefined when the message is not among them
 */
export const lookAround = (
  messages: readonly StoredMessage[],
  messageID: string,
  root: string,
): Surroundings | undefined => {
  const at = messages.findIndex(({ info }) => info.id === messageID)
  if (at < 0) return undefined
  const start = messages.slice(0, at).findLastIndex(isUsers) + 1
  const next = messages.findIndex((message, index) => index > at && isUsers(message))
  const before = messages.slice(start, at)
  const after = messages.slice(at + 1, next < 0 ? undefined : next)
  const changed = changedFiles(after, root)
  const reply = next < 0 ? undefined : messages[next]
  const objects = reply !== undefined && detect(collectUserText(reply.parts)).objects
  const files = [...new Set([...changed, ...changedFiles(before, root)])].filter((path) => !findSecret(path))
  return {
    answered: describeWork(before, root),
    files: files.slice(0, SHOWN_FILES),
    confirmed: changed.length > 0 && !objects,
  }
}
