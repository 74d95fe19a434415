import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { accountSettingsPath, SETTINGS_FILE, type Settings } from "../../../.opencode/baton/host/settings.ts"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { reduceStream, streamLineSchema } from "../live-protocol.ts"
import { eventually } from "./opencode-server.ts"
import type { TestProject } from "./test-project.ts"

export const liveFolder = (directory: string): string => join(directory, ".opencode/state/live")

export const liveFiles = (directory: string): string[] =>
  existsSync(liveFolder(directory)) ? readdirSync(liveFolder(directory)).filter((name) => name.endsWith(".json")) : []

/**
 * A writer that stores the stream as received.
 *
 * @param then shell command after each line
 */
export const recordingWriter = (file: string, then = ":"): string =>
  JSON.stringify(["/bin/sh", "-c", `while read -r line; do printf '%s\\n' "$line" >> '${file}'; ${then}; done`])

export const setLiveState = (project: TestProject, liveState: Partial<Settings["liveState"]>): void =>
  project.write(SETTINGS_FILE, JSON.stringify({ liveState }))

/** Names a writer in the account's settings. */
export const setWriter = (project: TestProject, writer: readonly string[]): void => {
  const path = accountSettingsPath(project.environment)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ liveState: { writer } }))
}

/** Stores the project's stream from the next start on. @returns the stream's file */
export const recordStream = (project: TestProject): string => {
  const file = join(project.directory, "stream.jsonl")
  setWriter(project, JSON.parse(recordingWriter(file)))
  return file
}

/** The lines so far, each checked against the protocol; an incomplete last line is left out. */
export const readStream = (file: string): StreamLine[] =>
  (existsSync(file) ? readFileSync(file, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => streamLineSchema(tool.schema).parse(JSON.parse(line)) as StreamLine)

/** Waits until the stream's state, as JSON, holds this text. */
export const streamedState = (file: string, json: string) =>
  eventually(`${json} in the stream`, () => {
    const state = reduceStream(readStream(file))
    return state && JSON.stringify(state).includes(json) ? state : undefined
  })

/** Removes values that differ between runs: times, ids of sessions, the process. */
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
