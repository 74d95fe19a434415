import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

export const liveFolder = (directory: string): string => join(directory, ".opencode/state/live")

export const liveFiles = (directory: string): string[] =>
  existsSync(liveFolder(directory)) ? readdirSync(liveFolder(directory)).filter((name) => name.endsWith(".json")) : []

/** A writer that stores the stream as received. @param then shell command after each line */
export const recordingWriter = (file: string, then = ":"): string =>
  JSON.stringify(["/bin/sh", "-c", `while read -r line; do printf '%s\\n' "$line" >> '${file}'; ${then}; done`])
