import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { createFileLock } from "../host/file-lock.ts"
import { replaceFile } from "../host/state.ts"

const MAX_NAME = 100
export const STATEFILE_ENDING = ".json"
/** Beside a statefile for as long as its writer lives. */
export const LOCK_ENDING = ".lock"

/** A name that is a file's and nothing else: letters, digits, `.`, `_`, `-`; never hidden, never empty. */
export const statefileName = (sessionID: string): string => {
  const safe = sessionID
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME)
  return safe === "" ? "session" : safe
}

export type Statefile = {
  readonly path: string
  /** A reader sees the old state or the new one, never a half; nobody else can read it. @throws the file system's own error */
  write(text: string): Promise<void>
  release(): Promise<void>
}

/**
 * The file of one agent. Who comes second while the first writer lives gets a file of its own, so that two processes with
 * one id never write over each other.
 *
 * @param pid of the process that the state tells of
 * @throws the file system's own error, or when both names are taken
 */
export const claimStatefile = async (folder: string, sessionID: string, pid: number): Promise<Statefile> => {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const name = statefileName(sessionID)
  for (const candidate of [name, `${name}-${pid}`]) {
    const lock = await createFileLock({ path: join(folder, `${candidate}${LOCK_ENDING}`) }).tryAcquire()
    if (!lock) continue
    const path = join(folder, `${candidate}${STATEFILE_ENDING}`)
    return {
      path,
      write: (text) => replaceFile(path, text, { mode: 0o600, isDurable: false }),
      release: () => lock.release(),
    }
  }
  throw new Error(`${name} and ${name}-${pid} are both kept by living writers`)
}
