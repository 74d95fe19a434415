/** The one reader and the one git, for what a repository or another account may have put there. */
import { spawnSync } from "node:child_process"
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs"
import { devNull } from "node:os"
import { delimiter, dirname, isAbsolute, relative, resolve, sep } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { isNotFound } from "./log.ts"
import type { Argv, ProcessOutcome, RunOptions, RunProcess } from "./process.ts"
import { projectConfigSwitch } from "./project.ts"

/** The names in a folder, sorted; none in one that is not there. @throws the file system's own error for any other */
export const listFolder = (path: string): string[] => {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    if (isNotFound(error)) return []
    throw error
  }
}

/** A file that is not read because of what it is; the message is a clause about it. */
export class RefusedFile extends Error {
  override readonly name = "RefusedFile"
}

type ReadOptions = {
  /** A larger file is refused (default 64 MB). */
  readonly maxBytes?: number
  /** Follows links, also to files of other accounts: for files that git, OpenCode or a person's own link leads to. */
  readonly isForeign?: boolean
}

const MAX_BYTES = 64 * 1024 * 1024
const FIRST_BYTES = 4096
const ROOT = 0

/** Opening a pipe would wait for a writer. Windows has neither flag. */
const NO_WAITING = constants.O_NONBLOCK ?? 0
const NO_LINK = constants.O_NOFOLLOW ?? 0

/** This account's or root's. In a container root works in a folder of another account's: what belongs to that one is its own. */
export const isOwn = ({ uid }: Stats, path: string): boolean => {
  const account = process.geteuid?.()
  if (account === undefined || uid === account || uid === ROOT) return true
  return account === ROOT && statSync(dirname(path)).uid === uid
}

const requireFile = (found: Stats, path: string, isForeign: boolean): void => {
  if (found.isSymbolicLink()) throw new RefusedFile("it is a link")
  if (found.isDirectory()) throw new RefusedFile("it is a folder, not a file")
  if (!found.isFile()) throw new RefusedFile("it is not a regular file")
  if (!isForeign && !isOwn(found, path)) throw new RefusedFile("it belongs to another account")
}

/** Reads at most one byte over the limit, however large the file is or becomes. */
export const readUpTo = (file: number, size: number, maxBytes: number): Buffer => {
  let buffer = Buffer.alloc(Math.min(Math.max(size, FIRST_BYTES), maxBytes) + 1)
  for (let length = 0; ; ) {
    const bytesRead = readSync(file, buffer, length, buffer.length - length, length)
    length += bytesRead
    if (bytesRead === 0 || length > maxBytes) return buffer.subarray(0, length)
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(length * 2, maxBytes + 1))
  }
}

/**
 * Reads a regular file of this account's, and no link: never waits for a pipe or device, and never reads without end.
 *
 * @throws RefusedFile, or the file system's own error
 */
export const readOwnBytes = (path: string, { maxBytes = MAX_BYTES, isForeign = false }: ReadOptions = {}): Buffer => {
  // Opening a device may already have an effect.
  requireFile(isForeign ? statSync(path) : lstatSync(path), path, isForeign)
  const file = openSync(path, constants.O_RDONLY | NO_WAITING | (isForeign ? 0 : NO_LINK))
  try {
    const opened = fstatSync(file)
    requireFile(opened, path, isForeign)
    const bytes = readUpTo(file, opened.size, maxBytes)
    if (bytes.length > maxBytes) throw new RefusedFile(`it is larger than ${maxBytes} bytes`)
    return bytes
  } finally {
    closeSync(file)
  }
}

/** Opens a file for lines at its end, and to read it. @throws as `readOwnBytes` */
export const openOwnToAppend = (path: string, mode: number): number => {
  const file = openSync(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | NO_WAITING | NO_LINK, mode)
  try {
    requireFile(fstatSync(file), path, false)
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** Reads UTF-8 text. @throws as `readOwnBytes` */
export const readOwnTextSync = (path: string, options?: ReadOptions): string =>
  readOwnBytes(path, options).toString("utf8")

/** The same, where many files are read in a row: OpenCode's other work goes on between them. */
export const readOwnText = async (path: string, options?: ReadOptions): Promise<string> => {
  await nextTurn()
  return readOwnTextSync(path, options)
}

/** Nothing that a repository configures is run: no file monitor, no hook, no transport. */
const SAFE = [
  "core.fsmonitor=false",
  `core.hooksPath=${devNull}`,
  "core.untrackedCache=false",
  "gc.auto=0",
  "protocol.allow=never",
  // A folder of the worktree that looks like a repository is none.
  "safe.bareRepository=explicit",
].flatMap((setting) => ["-c", setting])

/** A person may keep the user's settings elsewhere. All other variables of git come from a git process around this one. */
const KEPT = /^GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)$/

const neutralEnvironment = (): Record<string, string | undefined> => ({
  ...Object.fromEntries(
    Object.keys(process.env).flatMap((name) =>
      name.startsWith("GIT_") && !KEPT.test(name) ? [[name, undefined]] : [],
    ),
  ),
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  LC_ALL: "C",
})

/** The environment of a child: its PATH has no relative folders, from which it would run files of the project. */
export const childEnvironment = (
  changes: Readonly<Record<string, string | undefined>> | undefined,
): Record<string, string> => {
  const merged = Object.entries({ ...process.env, ...changes })
  const given = Object.fromEntries(merged.filter((pair): pair is [string, string] => pair[1] !== undefined))
  const folders = given.PATH?.split(delimiter).filter(isAbsolute)
  // An empty PATH would mean the working directory.
  return folders === undefined ? given : { ...given, PATH: folders.join(delimiter) || devNull }
}

const gitCommand = (args: readonly string[]): Argv => ["git", ...SAFE, ...args]

/** Runs git. All of Baton's git is run by it, or by `runGitSync`; the user's and the system's settings count. */
export const runGit = (run: RunProcess, args: readonly string[], options: RunOptions): Promise<ProcessOutcome> =>
  run(gitCommand(args), { ...options, env: { ...neutralEnvironment(), ...options.env } })

const SYNC_DEADLINE_MS = 1_000

/** Runs git where nothing can wait for a turn, for a short answer. @returns undefined when it fails */
export const runGitSync = (args: readonly string[], cwd: string, deadlineMs = SYNC_DEADLINE_MS): string | undefined => {
  const [file, ...rest] = gitCommand(args)
  const { status, stdout } = spawnSync(file, rest, {
    cwd,
    env: childEnvironment(neutralEnvironment()),
    encoding: "utf8",
    timeout: deadlineMs,
    maxBuffer: MAX_BYTES,
    killSignal: "SIGKILL",
  })
  return status === 0 ? stdout : undefined
}

/** @param path absolute, or relative to the folder */
export const isInside = (folder: string, path: string): boolean => {
  const way = relative(folder, resolve(folder, path))
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/**
 * Reads a file by which a project or a person sets Baton up: settings, policy, prompt. It may be kept elsewhere, behind a link.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @param path absolute, or relative to it; elsewhere it is beside a global copy of the bundle
 * @throws RefusedFile, or the file system's own error; while OpenCode's switch is on, ENOENT for each file
 */
export const readProjectConfig = (projectRoot: string, path: string, options: { maxBytes?: number } = {}): Buffer => {
  if (!isInside(projectRoot, path)) return readOwnBytes(path, { ...options, isForeign: true })
  const off = projectConfigSwitch()
  if (off !== undefined) throw Object.assign(new Error(`${off} keeps the project's files out`), { code: "ENOENT" })
  const place = resolve(projectRoot, path)
  return readOwnBytes(place, { ...options, isForeign: lstatSync(place).isSymbolicLink() })
}
