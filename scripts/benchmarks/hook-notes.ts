import { readFileSync } from "node:fs"

/** What the timed plugin writes after each call of the compacting hook. */
export type HookNote = {
  sessionID: string
  ms: number
  /** Characters of the prompt that replaced OpenCode's. */
  prompt: number
  /** Characters of the task block and the facts in it. */
  block: number
}

/** @param file one JSON document a line, written by `inside/timed-compacting.ts` */
export const readNotes = (file: string): HookNote[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as HookNote)
