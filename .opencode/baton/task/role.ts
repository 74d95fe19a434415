import { fenceAfter } from "./code-fence.ts"
import { trimLineEnd, userLines } from "./user-text.ts"

/** Which prompt an agent works by; each is a file `prompts/<role>.md`. */
export const ROLES = ["worker", "planner"] as const

export type Role = (typeof ROLES)[number]

/** The role of a task whose text has no role heading. */
export const DEFAULT_ROLE: Role = "worker"

/** `# Planner` or `# Planner Agent` and nothing else: `# Planner for the release` is the title of a document. */
const ROLE_HEADING = /^#[ \t]+(Worker|Planner)(?:[ \t]+[Aa]gent)?(?:[ \t]+#+)?$/

/** @returns the role that one line's heading states, or undefined; knows nothing of fences */
export const parseRoleHeading = (line: string): Role | undefined => {
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
