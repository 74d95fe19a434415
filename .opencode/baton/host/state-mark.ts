/**
 * Tells the state that Baton made in this very folder from state that came with a repository, a copy or a backup: its mark can
 * be made only with a key that lies outside of the project (docs/adr/0018, 0023).
 */
import { createHmac, randomBytes } from "node:crypto"
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { describeError, errorCode, hasNoLinks, isNotFound } from "./log.ts"
import { accountFolder, bundleRoot, stateRoot } from "./project.ts"
import { readOwnBytes, readOwnTextSync, runGitSync } from "./untrusted.ts"

export const MARK = ".mark"
/**
 * Version of all that is stored below the state folder. A reader lets through what a newer Baton adds; what an older one would
 * misread gets the next number.
 */
export const STATE_FORMAT = 1
const KEY_VARIABLE = "BATON_STATE_KEY"
/** For this account alone. */
export const PRIVATE_FOLDER = 0o700
export const PRIVATE_FILE = 0o600

const keyFile = (): string => join(accountFolder(), "state.key")

/** The file name ending of temporary files. */
export const TEMPORARY = ".tmp"

export const temporaryName = (path: string): string =>
  `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`

/** Never throws: the caller reports the first error, and a file that stays is swept later. */
export const removeQuietly = (path: string): void => {
  try {
    rmSync(path, { force: true })
  } catch {
    // If its folder is gone, the file is gone, too.
  }
}

type CreateOptions = { readonly mode?: number; readonly flush?: boolean }

/** Never through a link. @returns false for a file that is there */
const writeExclusively = (path: string, text: string, options: CreateOptions = {}): boolean => {
  try {
    writeFileSync(path, text, { ...options, flag: "wx" })
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    // On a full disk the file is created but stays empty, and would block every process.
    if (errorCode(error) === "ENOSPC") removeQuietly(path)
    throw error
  }
}

/** Creates the file with its whole text or not at all, even if this process is killed meanwhile. @returns false for one that is there */
export const createExclusively = (path: string, text: string, options?: CreateOptions): boolean => {
  const whole = temporaryName(path)
  try {
    writeExclusively(whole, text, options)
    linkSync(whole, path)
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    if (hasNoLinks(error)) return writeExclusively(path, text, options)
    throw error
  } finally {
    removeQuietly(whole)
  }
}

/** A power cut leaves the file whole, or none. */
const FLUSHED = { mode: PRIVATE_FILE, flush: true } as const

const makeKey = (path: string): void => {
  mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER })
  // A power cut left it empty.
  if (lstatSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path, { force: true })
  // Leaves the key that another process made meanwhile.
  createExclusively(path, `${randomBytes(32).toString("hex")}\n`, FLUSHED)
}

/** @returns undefined when there is none. @throws the file system's own error */
const readKey = (): string | undefined => {
  const given = process.env[KEY_VARIABLE]
  if (given) return given
  try {
    return readOwnTextSync(keyFile()).trim() || undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/**
 * Signs a text as this account's, for one folder. A moved folder keeps its inode, a copy has another one; the number of a device
 * may change when the machine starts again.
 *
 * @param folder the state folder
 * @returns undefined without a key. @throws the file system's own error
 */
export const signFor = (folder: string, text: string): string | undefined => {
  const key = readKey()
  if (key === undefined) return undefined
  const { ino } = lstatSync(folder, { bigint: true })
  return createHmac("sha256", key).update(`inode ${ino}\n${text}`).digest("hex")
}

/** Makes the key where there is none. @throws the file system's own error */
const ensureKey = (): string => {
  if (readKey() === undefined) makeKey(keyFile())
  const key = readKey()
  if (key === undefined) throw new Error(`there is no key in ${keyFile()}`)
  return key
}

export type Sign = (text: string) => string

const signWith =
  (key: string): Sign =>
  (text) =>
    createHmac("sha256", key).update(`said\n${text}`).digest("hex")

/** Signs the user's words as this account's, in any folder. @returns undefined without a key. @throws the file system's own error */
export const readSigner = (): Sign | undefined => {
  const key = readKey()
  return key === undefined ? undefined : signWith(key)
}

/** The same with a key that is made where there is none: no state folder may have been written yet. */
export const ensureSigner = (): Sign => signWith(ensureKey())

/** The mark says its format, so that it counts for an older Baton, too. @returns undefined without a key */
const renderMark = (root: string, format: number): string | undefined => {
  const signature = signFor(root, `Baton's state, format ${format}`)
  return signature === undefined ? undefined : `${format} ${signature}`
}

/** Makes the folder this account's own. @throws the file system's own error */
export const markState = (root: string): void => {
  ensureKey()
  const mark = renderMark(root, STATE_FORMAT)
  const path = join(root, MARK)
  const whole = temporaryName(root)
  try {
    writeFileSync(whole, `${mark}\n`, { ...FLUSHED, flag: "wx" })
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) rmSync(path, { recursive: true })
    renameSync(whole, path)
  } finally {
    rmSync(whole, { force: true })
  }
  chmodSync(root, PRIVATE_FOLDER)
}

/** Makes git, and with it OpenCode's snapshots, ignore an existing folder. @throws the file system's own error */
export const ignoreAll = (folder: string): void => {
  const file = join(folder, ".gitignore")
  if (!lstatSync(file, { throwIfNoEntry: false })) writeExclusively(file, "*\n")
}

/** The folder holds nothing that is acted on. */
const isBare = (root: string): boolean => readdirSync(root).every((name) => name === ".gitignore")

/**
 * Makes the state folder, unless it is there, with its mark at once, since another process may be looking for it. Without a
 * place for the key it has no mark: the next start says why. @throws the file system's own error
 */
export const makeState = (root: string): void => {
  if (existsSync(join(root, MARK))) return
  const found = lstatSync(root, { throwIfNoEntry: false })
  if (found && !(found.isDirectory() && isBare(root))) return
  const folder = found ? root : temporaryName(root)
  if (!found) mkdirSync(folder, { recursive: true })
  try {
    markState(folder)
  } catch {
    // There is no home for a key, or the folder may not be written: then the caller's own write fails, too.
  }
  if (found) return
  try {
    ignoreAll(folder)
    renameSync(folder, root)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    if (!existsSync(root)) throw error
  }
}

/** @returns the text of the mark; "" where there is no such file. @throws the file system's own error */
const readMark = (root: string): string => {
  const path = join(root, MARK)
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() ? readOwnTextSync(path, { isForeign: true }).trim() : ""
}

const formatOf = (mark: string): number => Number.parseInt(mark, 10)

/** Compares the format that the mark says, be it this account's mark or not. @throws the file system's own error */
export const isNewer = (root: string): boolean => formatOf(readMark(root)) > STATE_FORMAT

export const NEWER = "it was made by a newer Baton, whose format this one does not know"

/** Such a folder cannot come with a repository, and cannot be moved. */
const isMount = (root: string): boolean => lstatSync(root).dev !== lstatSync(dirname(root)).dev

/** @returns why the mark does not count; undefined when it does */
const whyUntrusted = (root: string): string | undefined => {
  if (isMount(root)) return undefined
  try {
    const mark = readMark(root)
    const own = renderMark(root, formatOf(mark))
    if (own === undefined) return `this account has no key for it in ${keyFile()}; ${KEY_VARIABLE} can hold one`
    if (mark === own) return undefined
  } catch (error) {
    return `its mark cannot be checked: ${describeError(error)}`
  }
  return "this account did not make it here: it came with the project, or is a copy or a backup"
}

/** The names of some million files. */
const MAX_INDEX_BYTES = 1024 ** 3

/** The worktree around a folder, and the index of what git has in it. */
const findIndex = (folder: string): { top: string; index: string } | undefined => {
  const path = join(folder, ".git")
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return { top: folder, index: join(path, "index") }
  if (found?.isFile()) {
    const named = /^gitdir: (.+)$/m.exec(readOwnTextSync(path, { isForeign: true }))?.[1]
    return named === undefined ? undefined : { top: folder, index: join(resolve(folder, named), "index") }
  }
  return dirname(folder) === folder ? undefined : findIndex(dirname(folder))
}

/** Of gitformat-index(5): from version 4 on a path is not written out, and "link" names another file with more paths. */
const SHORTENED_VERSION = 4
const VERSION_OFFSET = 4
const SPLIT = "link\0\0"

const mayName = (path: string, folder: RegExp): boolean => {
  const index = readOwnBytes(path, { isForeign: true, maxBytes: MAX_INDEX_BYTES })
  if (index.length <= VERSION_OFFSET + 4) return false
  const isPlain = index.readUInt32BE(VERSION_OFFSET) < SHORTENED_VERSION && !index.includes(SPLIT)
  return !isPlain || folder.test(index.toString("latin1"))
}

/** As long as a hook may take: git reads all of a large index. */
const LIST_DEADLINE_MS = 3_000

/** Git is not there, takes too long, or refuses. */
export const GIT_FAILED = Symbol("git failed")

/** @returns one of the folder's files that git has. Git is started only where its index may name the folder. */
export const findTracked = (root: string): string | typeof GIT_FAILED | undefined => {
  const repository = findIndex(dirname(root))
  if (!repository || !existsSync(repository.index)) return undefined
  if (!mayName(repository.index, /\.opencode\/state/i)) return undefined
  const folder = relative(repository.top, root)
  const listed = runGitSync(["ls-files", "-z", "--", `:(icase,literal)${folder}`], repository.top, LIST_DEADLINE_MS)
  if (listed === undefined) return GIT_FAILED
  // One that was put aside before is not there any more, and a .gitignore is not acted on.
  return listed.split("\0").find((path) => {
    const below = path.slice(folder.length + 1)
    return path !== "" && below !== ".gitignore" && existsSync(join(root, below))
  })
}

/** @returns why the state is not acted on; undefined for the account's own, and where there is none. @throws the file system's own error */
export const findForeign = (projectRoot: string): string | undefined => {
  const root = stateRoot(projectRoot)
  const found = lstatSync(root, { throwIfNoEntry: false })
  if (found?.isSymbolicLink()) return "it is a link"
  if (!found?.isDirectory() || isBare(root)) return undefined
  const tracked = findTracked(root)
  // Where git does not tell, the mark does.
  const doubt = typeof tracked === "string" ? `git tracks ${tracked}` : whyUntrusted(root)
  return doubt ?? (isNewer(root) ? NEWER : undefined)
}

const TRUST = `${join(bundleRoot, "bin", "baton")} trust state`
const HOW_TO_TRUST = `If it is yours, run ${TRUST} in the project (if git tracks it, git rm -r --cached .opencode/state before); else delete it.`

/** @param reason see `findForeign` */
export const howToUse = (reason: string): string =>
  reason === NEWER ? "Update Baton; the state stays as it is." : HOW_TO_TRUST

type PutAside = { readonly path: string; readonly reason: string }

const ASIDE = ".foreign-"

/**
 * Moves foreign state aside without reading it. @returns undefined when there is none
 * @throws Error when it cannot be moved, or is a newer Baton's, so that it is not acted on either
 */
export const quarantine = (projectRoot: string): PutAside | undefined => {
  const root = stateRoot(projectRoot)
  const reason = findForeign(projectRoot)
  if (reason === undefined) return undefined
  if (reason === NEWER) throw new Error(`${root} is not used, since ${reason}. ${howToUse(reason)}`)
  // It leads out of the project, where nothing is to be moved.
  if (lstatSync(dirname(root)).isSymbolicLink())
    throw new Error(`${root} is not used, since .opencode is a link and ${reason}. ${HOW_TO_TRUST}`)
  const path = `${root}${ASIDE}${new Date().toISOString().replaceAll(/[-:.]/g, "")}`
  try {
    renameSync(root, path)
  } catch (error) {
    // Another process put it aside.
    if (isNotFound(error)) return undefined
    throw new Error(`${root} is not used: ${reason}, and it cannot be moved. ${HOW_TO_TRUST}`, { cause: error })
  }
  return { path, reason }
}

/** Names of the folders beside the state that were put aside, oldest first. */
export const listAside = (projectRoot: string): string[] => {
  const root = stateRoot(projectRoot)
  if (!existsSync(dirname(root))) return []
  return readdirSync(dirname(root))
    .filter((name) => name.startsWith(`state${ASIDE}`))
    .sort()
}
