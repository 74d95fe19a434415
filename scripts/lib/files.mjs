// @ts-check
/** Part of scripts/install: what is in a folder, and the error of all its parts. Only reads. */
import { accessSync, lstatSync, readFileSync, statSync } from "node:fs"

/** The work cannot be done (exit code 1), or the command line is wrong (2). */
export class InstallError extends Error {
  /** @param {string} message @param {{ exitCode?: 1 | 2, cause?: unknown }} [options] */
  constructor(message, { exitCode = 1, cause } = {}) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

/** @param {unknown} error @returns {string} the system's code such as ENOENT, or "" */
export const codeOf = (error) =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : ""

/** @param {string} path @param {typeof lstatSync} look `statSync` follows links */
export const lookWith = (path, look) => {
  try {
    return look(path)
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) return undefined
    throw error
  }
}
/** @param {string} path */
export const exists = (path) => lookWith(path, lstatSync) !== undefined
/** @param {string} path */
export const isRegular = (path) => lookWith(path, lstatSync)?.isFile() ?? false
/** @param {string} path followed when it is a link */
export const isFile = (path) => lookWith(path, statSync)?.isFile() ?? false
/** @param {string} path followed when it is a link */
export const isFolder = (path) => lookWith(path, statSync)?.isDirectory() ?? false
/** @param {string} path @param {number} permission */
export const isAllowed = (path, permission) => {
  try {
    accessSync(path, permission)
    return true
  } catch {
    return false
  }
}

/** @param {string} path */
export const read = (path) => {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new InstallError(`cannot read ${path}. Nothing was changed`, { cause })
  }
}
