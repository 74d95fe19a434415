/** The least a message part must have for its text to be judged. OpenCode's `Part` fits. */
type TextPartLike = {
  readonly type: string
  readonly text?: string | undefined
  readonly synthetic?: boolean | undefined
  readonly ignored?: boolean | undefined
}

/**
 * What the user wrote in one message: its text parts, one below the other, without those that OpenCode or a plugin
 * added (`synthetic`) and those the model never sees (`ignored`). Empty when there are none.
 *
 * Pass the parts of a user message only: an assistant's text parts look the same.
 */
export const collectUserText = (parts: readonly TextPartLike[]): string =>
  parts
    .filter((part) => part.type === "text" && part.synthetic !== true && part.ignored !== true)
    .map((part) => part.text ?? "")
    .join("\n")

/** `opencode run "a b"` sends an argument with a blank in it as `"a b"`; a byte order mark comes with `$(cat file)`. */
const OPENING = /^\uFEFF?"?\uFEFF?/

/** A command's arguments without the quotes that `opencode run` puts around one that has a blank in it. */
export const unquoteArgument = (text: string): string => {
  const [, inner] = /^"((?:\\"|[^"])*)"$/s.exec(text.trim()) ?? []
  return inner === undefined ? text : inner.replaceAll('\\"', '"')
}

/** The lines of a text, whatever their line end: LF, CRLF or CR. */
export const splitLines = (text: string): string[] => text.split(/\r\n|\r|\n/)

/**
 * The lines of a user's text without the quote that `opencode run` puts in front of the first. The quote it puts at
 * the end stays, since it can end any line (stdin follows on the next).
 */
const userLines = (text: string): string[] => splitLines(text.replace(OPENING, ""))

/** A line without trailing blanks and without the quote with which `opencode run` closes its argument. */
const trimLineEnd = (line: string): string => {
  const trimmed = line.trimEnd()
  return trimmed.endsWith('"') ? trimmed.slice(0, -1).trimEnd() : trimmed
}

/** CommonMark's fences: three or more of one mark, indented by at most three; a closing one has nothing after it. */
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)/s

/** @returns the fence that is open after the line, `""` for none */
export const fenceAfter = (line: string, open: string): string => {
  const [, mark = "", rest = ""] = FENCE.exec(line) ?? []
  if (mark === "") return open
  if (open === "") return mark.startsWith("`") && rest.includes("`") ? "" : mark
  const closes = mark.startsWith(open) && trimLineEnd(rest) === ""
  return closes ? "" : open
}

// The `Task:` line: which text names a task (docs/prompts.md).
//
// A wrong task is worse than none, because its record is then written over. So a line counts only in the form the
// role prompts use, at the first column: an indent, a `> ` or a list mark is how people quote somebody else's line.

/** Letters are spelled out because `i` together with `u` lets look-alikes such as U+017F through. */
const TASK_LINE = /^Task:[ \t\u00a0]*([A-Za-z]{2,})-([0-9A-Fa-f]{4,12})(?![\p{L}\p{M}\p{N}_]|[-./][\p{L}\p{N}_])/u

/** The prefixes prog gives to tasks and epics. No word of any language starts `ts-`. */
const PROG_PREFIXES: ReadonlySet<string> = new Set(["ts", "ep"])

/** prog stores ids in lower case and looks them up exactly, so that is the one form Baton keeps. */
const canonicalTaskID = (id: string): string => id.toLowerCase()

/**
 * `re-added`, `de-faced` and `co-decade` have the form of an id. A hex part without a digit is therefore an id only
 * after one of prog's own prefixes, or when the line holds nothing else: `Task: re-added tests` names no task.
 */
const isWordLike = (prefix: string, hex: string): boolean => !PROG_PREFIXES.has(prefix.toLowerCase()) && !/\d/.test(hex)

/** @returns the canonical id that one line names, or undefined; the line comes without its line end */
const parseTaskLine = (line: string): string | undefined => {
  const [matched, prefix, hex] = TASK_LINE.exec(line) ?? []
  if (matched === undefined || prefix === undefined || hex === undefined) return undefined
  if (isWordLike(prefix, hex) && trimLineEnd(line).length > matched.length) return undefined
  return canonicalTaskID(`${prefix}-${hex}`)
}

/**
 * The first line of a user's text that names a task, inside a code fence or not.
 *
 * A message pasted without `> ` in front cannot be told from the user's own words; being later than the own line, it
 * loses. Linear in the length of the text.
 *
 * @param text user-authored text, as `collectUserText` gives it
 */
export const parseTaskID = (text: string): string | undefined => {
  for (const line of userLines(text)) {
    const taskID = parseTaskLine(line)
    if (taskID !== undefined) return taskID
  }
  return undefined
}

/** Which prompt an agent works by; each is a file `prompts/<role>.md`. */
export const ROLES = ["worker", "planner"] as const

export type Role = (typeof ROLES)[number]

/** The role of a task whose text has no role heading. */
const DEFAULT_ROLE: Role = "worker"

/** `# Planner` or `# Planner Agent` and nothing else: `# Planner for the release` is the title of a document. */
const ROLE_HEADING = /^#[ \t]+(Worker|Planner)(?:[ \t]+[Aa]gent)?(?:[ \t]+#+)?$/

/** @returns the role that one line's heading states, or undefined; knows nothing of fences */
const parseRoleHeading = (line: string): Role | undefined => {
  const title = ROLE_HEADING.exec(trimLineEnd(line))?.[1]?.toLowerCase()
  return ROLES.find((role) => role === title)
}

/**
 * The role that a user's text states: its first role heading at the start of a line and outside code fences.
 * Undefined when there is none. Linear in the length of the text.
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

/** What a user's message says about itself: the task it is about, and the role in which to work on it. */
export type ParsedTask = {
  readonly taskID: string
  readonly role: Role
  /** A heading states the role; without one it is the default, and no protocol is asked for. */
  readonly hasRoleHeading: boolean
}

/**
 * Reads task and role out of a user's text. The contract with the prompts: docs/prompts.md.
 *
 * @param text user-authored text, as `collectUserText` gives it; synthetic, assistant and tool text must not be in it
 * @returns undefined when no line names a task; the id is in lower case
 */
export const parseTask = (text: string): ParsedTask | undefined => {
  const taskID = parseTaskID(text)
  if (taskID === undefined) return undefined
  const role = parseRole(text)
  return { taskID, role: role ?? DEFAULT_ROLE, hasRoleHeading: role !== undefined }
}

/** The last line of a role prompt; what the user adds comes after it. */
const BRIEF_MARKER = /^<!--[ \t]*baton:brief[ \t]*-->$/

/** Takes back what `opencode run "a b"` does to its argument: quotes around it, a backslash before each inner one. */
const unwrapRunQuotes = (text: string): string => {
  const trimmed = text.trim()
  const inner = trimmed.slice(1, -1)
  const isWrapped = trimmed.length > 1 && trimmed.startsWith('"') && trimmed.endsWith('"')
  if (!isWrapped || inner.replaceAll('\\"', "").includes('"')) return text
  return inner.replaceAll('\\"', '"')
}

/**
 * The user's own words in the message that opened a task: everything but the role prompt, which is known from its
 * file and would fill the task block. The role prompt reaches from its heading to the line `<!-- baton:brief -->`.
 *
 * @param text user-authored text, as `collectUserText` gives it
 * @returns the text as the user typed it when it has no such span; `""` when it is a role prompt and nothing else
 */
export const extractBrief = (text: string): string => {
  const typed = unwrapRunQuotes(text)
  const lines = userLines(typed)
  const start = lines.findIndex((line) => parseRoleHeading(line) !== undefined)
  const end = lines.findIndex((line, index) => index > start && BRIEF_MARKER.test(trimLineEnd(line)))
  if (start < 0 || end < 0) return typed
  const verbatim = splitLines(typed)
  const [before, after] = [verbatim.slice(0, start), verbatim.slice(end + 1)].map((part) => part.join("\n").trim())
  return [before, after].filter(Boolean).join("\n\n")
}
