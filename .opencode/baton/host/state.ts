import { randomBytes } from "node:crypto"
import {
  closeSync,
  fsync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { readdir, readFile, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import type { ZodType } from "zod"
import { describeError, isNotFound, type Log } from "./log.ts"
import { ignoreAll } from "./project.ts"
import { loadZod, type Zod } from "./schema.ts"

/** What the name of a half-written file ends in. */
export const TEMPORARY = ".tmp"

const flush = promisify(fsync)

/** A new name outlives a power cut when its folder is on the disk. Where a folder cannot be opened, as on Windows, it is not. */
const flushFolder = async (folder: string): Promise<void> => {
  let file: number | undefined
  try {
    file = openSync(folder, "r")
    await flush(file)
  } catch {
    // The text itself is on the disk.
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Never throws: the error that led here is the one to tell, and what stays is swept later. */
export const removeTemporary = (path: string): void => {
  try {
    rmSync(path, { force: true })
  } catch {
    // Where its folder went, it went too.
  }
}

/**
 * Writes by unique temporary file and rename: a reader sees the old text or the new one, never a half. Only the flush is waited
 * for: each step takes microseconds, and waiting for one costs a turn of OpenCode's event loop, milliseconds while it is busy.
 *
 * @param options `isDurable`: on the disk, not only in its cache, before the old text is gone (default true)
 * @throws the file system's own error (EACCES, EROFS, ENOSPC, …); nothing is left behind then
 */
export const replaceFile = async (
  path: string,
  text: string,
  { mode = 0o666, isDurable = true }: { mode?: number; isDurable?: boolean } = {},
): Promise<void> => {
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`
  try {
    const file = openSync(temporary, "wx", mode)
    try {
      writeFileSync(file, text)
      if (isDurable) await flush(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    if (isDurable) await flushFolder(dirname(path))
  } catch (error) {
    removeTemporary(temporary)
    throw error
  }
}

const OPENCODE_FOLDER = ".opencode"

/** No write takes this long, so that a temporary file of this age is one whose process was killed. */
const ABANDONED_MS = 10 * 60_000

/** Passes have folders of their own, and a server makes many; one that was forgotten is swept again. */
const MAX_SWEPT = 100

/** Removes what killed processes left half-written in a folder. What cannot be removed stays. */
const sweep = (folder: string): void => {
  const removeIfOld = (path: string): void => {
    try {
      if (Date.now() - statSync(path).mtimeMs > ABANDONED_MS) rmSync(path, { force: true })
    } catch {
      // It is gone by now, or nobody may remove it.
    }
  }
  try {
    for (const name of readdirSync(folder)) if (name.endsWith(TEMPORARY)) removeIfOld(join(folder, name))
  } catch {
    // A folder that cannot be listed can be written to all the same.
  }
}

/** Everything the bundle writes at run time lies here, ignored by git. */
export type StateFolder = {
  /** Absolute path of the folder. */
  readonly root: string
  /** Absolute path of something inside it; creates nothing. */
  path(...segments: string[]): string
  /** Makes a folder inside it, for somebody else to write in: ignored by git like the rest. */
  prepare(...segments: string[]): Promise<void>
  /**
   * A reader sees the old text or the new one, never a half. On the disk when it resolves, unless `isDurable` is false: then it
   * outlives this process, however that ends, and may be lost with the power.
   */
  write(path: string, text: string, options?: { isDurable?: boolean }): Promise<void>
}

/**
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws nothing here; `prepare` and `write` reject with the file system's own error (EACCES, EROFS, ENOSPC, …)
 */
export const createStateFolder = (projectRoot: string): StateFolder => {
  const root = join(projectRoot, OPENCODE_FOLDER, "state")
  const swept = new Set<string>()
  const ensure = (folder: string): void => {
    mkdirSync(folder, { recursive: true })
    ignoreAll(root)
    if (swept.has(folder)) return
    if (swept.size >= MAX_SWEPT) swept.clear()
    swept.add(folder)
    sweep(folder)
  }
  return {
    root,
    path: (...segments) => join(root, ...segments),
    prepare: async (...segments) => ensure(join(root, ...segments)),
    write: async (path, text, options = {}) => {
      ensure(dirname(path))
      await replaceFile(path, text, options)
    },
  }
}

/** One JSON file a key, under `.opencode/state/<folder>/<key>.json`. No call throws. */
export type JsonStore<T> = {
  /** The newest value; undefined when there is none, or none that can be read (which is logged). */
  read(key: string): Promise<T | undefined>
  /** What the disk refuses is kept in memory. @returns whether it is on disk */
  write(key: string, value: T): Promise<boolean>
  remove(key: string): Promise<void>
  /** The keys on disk and in memory, sorted. */
  keys(): Promise<string[]>
  /** Whether memory alone has the newest value. */
  isUnsaved(key: string): boolean
}

/** OpenCode's ids are letters, digits and underscores; anything else must not become a path. */
const isFileName = (key: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(key)

const JSON_ENDING = ".json"

export const createJsonStore = <T>(deps: {
  state: Pick<StateFolder, "path" | "write">
  folder: string
  schema: (z: Zod) => ZodType<T>
  log: Log
}): JsonStore<T> => {
  const { state, folder, schema, log } = deps
  const unsaved = new Map<string, T>()
  /** Files that are there and could not be read: what they hold may be worth more than what would replace it. */
  const unreadable = new Set<string>()
  /** Files that hold nothing of this version: put aside before something takes their place. */
  const unusable = new Set<string>()
  const pathOf = (key: string) => state.path(folder, `${key}${JSON_ENDING}`)

  const readFromDisk = async (key: string): Promise<T | undefined> => {
    const path = pathOf(key)
    let text: string
    let z: Zod
    try {
      text = await readFile(path, "utf8")
      z = await loadZod()
      unreadable.delete(key)
    } catch (error) {
      if (isNotFound(error)) return undefined
      unreadable.add(key)
      log.warn("stored state cannot be read, and is left as it is", { path, error: describeError(error) })
      return undefined
    }
    try {
      return schema(z).parse(JSON.parse(text))
    } catch (error) {
      unusable.add(key)
      log.warn("stored state is unusable and ignored", { path, error: describeError(error) })
      return undefined
    }
  }

  return {
    read: async (key) => {
      if (!isFileName(key)) return undefined
      return unsaved.get(key) ?? (await readFromDisk(key))
    },
    write: async (key, value) => {
      if (!isFileName(key)) return false
      // It may be readable by now, and is then not this process's to replace either: what it holds is in no value here.
      if (unreadable.has(key)) {
        unsaved.set(key, value)
        return false
      }
      const path = pathOf(key)
      try {
        if (unusable.delete(key)) await rename(path, `${path}.unusable`).catch(() => undefined)
        await state.write(path, `${JSON.stringify(value)}\n`)
        unsaved.delete(key)
        return true
      } catch (error) {
        unsaved.set(key, value)
        log.warn("state could not be stored", { path, error: describeError(error) })
        return false
      }
    },
    remove: async (key) => {
      if (!isFileName(key)) return
      unsaved.delete(key)
      unreadable.delete(key)
      try {
        await rm(pathOf(key), { force: true })
      } catch (error) {
        log.warn("stored state could not be removed", { path: pathOf(key), error: describeError(error) })
      }
    },
    keys: async () => {
      const names = await readdir(state.path(folder)).catch((error: unknown) => {
        if (!isNotFound(error)) log.warn("stored state cannot be listed", { folder, error: describeError(error) })
        return []
      })
      const stored = names
        .filter((name) => name.endsWith(JSON_ENDING))
        .map((name) => name.slice(0, -JSON_ENDING.length))
      return [...new Set([...stored.filter(isFileName), ...unsaved.keys()])].sort()
    },
    isUnsaved: (key) => unsaved.has(key),
  }
}
