import { parseRoleHeading } from "./role.ts"
import { splitLines, trimLineEnd, userLines } from "./user-text.ts"

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
