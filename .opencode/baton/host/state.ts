import {
  closeSync,
  fsync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import type { PluginInput } from "@opencode-ai/plugin"
import type { ZodType } from "zod"
import { describeError, isNotFound, type Log } from "./log.ts"
import { stateRoot } from "./project.ts"
import { loadZod, type Zod } from "./schema.ts"
import {
  howToUse,
  ignoreAll,
  makeState,
  PRIVATE_FILE,
  quarantine,
  removeQuietly,
  TEMPORARY,
  temporaryName,
} from "./state-mark.ts"
import { readOwnText } from "./untrusted.ts"

const flush = promisify(fsync)

/** Flushes a folder, so that a new name in it survives a power cut. Does nothing if it cannot be opened, as on Windows. */
export const flushFolder = async (folder: string): Promise<void> => {
  let file: number | undefined
  try {
    file = openSync(folder, "r")
    await flush(file)
  } catch {
    // The text of the file itself is on disk.
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/**
 * Writes a unique temporary file, readable to this account alone, and renames it, so that a reader sees the old or the new text,
 * never a part. Only the flush is awaited: the other steps take microseconds, but a turn of OpenCode's event loop takes milliseconds
 * while it is busy.
 *
 * @param options `isDurable`: flushes the new text to disk before it replaces the old one (default true); without it the text
 *   survives any end of this process, but maybe not a power cut
 * @throws the file system's own error (EACCES, EROFS, ENOSPC, …); nothing is left behind then
 */
export const replaceFile = async (
  path: string,
  text: string,
  { isDurable = true }: { isDurable?: boolean } = {},
): Promise<void> => {
  const temporary = temporaryName(path)
  try {
    const file = openSync(temporary, "wx", PRIVATE_FILE)
    try {
      writeFileSync(file, text)
      if (isDurable) await flush(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    if (isDurable) await flushFolder(dirname(path))
  } catch (error) {
    removeQuietly(temporary)
    throw error
  }
}

/** A temporary file of this age belongs to a killed process: no write takes this long. */
const ABANDONED_MS = 10 * 60_000

/** Limit of remembered folders: passes have their own, and a server makes many. A forgotten one is swept again. */
const MAX_SWEPT = 100

/** Removes old temporary files of killed processes. Files that cannot be removed stay. */
const sweep = (folder: string): void => {
  const removeIfOld = (path: string): void => {
    try {
      if (Date.now() - statSync(path).mtimeMs > ABANDONED_MS) rmSync(path, { force: true })
    } catch {
      // Already removed, or not permitted.
    }
  }
  try {
    for (const name of readdirSync(folder)) if (name.endsWith(TEMPORARY)) removeIfOld(join(folder, name))
  } catch {
    // A folder that cannot be listed may still be writable.
  }
}

/** The folder for all files that the bundle writes at run time. Git ignores it, and other accounts cannot enter it. */
export type StateFolder = {
  /** Absolute path of the folder. */
  readonly root: string
  /** Absolute path inside the folder; creates nothing. */
  path(...segments: string[]): string
  /** Creates a folder inside it for another program to write in. Git ignores it, too. */
  prepare(...segments: string[]): Promise<void>
  /** As `replaceFile`, in a folder that it makes. */
  write(path: string, text: string, options?: { isDurable?: boolean }): Promise<void>
}

/**
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws nothing here; `prepare` and `write` reject with the file system's own error (EACCES, EROFS, ENOSPC, …)
 */
export const createStateFolder = (projectRoot: string): StateFolder => {
  const root = stateRoot(projectRoot)
  const swept = new Set<string>()
  const ensure = (folder: string): void => {
    makeState(root)
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

const TOAST_MS = 20_000

/** The one place where OpenCode opens the state: nothing of it is read before. @throws when foreign state cannot be moved */
export const openState = (client: PluginInput["client"], projectRoot: string, log: Log): StateFolder => {
  const aside = quarantine(projectRoot)
  if (aside) {
    const fix = howToUse(aside.reason)
    log.warn("state that is not this account's own is put aside without being read", { ...aside, fix })
    const message = `${aside.path}: ${aside.reason}. ${fix}`
    // Not as a notice: a setting that came with the state must not silence it.
    const body = { title: "State put aside", message, variant: "warning" as const, duration: TOAST_MS }
    Promise.resolve()
      .then(() => client.tui.showToast({ body }))
      .catch((error: unknown) => log.debug("a notice is not shown", { error: describeError(error) }))
  }
  return createStateFolder(projectRoot)
}

/** Stores one JSON file per key: `.opencode/state/<folder>/<key>.json`. No call throws. */
export type JsonStore<T> = {
  /** The newest value; undefined if there is none or it cannot be read (which is logged). */
  read(key: string): Promise<T | undefined>
  /** Keeps the value in memory if it cannot be written. @param options see `StateFolder.write` @returns whether it is on disk */
  write(key: string, value: T, options?: { isDurable?: boolean }): Promise<boolean>
  remove(key: string): Promise<void>
  /** The keys on disk and in memory, sorted. */
  keys(): Promise<string[]>
  /** True if the newest value is only in memory. */
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
  /** Keys of existing files that could not be read: they are not overwritten, since their content may be worth more. */
  const unreadable = new Set<string>()
  /** Keys of files without a value of this version: the file is renamed before it is replaced. */
  const unusable = new Set<string>()
  const pathOf = (key: string) => state.path(folder, `${key}${JSON_ENDING}`)
  const asidePathOf = (key: string) => `${pathOf(key)}.unusable`

  const readFromDisk = async (key: string): Promise<T | undefined> => {
    const path = pathOf(key)
    let text: string
    let z: Zod
    try {
      // Most sessions have nothing stored: a turn of the event loop, which OpenCode's start holds for long, is not waited for.
      if (!lstatSync(path, { throwIfNoEntry: false })) return undefined
      text = await readOwnText(path)
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
    write: async (key, value, options) => {
      if (!isFileName(key)) return false
      // The file may be readable again, but this process must not replace it: its content is not part of `value`.
      if (unreadable.has(key)) {
        unsaved.set(key, value)
        return false
      }
      const path = pathOf(key)
      try {
        if (unusable.delete(key)) await rename(path, asidePathOf(key)).catch(() => undefined)
        await state.write(path, `${JSON.stringify(value)}\n`, options)
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
      unusable.delete(key)
      try {
        await Promise.all([pathOf(key), asidePathOf(key)].map((path) => rm(path, { force: true })))
      } catch (error) {
        log.warn("stored state could not be removed", { path: pathOf(key), error: describeError(error) })
      }
    },
    keys: async () => {
      let names: string[] = []
      try {
        names = readdirSync(state.path(folder))
      } catch (error) {
        if (!isNotFound(error)) log.warn("stored state cannot be listed", { folder, error: describeError(error) })
      }
      const stored = names
        .filter((name) => name.endsWith(JSON_ENDING))
        .map((name) => name.slice(0, -JSON_ENDING.length))
      return [...new Set([...stored.filter(isFileName), ...unsaved.keys()])].sort()
    },
    isUnsaved: (key) => unsaved.has(key),
  }
}
