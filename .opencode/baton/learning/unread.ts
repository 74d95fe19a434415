import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ignoreAll } from "../host/project.ts"

/** A user's message, which OpenCode itself keeps. */
export type MessageReference = { readonly sessionID: string; readonly messageID: string }

/** A session's id, a dot, a message's. */
const NAME = /^(\w+)\.(\w+)$/

/** The files of the messages that this process is about to read. */
const own = new Set<string>()

const stateFolder = (projectRoot: string): string => join(projectRoot, ".opencode", "state")
const folderIn = (projectRoot: string): string => join(stateFolder(projectRoot), "unread")
const nameOf = ({ sessionID, messageID }: MessageReference): string => `${sessionID}.${messageID}`

/**
 * Keeps in mind, however this process ends, that a message was not read yet for what it teaches. Synchronous: it is a file with
 * nothing but this process's id in it, made before OpenCode goes on.
 *
 * @returns false when that is not possible, so that the message has to be read at once
 */
export const noteUnread = (projectRoot: string, message: MessageReference): boolean => {
  const folder = folderIn(projectRoot)
  const path = join(folder, nameOf(message))
  if (!NAME.test(nameOf(message))) return false
  try {
    mkdirSync(folder, { recursive: true })
    ignoreAll(stateFolder(projectRoot))
    writeFileSync(path, String(process.pid))
    own.add(path)
    return true
  } catch {
    return false
  }
}

/** The message was read, or is gone. Throws nothing: what stays is read once more. */
export const forgetUnread = (projectRoot: string, message: MessageReference): void => {
  const folder = folderIn(projectRoot)
  const path = join(folder, nameOf(message))
  own.delete(path)
  try {
    rmSync(path, { force: true })
    rmdirSync(folder)
  } catch {
    // Others wait there.
  }
}

/** The messages that other processes noted and did not read yet, and their files. Throws nothing. */
export const unreadByOthers = (projectRoot: string): (MessageReference & { readonly path: string })[] => {
  const folder = folderIn(projectRoot)
  if (!existsSync(folder)) return []
  try {
    return readdirSync(folder).flatMap((name) => {
      const [, sessionID = "", messageID = ""] = NAME.exec(name) ?? []
      const path = join(folder, name)
      return messageID !== "" && !own.has(path) ? [{ sessionID, messageID, path }] : []
    })
  } catch {
    return []
  }
}
