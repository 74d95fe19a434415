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
import { readFile, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import type { ZodType } from "zod"
import { describeError, isAbsent, type Log } from "./log.ts"
import { ignoreAll } from "./project.ts"
import { loadZod, type Zod } from "./schema.ts"

/** What the name of a half-written file ends in. */
export const TEMPORARY = ".tmp"

const flush = promisify(fsync)

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

/** One JSON file a session, under `.opencode/state/<folder>/<sessionID>.json`. No call throws. */
export type SessionStore<T> = {
  /** The stored value; undefined when there is none or when it cannot be read (which is logged). */
  read(sessionID: string): Promise<T | undefined>
  /** @returns whether it is on disk */
  write(sessionID: string, value: T): Promise<boolean>
  remove(sessionID: string): Promise<void>
}

/** OpenCode's ids are letters, digits and underscores; anything else must not become a path. */
const isFileName = (sessionID: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(sessionID)

export const createSessionStore = <T>(deps: {
  state: StateFolder
  folder: string
  schema: (z: Zod) => ZodType<T>
  log: Log
}): SessionStore<T> => {
  const { state, folder, schema, log } = deps
  const pathOf = (sessionID: string) => state.path(folder, `${sessionID}.json`)
  return {
    read: async (sessionID) => {
      if (!isFileName(sessionID)) return undefined
      const path = pathOf(sessionID)
      try {
        const text = await readFile(path, "utf8")
        return schema(await loadZod()).parse(JSON.parse(text))
      } catch (error) {
        if (!isAbsent(error))
          log.warn("stored state is unusable and ignored", { path, sessionID, error: describeError(error) })
        return undefined
      }
    },
    write: async (sessionID, value) => {
      if (!isFileName(sessionID)) return false
      const path = pathOf(sessionID)
      try {
        await state.write(path, `${JSON.stringify(value)}\n`)
        return true
      } catch (error) {
        log.warn("state could not be stored", { path, sessionID, error: describeError(error) })
        return false
      }
    },
    remove: async (sessionID) => {
      if (!isFileName(sessionID)) return
      try {
        await rm(pathOf(sessionID), { force: true })
      } catch (error) {
        log.warn("stored state could not be removed", {
          path: pathOf(sessionID),
          sessionID,
          error: describeError(error),
        })
      }
    },
  }
}
