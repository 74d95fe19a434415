import { parseRoleHeading } from "./role.ts"
import { trimLineEnd, userLines } from "./user-text.ts"

/** The last line of a role prompt; what the user adds comes after it. */
const BRIEF_MARKER = /^<!--[ \t]*baton:brief[ \t]*-->$/

/**
 * The user's own words in the message that opened a task: everything but the role prompt, which is known from its
 * file and would fill the task block. The role prompt reaches from its heading to the line `<!-- baton:brief -->`.
 *
 * @param text user-authored text, as `collectUserText` gives it
 * @returns the text itself when it has no such span; `""` when it is a role prompt and nothing else
 */
export const extractBrief = (text: string): string => {
  const lines = userLines(text)
  const start = lines.findIndex((line) => parseRoleHeading(line) !== undefined)
  const end = lines.findIndex((line, index) => index > start && BRIEF_MARKER.test(trimLineEnd(line)))
  if (start < 0 || end < 0) return text
  const before = lines.slice(0, start).join("\n").trim()
  const after = lines
    .slice(end + 1)
    .join("\n")
    .trim()
  return [before, after].filter((part) => part !== "" && part !== '"').join("\n\n")
}
