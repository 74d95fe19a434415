import { appendFileSync, mkdirSync, renameSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"
import type { LogExtra } from "../log.ts"

/** The file keeps as much, and the one before it, too. */
const MAX_BYTES = 2_000_000

/** The folder of OpenCode's own log. */
const logFolder = ({ XDG_DATA_HOME: base = "" }: NodeJS.ProcessEnv = process.env): string =>
  join(isAbsolute(base) ? base : join(homedir(), ".local", "share"), "opencode", "log")

type Entry = { readonly level: string; readonly message: string; readonly extra: LogExtra }

/** Renders an entry as OpenCode 2 renders its own: one line of `key=value`. */
export const renderEntry = ({ level, message, extra }: Entry, at: Date): string => {
  const values = { timestamp: at.toISOString(), level: level.toUpperCase(), message, ...extra }
  const shown = (value: unknown): string =>
    typeof value === "string" && /^[\w.:/-]+$/.test(value) ? value : (JSON.stringify(value) ?? "")
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined)
  return `${pairs.map(([key, value]) => `${key}=${shown(value)}`).join(" ")}\n`
}

/**
 * Writes to `baton.log` beside OpenCode 2's own log, which plugins cannot write to. An entry is on disk when this returns: a run
 * may end right after it.
 */
export const createLogFile = (folder = logFolder(), now = () => new Date()): ((entry: Entry) => void) => {
  const path = join(folder, "baton.log")
  return (entry) => {
    mkdirSync(folder, { recursive: true })
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_BYTES) renameSync(path, `${path}.1`)
    appendFileSync(path, renderEntry(entry, now()), { mode: 0o600 })
  }
}
