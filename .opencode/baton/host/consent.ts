/** Consent of a person, kept outside of all projects: no repository and no agent's editing tool reaches it. */
import { createHash } from "node:crypto"
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { isNotFound } from "./log.ts"
import { accountFolder, isFolder } from "./project.ts"
import { isInside, RefusedFile, readOwnBytes } from "./untrusted.ts"

const hash = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex")

/**
 * The content of an argument that names a file of the project: with another one it is another command.
 *
 * @throws RefusedFile for one whose content cannot be known, such as one that is too large
 */
const contentOf = (folder: string, argument: string): string | null => {
  if (!isInside(folder, argument) || argument.includes("\0")) return null
  const path = resolve(folder, argument)
  try {
    return hash(readOwnBytes(path, { isForeign: true }))
  } catch (error) {
    if (error instanceof RefusedFile && !isFolder(path)) throw error
    // It names no file, or one that this account may not read.
    return null
  }
}

/** A person's consent to run commands that a project's files name. */
export const createConsent = (projectRoot: string, environment: NodeJS.ProcessEnv = process.env) => {
  const recordOf = (command: readonly string[]): string => {
    const folder = realpathSync(projectRoot)
    const contents = command.map((argument) => contentOf(folder, argument))
    return join(accountFolder(environment), "allowed", hash(JSON.stringify([folder, command, contents])))
  }
  return {
    /**
     * Tells whether the person allowed this very command for this folder.
     *
     * @param file that names it; the person's own, beside a global copy of the bundle, needs no consent
     */
    isAllowed: (command: readonly string[], file = projectRoot): boolean => {
      if (file !== projectRoot && !isInside(projectRoot, file)) return true
      try {
        return readOwnBytes(recordOf(command)).length > 0
      } catch (error) {
        if (isNotFound(error) || error instanceof RefusedFile) return false
        throw error
      }
    },
    /** @throws RefusedFile, or the file system's own error */
    allow: (command: readonly string[]): void => {
      const path = recordOf(command)
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      const about = { folder: projectRoot, command, at: new Date().toISOString() }
      writeFileSync(path, `${JSON.stringify(about)}\n`, { mode: 0o600 })
    },
    /** @throws the same */
    revoke: (command: readonly string[]): void => rmSync(recordOf(command), { force: true }),
  }
}
