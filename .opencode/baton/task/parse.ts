import { DEFAULT_ROLE, parseRole, type Role } from "./role.ts"
import { parseTaskID } from "./task-line.ts"

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
