import { statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { isNotFound } from "../host/log.ts"
import { listFolder, readOwnTextSync } from "../host/untrusted.ts"
import { failurePath } from "./copy-paths.ts"

/** `madeAt` in epoch milliseconds. */
export type Copy = { readonly day: string; readonly path: string; readonly bytes: number; readonly madeAt: number }

const DAY = /^\d{4}-\d\d-\d\d$/

/** Files beside the database whose names go on like this. */
const beside = (database: string, ending: string): string[] =>
  listFolder(dirname(database))
    .filter((name) => name.startsWith(`${basename(database)}${ending}`))
    .map((name) => join(dirname(database), name))

/** The daily copies of a database, the newest first. @throws the file system's own error */
export const listCopies = (database: string): Copy[] => {
  const start = ".copy-"
  return beside(database, start)
    .flatMap((path) => {
      const day = basename(path).slice(basename(database).length + start.length)
      const found = DAY.test(day) ? statSync(path, { throwIfNoEntry: false }) : undefined
      return found?.isFile() ? [{ day, path, bytes: found.size, madeAt: found.mtimeMs }] : []
    })
    .toReversed()
}

/** Copies that were begun and not ended. @throws the file system's own error */
export const listUnfinished = (database: string): string[] =>
  beside(database, ".copy-").filter((path) => path.endsWith(".tmp"))

const MAX_FAILURE_BYTES = 4096

/** The reason for which the last copy failed; undefined when it did not. */
export const readFailure = (database: string): string | undefined => {
  try {
    return readOwnTextSync(failurePath(database), { maxBytes: MAX_FAILURE_BYTES }).trim()
  } catch (error) {
    return isNotFound(error) ? undefined : `its note cannot be read: ${String(error)}`
  }
}
