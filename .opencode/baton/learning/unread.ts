import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** A user's message, which OpenCode itself keeps. */
export type MessageReference = { readonly sessionID: string; readonly messageID: string }

/** A session's id, a dot, a message's. */
export const UNREAD_NAME = /^(\w+)\.(\w+)$/

/** The files of the messages that this process is about to read. */
const own = new Set<string>()

export const unreadFolder = (projectRoot: string): string => join(projectRoot, ".opencode", "state", "unread")

const nameOf = ({ sessionID, messageID }: MessageReference): string => `${sessionID}.${messageID}`

/** @param path of a message's file */
export const isAboutToBeRead = (path: string): boolean => own.has(path)

/**
 * Keeps in mind, however this process ends, that a message was not read yet for what it teaches. Synchronous: it is a file with
 * nothing but this process's id in it, made before OpenCode goes on.
 *
 * @returns false when that is not possible, so that the message has to be read at once
 */
export const noteUnread = (projectRoot: string, message: MessageReference): boolean => {
  const folder = unreadFolder(projectRoot)
  const path = join(folder, nameOf(message))
  if (!UNREAD_NAME.test(nameOf(message))) return false
  try {
    mkdirSync(folder, { recursive: true })
    const ignore = join(projectRoot, ".opencode", "state", ".gitignore")
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n")
    writeFileSync(path, String(process.pid))
    own.add(path)
    return true
  } catch {
    return false
  }
}

/** The message was read, or is gone. Throws nothing: what stays is read once more. */
export const forgetUnread = (projectRoot: string, message: MessageReference): void => {
  const folder = unreadFolder(projectRoot)
  const path = join(folder, nameOf(message))
  own.delete(path)
  try {
    rmSync(path, { force: true })
    rmdirSync(folder)
  } catch {
    // Others wait there.
  }
}
