import type { Part } from "@opencode-ai/sdk"
import { collectUserText, OWN_COMMAND_TEXT, splitLines } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { cutText } from "../host/text.ts"
import { idsIn, tasksTakenUp } from "./naming.ts"

/** `opencode run "a b"` sends an argument that has a blank as `"a b"`; `$(cat file)` may add a byte order mark. */
const OPENING = /^\uFEFF?"?\uFEFF?/

/** Undoes the quoting of `opencode run "a b"`: quotes around the argument, a backslash before each inner one. */
export const unquoteArgument = (text: string): string => {
  const trimmed = text.trim()
  const inner = trimmed.slice(1, -1)
  const isQuoted = trimmed.length > 1 && trimmed.startsWith('"') && trimmed.endsWith('"')
  if (!isQuoted || inner.replaceAll('\\"', "").includes('"')) return text
  return inner.replaceAll('\\"', '"')
}

/**
 * The lines of a user's text without the quote that `opencode run` puts before the first. Its closing quote stays, since it
 * can end any line (stdin follows on the next).
 */
const userLines = (text: string): string[] => splitLines(text.replace(OPENING, ""))

/** Removes trailing blanks and the closing quote of `opencode run`. */
const trimLineEnd = (line: string): string => {
  const trimmed = line.trimEnd()
  return trimmed.endsWith('"') ? trimmed.slice(0, -1).trimEnd() : trimmed
}

/** CommonMark's fences: three or more of one mark, indented by at most three; a closing fence has nothing after it. */
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)/s

/** @returns the fence that is open after the line, `""` for none */
export const fenceAfter = (line: string, open: string): string => {
  const [, mark = "", rest = ""] = FENCE.exec(line) ?? []
  if (mark === "") return open
  if (open === "") return mark.startsWith("`") && rest.includes("`") ? "" : mark
  const closes = mark.startsWith(open) && trimLineEnd(rest) === ""
  return closes ? "" : open
}

/** Puts a text into a fence that it cannot close, so that nothing in it counts; no line of it is a `Task:` line either. */
export const fenced = (text: string): string => {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = "`".repeat(longest + 1)
  return `${fence}text\n${text.trim().replaceAll(/^(?=Task:)/gm, " ")}\n${fence}`
}

// The `Task:` line, by which a text names a task (docs/prompts.md).
//
// A wrong task is worse than none, because its record is then overwritten. So a line counts only in the form of the role
// prompts and at the first column: quoted lines have an indent, a `> ` or a list mark.

/** Letters are spelled out because `i` together with `u` accepts look-alikes such as U+017F. */
const TASK_LINE = /^Task:[ \t\u00a0]*([A-Za-z]{2,})-([0-9A-Fa-f]{4,12})(?![\p{L}\p{M}\p{N}_]|[-./][\p{L}\p{N}_])/u

/** prog's prefixes of tasks and epics. No word of any language starts with `ts-`. */
const PROG_PREFIXES: ReadonlySet<string> = new Set(["ts", "ep"])

/** Any other id on a `Task:` line may be another tracker's, as PROJ-1234 is. */
const isProgID = (taskID: string): boolean => PROG_PREFIXES.has(taskID.slice(0, taskID.indexOf("-")))

/** prog stores ids in lower case and compares them exactly, so Baton keeps only that form. */
const canonicalTaskID = (id: string): string => id.toLowerCase()

/**
 * `re-added`, `de-faced` and `co-decade` look like ids. A hex part without a digit is therefore an id only after one of
 * prog's own prefixes, or if the line has nothing else: `Task: re-added tests` names no task.
 */
const isWordLike = (prefix: string, hex: string): boolean => !PROG_PREFIXES.has(prefix.toLowerCase()) && !/\d/.test(hex)

/** @returns the canonical id that one line names, or undefined; the line has no line end */
const parseTaskLine = (line: string): string | undefined => {
  const [matched, prefix, hex] = TASK_LINE.exec(line) ?? []
  if (matched === undefined || prefix === undefined || hex === undefined) return undefined
  if (isWordLike(prefix, hex) && trimLineEnd(line).length > matched.length) return undefined
  return canonicalTaskID(`${prefix}-${hex}`)
}

const findTaskLine = (text: string, accepts: (taskID: string) => boolean): string | undefined => {
  for (const line of userLines(text)) {
    const taskID = parseTaskLine(line)
    if (taskID !== undefined && accepts(taskID)) return taskID
  }
  return undefined
}

/**
 * Finds the first line of a user's text that has the form of a `Task:` line, inside a code fence or not.
 *
 * A message pasted without `> ` cannot be distinguished from the user's own words; it loses, since it comes after the user's
 * line. Linear in the length of the text.
 *
 * @param text user-authored text, as `collectUserText` gives it
 */
export const parseTaskID = (text: string): string | undefined => findTaskLine(text, () => true)

/** The roles of agents; each has a prompt file `prompts/<role>.md`. */
export const ROLES = ["worker", "planner"] as const

export type Role = (typeof ROLES)[number]

export const DEFAULT_ROLE: Role = "worker"

/** `# Planner` or `# Planner Agent` and nothing else: `# Planner for the release` is the title of a document. */
const ROLE_HEADING = /^#[ \t]+(Worker|Planner)(?:[ \t]+[Aa]gent)?(?:[ \t]+#+)?$/

/** @returns the role in one line's heading, or undefined; ignores fences */
const parseRoleHeading = (line: string): Role | undefined => {
  const title = ROLE_HEADING.exec(trimLineEnd(line))?.[1]?.toLowerCase()
  return ROLES.find((role) => role === title)
}

/**
 * Finds the role in a user's text: its first role heading at the start of a line and outside code fences. Undefined if there
 * is none. Linear in the length of the text.
 *
 * @param text user-authored text, as `collectUserText` gives it
 */
export const parseRole = (text: string): Role | undefined => {
  let fence = ""
  for (const line of userLines(text)) {
    const role = fence === "" ? parseRoleHeading(line) : undefined
    if (role !== undefined) return role
    fence = fenceAfter(line, fence)
  }
  return undefined
}

export type ParsedTask = {
  readonly taskID: string
  readonly role: Role
  /** True if a heading states the role; otherwise it is the default, and no protocol is requested. */
  readonly hasRoleHeading: boolean
}

const statedRole = (text: string): Omit<ParsedTask, "taskID"> => {
  const role = parseRole(text)
  return { role: role ?? DEFAULT_ROLE, hasRoleHeading: role !== undefined }
}

/**
 * Reads task and role from a user's text. The contract with the prompts: docs/prompts.md.
 *
 * @param text user-authored text, as `collectUserText` gives it; synthetic, assistant and tool text must not be in it
 * @returns undefined when no line names a task by an id of prog's; the id is in lower case
 */
export const parseTask = (text: string): ParsedTask | undefined => {
  const taskID = findTaskLine(text, isProgID)
  return taskID === undefined ? undefined : { taskID, ...statedRole(text) }
}

/** The shortest message that sets the task, as `parseTask` reads it. */
export const taskText = ({ taskID, role, hasRoleHeading }: ParsedTask): string => {
  const heading = hasRoleHeading ? `# ${role.charAt(0).toUpperCase()}${role.slice(1)}\n\n` : ""
  return `${heading}Task: ${taskID}`
}

export const setsTask = (parts: readonly Part[]): boolean => parseTask(collectUserText(parts)) !== undefined

// Natural spellings: a line of the user's that only names a task, as `Task ts-b54507`, or a sentence that takes one up (naming.ts).
// A program writes the exact form; a natural one counts only if the ledger knows the id, since ids stand in pasted text, too.

/** A longer line is prose. */
const MAX_NAMING_CHARACTERS = 80
/** Lines of wrapped prose are at least as long, except for the last. */
const WRAPPED_CHARACTERS = 40

/** prog's own prefixes only, so that no word is an id. Without `u`, for the sake of look-alikes (see TASK_LINE). */
const PROG_ID = "(?<id>(?:ts|ep)-[0-9a-f]{4,12})"

const LABEL =
  "(?:(?:(?:your|the) )?(?:task|epic)(?: id)?(?: is |(?<sign> ?[:\uFF1A=]) ?| )|" +
  "(?:aufgabe|tâche|tarea|tarefa|задача|任务|任務|タスク|작업|المهمة|कार्य) ?[:\uFF1A=] ?)"
/** Verbs of work that goes on in this session: `review`, `show` or `close` name a task and do not take it up. */
const REQUEST =
  "(?:(?:ok|now|next),? )?(?:(?<asks>(?:can|could) you )?(?:please )?|let['\u2019]s )" +
  "(?:work on|(?:start|begin|continue|resume)(?: (?:with|on|work on|working on))?|keep working on|(?:go|carry) on with|pick up|take|implement|do|fix) " +
  "(?:(?:the )?(?:task|epic) )?"
const NAMING = new RegExp(`^(?:${LABEL}|${REQUEST})${PROG_ID}(?:,? (?:please|now|next))?(?<end>[.!:?]?)$`, "i")
const BARE_ID = new RegExp(`^${PROG_ID}[.!]?$`, "i")

/** The line goes on with a sentence of the line above. */
const isWrappedBehind = (line: string, above: string): boolean =>
  above.length >= WRAPPED_CHARACTERS && /[\p{L}\p{N},]$/u.test(above) && /^\p{Ll}/u.test(line)

/** Removes emphasis, code marks and double blanks. */
const plain = (line: string): string =>
  line
    .replace(/[*`]+/g, "")
    .replace(/[^\S\r\n]+/g, " ")
    .trimEnd()

/** @returns the canonical id if the line names a task and says no more; an indent marks a quotation */
const parseNaming = (line: string, above: string): string | undefined => {
  if (line.length > MAX_NAMING_CHARACTERS) return undefined
  const { id, sign, asks, end } = NAMING.exec(plain(line))?.groups ?? {}
  if (id === undefined || (end === "?" && asks === undefined)) return undefined
  if (sign === undefined && isWrappedBehind(line, above)) return undefined
  return canonicalTaskID(id)
}

export type NaturalTask = ParsedTask & {
  /** The whole message is an id, which may be the answer to a question. */
  readonly isBare: boolean
}

/** @returns the canonical ids that a line outside fences names or takes up */
const namedIn = (line: string, above: string): readonly string[] => {
  const named = parseNaming(line, above)
  return named === undefined ? tasksTakenUp(line, isWrappedBehind(line, above)) : [named]
}

/**
 * Finds the task that a user's text names so that the ledger has to be asked: a line outside code fences and quotations that
 * names it and says no more, a sentence that takes it up, a text that is only an id, or, if there is none of these, a `Task:`
 * line with an id that is not prog's. Different tasks are none. Linear in the text's length.
 *
 * @param text user-authored text, as `collectUserText` gives it
 * @returns undefined when none is named; otherwise one that counts only if the ledger knows it
 */
export const parseNaturalTask = (text: string): NaturalTask | undefined => {
  // Baton's own answer lists titles of tasks, and a title may read like an order.
  if (OWN_COMMAND_TEXT.test(text.trim())) return undefined
  const named = new Set<string>()
  let [fence, above] = ["", ""]
  for (const line of userLines(text)) {
    if (fence === "") for (const taskID of namedIn(trimLineEnd(line), above)) named.add(taskID)
    fence = fenceAfter(line, fence)
    above = line.trim()
  }
  const bareID = BARE_ID.exec(plain(trimLineEnd(text.replace(OPENING, "").trim())))?.groups?.id
  const [first = bareID && canonicalTaskID(bareID), another] = named
  const taskID = first ?? findTaskLine(text, (id) => !isProgID(id))
  if (taskID === undefined || another !== undefined) return undefined
  return { taskID, ...statedRole(text), isBare: bareID !== undefined }
}

/** The most ids that are looked up for one message. */
const MAX_MENTIONED = 3

/** The first ids of prog's in a text, outside code fences and quotations, in lower case. */
export const mentionedTasks = (text: string): string[] => {
  const ids = new Set<string>()
  let fence = ""
  for (const line of userLines(text)) {
    if (fence === "" && !/^\s*>/.test(line)) for (const id of idsIn(line)) ids.add(id)
    fence = fenceAfter(line, fence)
  }
  return [...ids].slice(0, MAX_MENTIONED)
}

/** True for a blank line, too, and for one that names a role. */
export const namesOnlyATask = (line: string): boolean => {
  const text = trimLineEnd(line).trim()
  if (text === "" || parseRoleHeading(text) !== undefined || parseNaming(text, "") !== undefined) return true
  return /^Task:\s*[A-Za-z]{2,}-[0-9A-Fa-f]{4,12}$/.test(text) || BARE_ID.test(plain(text))
}

/** Makes each line that names a task a quotation, so that a model's text in a user's message binds nothing. */
export const quoteTaskLines = (text: string): string =>
  splitLines(text)
    .map((line) => ((parseTask(line) ?? parseNaturalTask(line)) ? ` ${line}` : line))
    .join("\n")

/** In any spelling. */
export const namesTask = (text: string, taskID: string): boolean =>
  (parseTask(text) ?? parseNaturalTask(text))?.taskID === taskID

/** The last line of a role prompt; the user's additions follow it. */
const BRIEF_MARKER = /^<!--[ \t]*baton:brief[ \t]*-->$/

/**
 * Extracts the user's own words from the message that opened a task: everything but the role prompt, which is known from its
 * file and would fill the task block. The role prompt reaches from its heading to the line `<!-- baton:brief -->`.
 *
 * @param text user-authored text, as `collectUserText` gives it
 * @returns the text as typed if it has no role prompt; `""` if it has nothing else
 */
export const extractBrief = (text: string): string => {
  const typed = unquoteArgument(text)
  const lines = userLines(typed)
  const start = lines.findIndex((line) => parseRoleHeading(line) !== undefined)
  const end = lines.findIndex((line, index) => index > start && BRIEF_MARKER.test(trimLineEnd(line)))
  if (start < 0 || end < 0) return typed
  const verbatim = splitLines(typed)
  const [before, after] = [verbatim.slice(0, start), verbatim.slice(end + 1)].map((part) => part.join("\n").trim())
  return [before, after].filter(Boolean).join("\n\n")
}

/** @param isKnown asks the ledger for the id of a natural spelling @returns the newest message that names a task, and those behind it */
export const newestTask = async (
  messages: readonly StoredMessage[],
  isKnown: (taskID: string) => Promise<boolean>,
): Promise<{ task: ParsedTask; since: readonly StoredMessage[] } | undefined> => {
  for (const [at, message] of [...messages.entries()].toReversed()) {
    if (message.info.role !== "user") continue
    const text = collectUserText(message.parts)
    const task = parseTask(text)
    if (task) return { task, since: messages.slice(at) }
    const natural = parseNaturalTask(text)
    // An id alone may have answered a question about the task that is named further back.
    if (natural && !natural.isBare && (await isKnown(natural.taskID)))
      return { task: natural, since: messages.slice(at) }
  }
  return undefined
}

export const oldestUserText = (messages: readonly StoredMessage[]): string | undefined =>
  messages
    .filter(({ info }) => info.role === "user")
    .map(({ parts }) => collectUserText(parts))
    .find((text) => text !== "")

// The name that was meant by one that is not known.

/** Number of edits (a letter added, removed or changed) from one name to the other. */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let line = 0; line < from.length; line++) {
    const next = [line + 1]
    for (let column = 0; column < to.length; column++) {
      const changed = (row[column] ?? 0) + (from[line] === to[column] ? 0 : 1)
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}

/** Longer names are cut: a misspelt name is short. */
const MAX_COMPARED_CHARACTERS = 100

/** The most similar names, the nearest first. @param count how many at most */
export const nearestNames = (name: string, known: readonly string[], count = 3): string[] => {
  const wanted = cutText(name.toLowerCase(), MAX_COMPARED_CHARACTERS)
  const lastSegment = wanted.slice(wanted.lastIndexOf("/") + 1)
  const score = (candidate: string): number => {
    const lower = cutText(candidate.toLowerCase(), MAX_COMPARED_CHARACTERS)
    // `review` means `skill/review`, however many letters they differ in.
    if (lower.slice(lower.lastIndexOf("/") + 1) === lastSegment) return 0
    return distance(wanted, lower)
  }
  return known
    .map((candidate) => ({ candidate, score: score(candidate) }))
    .sort((a, b) => a.score - b.score || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, count)
    .map(({ candidate }) => candidate)
}
