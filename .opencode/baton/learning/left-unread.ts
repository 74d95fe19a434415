import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Log } from "../host/log.ts"
import { isAlive } from "../host/process-table.ts"
import type { Sessions } from "../host/sessions.ts"
import { collectUserText } from "../task/user-text.ts"
import type { Message } from "./capture.ts"
import { forgetUnread, isAboutToBeRead, type MessageReference, UNREAD_NAME, unreadFolder } from "./unread.ts"

/** A message is read within seconds; what a living process has left for longer was left by a namesake of its id. */
const OWNED_MS = 60_000
/** A session that goes on does so with this bundle, which comes here before it is any longer. */
const NEWEST_MESSAGES = 100

const isLeft = (path: string): boolean => {
  if (isAboutToBeRead(path)) return false
  try {
    const pid = Number(readFileSync(path, "utf8"))
    return pid === process.pid || !isAlive(pid) || Date.now() - statSync(path).mtimeMs > OWNED_MS
  } catch {
    // Another process has just read it.
    return false
  }
}

/** The messages that processes which are gone did not come to read. */
const leftUnread = (projectRoot: string): MessageReference[] => {
  const folder = unreadFolder(projectRoot)
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names.flatMap((name) => {
    const [, sessionID = "", messageID = ""] = UNREAD_NAME.exec(name) ?? []
    return messageID !== "" && isLeft(join(folder, name)) ? [{ sessionID, messageID }] : []
  })
}

/**
 * Reads what earlier processes left unread, as if it had just been said. What OpenCode cannot give now stays for the next
 * process; what is gone with its session is forgotten.
 *
 * @param look keeps what a message teaches on disk
 */
export const readLeftUnread = async (deps: {
  readonly projectRoot: string
  readonly sessions: Pick<Sessions, "messages">
  readonly look: (message: Message) => Promise<void>
  readonly log: Log
}): Promise<void> => {
  const { projectRoot, sessions, look, log } = deps
  for (const reference of leftUnread(projectRoot)) {
    const { sessionID, messageID } = reference
    const page = await sessions.messages(sessionID, NEWEST_MESSAGES)
    if (page.kind === "failed" && page.missing !== true) {
      log.warn("what a user said in an earlier process is not read yet", { ...reference, reason: page.reason })
      continue
    }
    const found = page.kind === "answer" ? page.value.messages.find(({ info }) => info.id === messageID) : undefined
    if (found?.info.role === "user") {
      log.info("an earlier process left a message unread", { ...reference })
      await look({ sessionID, messageID, at: new Date(found.info.time.created), text: collectUserText(found.parts) })
    }
    forgetUnread(projectRoot, reference)
  }
}
