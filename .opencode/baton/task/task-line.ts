/**
 * The `Task:` line: which text names a task (docs/prompts.md).
 *
 * A wrong task is worse than none, because its record is then written over. So a line counts only in the form the
 * role prompts use, at the first column: an indent, a `> ` or a list mark is how people quote somebody else's line.
 */
import { trimLineEnd, userLines } from "./user-text.ts"

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
