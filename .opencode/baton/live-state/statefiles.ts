import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { isAbsent } from "../host/error-code.ts"
import { isAlive } from "../host/process-table.ts"
import { isObject } from "./merge.ts"
import { LOCK_ENDING, STATEFILE_ENDING } from "./statefile.ts"

/** A statefile as somebody who watches sees it. */
export type FoundState = {
  readonly file: string
  /** Of the envelope, ISO 8601. */
  readonly ts: string
  readonly state: { readonly [key: string]: unknown }
  /** Whether the process that it tells of is still there. */
  readonly alive: boolean
}

/** One statefile; undefined when it is gone, half a file of somebody else, or not one of ours. */
export const readState = async (folder: string, file: string): Promise<FoundState | undefined> => {
  try {
    const envelope: unknown = JSON.parse(await readFile(join(folder, file), "utf8"))
    if (!isObject(envelope) || !isObject(envelope.state) || typeof envelope.ts !== "string") return undefined
    const { opencode_pid: pid } = envelope.state
    return { file, ts: envelope.ts, state: envelope.state, alive: typeof pid === "number" && isAlive(pid) }
  } catch (error) {
    // Pruned meanwhile, or not one of ours.
    if (isAbsent(error) || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Every readable statefile of a folder, the newest last. A folder that is not there holds none. */
export const listStates = async (folder: string): Promise<FoundState[]> => {
  let names: string[]
  try {
    names = await readdir(folder)
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
  const states = await Promise.all(
    names.filter((name) => name.endsWith(STATEFILE_ENDING)).map((name) => readState(folder, name)),
  )
  return states.filter((found) => found !== undefined).sort((a, b) => (a.ts < b.ts ? -1 : 1))
}

/** Removes the statefiles of processes that are gone. @returns their names */
export const pruneStates = async (folder: string): Promise<string[]> => {
  const gone = (await listStates(folder)).filter(({ alive }) => !alive)
  for (const { file } of gone) {
    await rm(join(folder, file), { force: true })
    await rm(join(folder, `${file.slice(0, -STATEFILE_ENDING.length)}${LOCK_ENDING}`), { force: true })
  }
  return gone.map(({ file }) => file)
}
