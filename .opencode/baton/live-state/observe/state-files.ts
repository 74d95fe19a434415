import { existsSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { createFileLock } from "../../host/file-lock.ts"
import { describeError, isNotFound } from "../../host/log.ts"
import { isAlive } from "../../host/process-identity.ts"
import { listFolder, readOwnText } from "../../host/untrusted.ts"
import { isObject } from "../protocol.ts"
import { CRASHED_ENDING, LOCK_ENDING, STATEFILE_ENDING } from "../statefile.ts"

export type FoundState = {
  readonly file: string
  /** Time of the envelope, ISO 8601. */
  readonly ts: string
  readonly state: { readonly [key: string]: unknown }
  /** True while the process that it describes runs. */
  readonly alive: boolean
}

/** Receives a read error, in words for the user. */
export type ReportUnreadable = (problem: string) => void

const lockOf = (folder: string, file: string): string =>
  join(folder, `${file.slice(0, -STATEFILE_ENDING.length)}${LOCK_ENDING}`)

/** A pid alone means nothing in another container, or once it is in use again: where there is a lock, it decides. */
export const isAgentAlive = async (folder: string, file: string, pid: unknown): Promise<boolean> => {
  const path = lockOf(folder, file)
  if (existsSync(path)) return createFileLock({ path }).isTaken()
  return !file.endsWith(CRASHED_ENDING) && typeof pid === "number" && isAlive(pid)
}

/**
 * Reads one statefile; undefined when it is gone, incomplete, not a statefile, or cannot be read. Only the last is reported, so
 * that the other files are still shown.
 */
export const readState = async (
  folder: string,
  file: string,
  report: ReportUnreadable,
): Promise<FoundState | undefined> => {
  try {
    const envelope: unknown = JSON.parse(await readOwnText(join(folder, file)))
    if (!isObject(envelope) || !isObject(envelope.state) || typeof envelope.ts !== "string") return undefined
    const { opencode_pid: pid } = envelope.state
    return { file, ts: envelope.ts, state: envelope.state, alive: await isAgentAlive(folder, file, pid) }
  } catch (error) {
    // A file that was pruned meanwhile or is not a statefile is not reported.
    if (!isNotFound(error) && !(error instanceof SyntaxError)) report(`${join(folder, file)}: ${describeError(error)}`)
    return undefined
  }
}

/** The names of a folder's statefiles; none in a folder that is not there. @throws the file system's own error for any other */
export const listStatefiles = (folder: string): string[] =>
  listFolder(folder).filter((name) => name.endsWith(STATEFILE_ENDING))

/**
 * Reads every readable statefile of a folder, the newest last. A missing folder has none.
 *
 * @throws the file system's own error when the folder itself cannot be read
 */
export const listStates = async (folder: string, report: ReportUnreadable): Promise<FoundState[]> => {
  const states = await Promise.all(listStatefiles(folder).map((name) => readState(folder, name, report)))
  return states.filter((found) => found !== undefined).sort((a, b) => (a.ts < b.ts ? -1 : 1))
}

/** Removes the statefiles of ended processes. @returns their names */
export const pruneStates = async (folder: string, report: ReportUnreadable): Promise<string[]> => {
  const gone = (await listStates(folder, report)).filter(({ alive }) => !alive)
  for (const { file } of gone) {
    await rm(join(folder, file), { force: true })
    await rm(lockOf(folder, file), { force: true })
  }
  return gone.map(({ file }) => file)
}
