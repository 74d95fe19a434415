import type { StoredMessage } from "../../host/sessions.ts"
import { counted } from "../../host/text.ts"

/** The reading of a subagent, as its finished tool calls show it. */
export type Reading = {
  /** Different files. */
  readonly files: number
  readonly searches: number
  readonly commands: number
  /** Files that came with the order. */
  readonly sent: number
}

const SEARCHING: ReadonlySet<string> = new Set(["glob", "grep", "list", "codesearch"])

export const countReading = (messages: readonly StoredMessage[], sent: number): Reading => {
  const done = messages
    .flatMap(({ parts }) => parts)
    .flatMap((part) =>
      part.type === "tool" && part.state.status === "completed" ? [{ tool: part.tool, input: part.state.input }] : [],
    )
  const read = done.filter(({ tool }) => tool === "read").map(({ input }) => input.filePath)
  return {
    files: new Set(read).size,
    searches: done.filter(({ tool }) => SEARCHING.has(tool)).length,
    commands: done.filter(({ tool }) => tool === "bash").length,
    sent,
  }
}

/** "4 files read, 2 searched": the files always, the rest where there is any. */
export const renderReading = ({ files, searches, commands, sent }: Reading): string =>
  [
    `${counted(files, "file")} read`,
    ...(searches === 0 ? [] : [`${searches} searched`]),
    ...(commands === 0 ? [] : [`${counted(commands, "command")} run`]),
    ...(sent === 0 ? [] : [`${sent} sent along`]),
  ].join(", ")
