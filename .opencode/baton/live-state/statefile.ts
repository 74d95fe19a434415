import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const MAX_NAME = 100

/** A name that is a file's and nothing else: letters, digits, `.`, `_`, `-`; never hidden, never empty. */
export const statefileName = (sessionID: string): string => {
  const safe = sessionID
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME)
  return safe === "" ? "session" : safe
}

export const isAlive = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // It is there and belongs to somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "")

const readOwner = (path: string): number => {
  try {
    return Number(readFileSync(path, "utf8"))
  } catch (error) {
    if (codeOf(error) === "ENOENT") return 0
    throw error
  }
}

export type Statefile = {
  readonly path: string
  /** By unique temporary file and rename, mode 0600. @throws the file system's own error */
  write(text: string): void
  release(): void
}

/**
 * The file of one agent. Who comes second while the first lives gets a file of its own, so that two processes with one id
 * never write over each other.
 *
 * @param pid of the process that owns the state; the file is stale when it is gone
 */
export const claimStatefile = (folder: string, sessionID: string, pid: number): Statefile => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const name = statefileName(sessionID)
  for (const candidate of [name, `${name}-${pid}`]) {
    const owner = join(folder, `${candidate}.owner`)
    if (!claim(owner, pid)) continue
    const path = join(folder, `${candidate}.json`)
    return {
      path,
      write: (text) => {
        const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`
        try {
          writeFileSync(temporary, text, { mode: 0o600, flag: "wx" })
          renameSync(temporary, path)
        } catch (error) {
          rmSync(temporary, { force: true })
          throw error
        }
      },
      release: () => {
        if (readOwner(owner) === pid) rmSync(owner, { force: true })
      },
    }
  }
  throw new Error(`${name} and ${name}-${pid} both belong to living processes`)
}

const claim = (owner: string, pid: number): boolean => {
  for (let tries = 0; tries < 3; tries++) {
    try {
      writeFileSync(owner, String(pid), { mode: 0o600, flag: "wx" })
      return true
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error
    }
    const current = readOwner(owner)
    if (current === pid) return true
    if (isAlive(current)) return false
    // Stale: taken away by a rename, so that of two who find it only one removes it.
    const aside = `${owner}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`
    try {
      renameSync(owner, aside)
      rmSync(aside, { force: true })
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error
    }
  }
  return false
}
