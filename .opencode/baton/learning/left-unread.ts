import { readFileSync, statSync } from "node:fs"
import type { Log } from "../host/log.ts"
import { isAlive } from "../host/process.ts"
import type { Sessions } from "../host/sessions.ts"
import { collectUserText } from "../task/parse.ts"
import type { Message } from "./capture.ts"
import { forgetUnread, type MessageReference, unreadByOthers } from "./unread.ts"

/** A message is read within seconds; what a living process has left for longer was left by a namesake of its id. */
const OWNED_MS = 60_000
/** A session that goes on does so with this bundle, which comes here before it is any longer. */
const NEWEST_MESSAGES = 100
/** A process leaves a message or two; what is more than this waits for the next process. */
const MOST_READ = 50

const isLeft = (path: string): boolean => {
  try {
    const pid = Number(readFileSync(path, "utf8"))
    return pid === process.pid || !isAlive(pid) || Date.now() - statSync(path).mtimeMs > OWNED_MS
  } catch {
    // Another process has just read it.
    return false
  }
}

/**
 * Reads what processes that are gone left unread, as if it had just been said. What OpenCode cannot give now stays for the next
 * process; what is gone with its session is forgotten, and so is what was said in a child session.
 *
 * @param look keeps what a message teaches on disk
 * @returns the messages that were read
 */
export const readLeftUnread = async (deps: {
  readonly projectRoot: string
  readonly sessions: Pick<Sessions, "messages" | "parent">
  readonly look: (message: Message) => Promise<void>
  readonly log: Log
}): Promise<MessageReference[]> => {
  const { projectRoot, sessions, look, log } = deps
  const read: MessageReference[] = []
  const left = unreadByOthers(projectRoot).filter(({ path }) => isLeft(path))
  for (const { sessionID, messageID } of left.slice(0, MOST_READ)) {
    const reference = { sessionID, messageID }
    const [parent, page] = await Promise.all([
      sessions.parent(sessionID),
      sessions.messages(sessionID, NEWEST_MESSAGES),
    ])
    const failed = [parent, page].find((answer) => answer.kind === "failed" && answer.missing !== true)
    if (failed?.kind === "failed") {
      log.warn("what a user said in an earlier process is not read yet", { ...reference, reason: failed.reason })
      continue
    }
    const isRoot = parent.kind === "answer" && parent.value === undefined
    const messages = isRoot && page.kind === "answer" ? page.value.messages : []
    const said = messages.find(({ info }) => info.id === messageID)
    if (said?.info.role === "user") {
      log.info("an earlier process left a message unread", reference)
      await look({ ...reference, at: new Date(said.info.time.created), text: collectUserText(said.parts) })
      read.push(reference)
    }
    forgetUnread(projectRoot, reference)
  }
  return read
}
