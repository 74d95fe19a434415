import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { createFileLock } from "../../host/file-lock.ts"
import { describeError, isNotFound } from "../../host/log.ts"
import { isAlive } from "../../host/process.ts"
import { isObject } from "../protocol.ts"
import { LOCK_ENDING, STATEFILE_ENDING } from "../statefile.ts"

/** A statefile as somebody who watches sees it. */
export type FoundState = {
  readonly file: string
  /** Of the envelope, ISO 8601. */
  readonly ts: string
  readonly state: { readonly [key: string]: unknown }
  /** Whether the process that it tells of is still there. */
  readonly alive: boolean
}

/** Takes what could not be read and why, for a person. */
export type ReportUnreadable = (problem: string) => void

const lockOf = (folder: string, file: string): string =>
  join(folder, `${file.slice(0, -STATEFILE_ENDING.length)}${LOCK_ENDING}`)

/** A pid says nothing from inside another container, where a lock that is kept still says that its writer lives. */
export const isAgentAlive = async (folder: string, file: string, pid: unknown): Promise<boolean> =>
  (typeof pid === "number" && isAlive(pid)) || createFileLock({ path: lockOf(folder, file) }).isTaken()

/**
 * One statefile; undefined when it is gone, half a file of somebody else, not one of ours, or cannot be read, which is
 * reported: the others are there to be seen.
 */
export const readState = async (
  folder: string,
  file: string,
  report: ReportUnreadable,
): Promise<FoundState | undefined> => {
  try {
    const envelope: unknown = JSON.parse(await readFile(join(folder, file), "utf8"))
    if (!isObject(envelope) || !isObject(envelope.state) || typeof envelope.ts !== "string") return undefined
    const { opencode_pid: pid } = envelope.state
    return { file, ts: envelope.ts, state: envelope.state, alive: await isAgentAlive(folder, file, pid) }
  } catch (error) {
    // Neither one that was pruned meanwhile nor one that is not ours is worth a word.
    if (!isNotFound(error) && !(error instanceof SyntaxError)) report(`${join(folder, file)}: ${describeError(error)}`)
    return undefined
  }
}

/**
 * Every readable statefile of a folder, the newest last. A folder that is not there holds none.
 *
 * @throws the file system's own error when the folder itself cannot be read
 */
export const listStates = async (folder: string, report: ReportUnreadable): Promise<FoundState[]> => {
  let names: string[]
  try {
    names = await readdir(folder)
  } catch (error) {
    if (isNotFound(error)) return []
    throw error
  }
  const states = await Promise.all(
    names.filter((name) => name.endsWith(STATEFILE_ENDING)).map((name) => readState(folder, name, report)),
  )
  return states.filter((found) => found !== undefined).sort((a, b) => (a.ts < b.ts ? -1 : 1))
}

/** Removes the statefiles of processes that are gone. @returns their names */
export const pruneStates = async (folder: string, report: ReportUnreadable): Promise<string[]> => {
  const gone = (await listStates(folder, report)).filter(({ alive }) => !alive)
  for (const { file } of gone) {
    await rm(join(folder, file), { force: true })
    await rm(lockOf(folder, file), { force: true })
  }
  return gone.map(({ file }) => file)
}
