import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { expect } from "vitest"
import { type StreamLine, streamLineSchema } from "../../.opencode/baton/live-state/protocol.ts"
import { EMPTY_REDUCTION, reduceLine } from "../../.opencode/baton/live-state/state-reducer.ts"

export const liveFolder = (directory: string): string => join(directory, ".opencode/state/live")

export const liveFiles = (directory: string): string[] =>
  existsSync(liveFolder(directory)) ? readdirSync(liveFolder(directory)).filter((name) => name.endsWith(".json")) : []

/** A writer of the test's own, which keeps the stream as it comes. */
export const recordingWriter = (file: string): string => JSON.stringify(["/bin/sh", "-c", `cat >> '${file}'`])

/** The lines so far, each of which must keep the protocol; a line that is still being written is left out. */
export const readStream = (file: string): StreamLine[] =>
  (existsSync(file) ? readFileSync(file, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => streamLineSchema(tool.schema).parse(JSON.parse(line)) as StreamLine)

/** The state that a consumer of these lines holds. */
export const reduceStream = (lines: readonly StreamLine[]) => {
  const reduction = lines.reduce((sum, line) => reduceLine(sum, JSON.stringify(line)), EMPTY_REDUCTION)
  expect(reduction.skipped).toBe(0)
  return reduction.envelope?.state
}

/** A stream without what differs from run to run: times, ids of sessions, the process. */
export const normaliseStream = (lines: readonly StreamLine[]): string =>
  lines
    .map((line) =>
      JSON.stringify(line, (key, value: unknown) => (key === "state_last_updated_at" ? undefined : value))
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME")
        .replaceAll(/\bses_[A-Za-z0-9]+/g, "SESSION")
        .replaceAll(/"opencode_pid":\d+/g, '"opencode_pid":1'),
    )
    .map((line) => `${line}\n`)
    .join("")
