import { type FSWatcher, watch } from "node:fs"
import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { isAbsent } from "../../host/error-code.ts"
import { isAlive } from "../../host/process-table.ts"
import { type FoundState, readState } from "../statefiles.ts"

export type SeenStates = {
  /** The folder that was looked into. */
  readonly folder: string
  /** Statefiles that changed since the look before, and those whose process has ended. */
  readonly changed: readonly FoundState[]
  /** Names of the files that are no more. */
  readonly removed: readonly string[]
}

export type StatefileWatch = { close(): void }

/** A change is looked at this soon when it comes alone … */
const CALM_MS = 20
/** … and changes in quick succession no more often than this. */
export const LOOK_INTERVAL_MS = 250
/** Without any sign from the file system: for folders that are not there yet, and processes that have ended. */
const SWEEP_MS = 2_000

type Known = { readonly stamp: string; found: FoundState | undefined }

const stampOf = async (path: string): Promise<string | undefined> => {
  try {
    const { ino, size, mtimeMs } = await stat(path)
    return `${ino} ${size} ${mtimeMs}`
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

const namesIn = async (folder: string): Promise<string[]> => {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(".json"))
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

/** Looks into one folder of statefiles and reads what has changed since it last did. */
const createLook = (folder: string) => {
  const known = new Map<string, Known>()
  const lookAt = async (name: string): Promise<FoundState | undefined> => {
    const path = join(folder, name)
    const stamp = await stampOf(path)
    if (stamp === undefined) return undefined
    const before = known.get(name)
    if (before?.stamp === stamp) {
      const { found } = before
      if (!found?.alive || isAlive(Number(found.state.opencode_pid))) return undefined
      before.found = { ...found, alive: false }
      return before.found
    }
    const found = await readState(folder, name)
    known.set(name, { stamp, found })
    return found
  }
  return async (): Promise<SeenStates> => {
    const names = await namesIn(folder)
    const changed = await Promise.all(names.map(lookAt))
    const removed = [...known.keys()].filter((name) => !names.includes(name))
    for (const name of removed) known.delete(name)
    return { folder, changed: changed.filter((found) => found !== undefined), removed }
  }
}

/**
 * Watches folders of statefiles. The file system wakes the watch, at the first change only: under load the watcher is
 * closed until the next look, so that a thousand renames a second cost what four looks a second cost.
 *
 * @param onSeen after each look that found anything
 * @param onFailure a folder could not be read; it is tried again
 */
export const watchStatefiles = (
  folders: readonly string[],
  onSeen: (seen: readonly SeenStates[]) => void,
  onFailure: (error: unknown) => void,
): StatefileWatch => {
  const looks = folders.map(createLook)
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let isClosed = false

  const ring = (folder: string): void => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
    if (!isClosed) schedule(Math.max(CALM_MS, lookedAt + LOOK_INTERVAL_MS - performance.now()))
  }

  /** Before the folder is looked into, so that nothing falls between the two. */
  const listen = (folder: string): void => {
    if (watchers.has(folder)) return
    try {
      const watcher = watch(folder, () => ring(folder))
      watcher.on("error", () => ring(folder))
      watchers.set(folder, watcher)
    } catch {
      // Not there yet, or no watcher is to be had: the sweep finds what changes.
    }
  }

  const look = async (): Promise<void> => {
    lookedAt = performance.now()
    for (const folder of folders) listen(folder)
    try {
      const seen = await Promise.all(looks.map((each) => each()))
      if (!isClosed && seen.some(({ changed, removed }) => changed.length + removed.length > 0)) onSeen(seen)
    } catch (error) {
      onFailure(error)
    }
  }

  let looking: Promise<void> | undefined
  let dueAt = Number.POSITIVE_INFINITY
  const schedule = (delayMs: number): void => {
    const at = performance.now() + delayMs
    if (at >= dueAt) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(() => {
      dueAt = Number.POSITIVE_INFINITY
      looking = (looking ?? Promise.resolve()).then(look).then(() => {
        if (!isClosed) schedule(SWEEP_MS)
      })
    }, delayMs)
  }
  schedule(0)

  return {
    close: () => {
      isClosed = true
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}
