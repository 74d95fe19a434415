import { rename } from "node:fs/promises"
import { acquireWithin, createFileLock, type HeldLock } from "../../host/file-lock.ts"
import { describeError, isNotFound, type Log } from "../../host/log.ts"
import { isRecord } from "../../host/schema.ts"
import { findAgentAndModel, type Sessions } from "../../host/sessions.ts"
import { replaceFile, type StateFolder } from "../../host/state.ts"
import { RefusedFile, readOwnText } from "../../host/untrusted.ts"
import { statefileName } from "../statefile.ts"

/** One message of c2c's broker. */
export type C2cMessage = { readonly from_alias: string; readonly to_alias: string; readonly content: string }

/** A message that is not in a session yet; `tried` says into which it was sent last, and when (ms since the epoch). */
type Spooled = C2cMessage & { readonly tried?: { readonly sessionID: string; readonly at: number } }

const isMessage = (value: unknown): value is Spooled =>
  isRecord(value) && [value.from_alias, value.to_alias, value.content].every((each) => typeof each === "string")

/** Reads the output of `c2c poll-inbox --json`, an envelope or a bare list. @throws SyntaxError */
export const parseInbox = (json: string): C2cMessage[] => {
  const parsed: unknown = json.trim() === "" ? [] : JSON.parse(json)
  const messages = isRecord(parsed) && !Array.isArray(parsed) ? parsed.messages : parsed
  return Array.isArray(messages) ? messages.filter(isMessage) : []
}

/** Escapes what could end an attribute or its line, or change the order in which it is shown. */
const escapeAttribute = (text: string): string =>
  text.replaceAll(/[&<>"'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `&#${character.codePointAt(0)};`)

/** Makes tags in the content harmless that would open or close an envelope. */
const escapeTags = (text: string): string => text.replaceAll(/<(?=[\s/\p{C}]*c\p{Cf}*2\p{Cf}*c)/giu, "&lt;")

/** The text of the user's turn, as c2c's own plugin writes it but for what is escaped. */
const renderMessage = ({ from_alias, to_alias, content }: C2cMessage): string => {
  const [from, to] = [from_alias, to_alias].map(escapeAttribute)
  return `<c2c event="message" from="${from}" alias="${to}" source="broker" action_after="continue">\n${escapeTags(content)}\n</c2c>`
}

type InboxDeps = {
  /** c2c's id of this session. */
  readonly c2cSession: string
  readonly state: Pick<StateFolder, "path" | "prepare">
  readonly sessions: Pick<Sessions, "messages" | "start">
  readonly root: () => { readonly sessionID: string; readonly isIdle: boolean } | undefined
  readonly log: Log
  readonly now: () => number
}

/** OpenCode may answer before it has stored a message; until then the message is not sent again. */
const RETRY_MS = 5_000
const READ_MESSAGES = 50
/** For another process that reads and delivers. */
const LOCK_DEADLINE_MS = 30_000

/**
 * Delivers messages to the root session as user's turns, in order, one a turn. c2c has forgotten a message once it gave it, so it
 * is on disk before it is tried, and leaves the disk once it is found among the session's messages. The file belongs to all
 * processes of the c2c session: an `opencode run` inside a turn inherits its id.
 */
export const createInbox = (deps: InboxDeps) => {
  const { c2cSession, state, sessions, root, log, now } = deps
  const path = state.path("c2c", `${statefileName(c2cSession)}.json`)
  const lock = createFileLock({ path: `${path}.lock` })
  /** Messages that are not on disk yet. */
  let unsaved: readonly C2cMessage[] = []

  /** Undefined if there is something else in its place. */
  const read = async (): Promise<readonly Spooled[] | undefined> => {
    try {
      const stored: unknown = JSON.parse(await readOwnText(path))
      return Array.isArray(stored) && stored.every(isMessage) ? stored : undefined
    } catch (error) {
      if (isNotFound(error)) return []
      if (error instanceof SyntaxError || error instanceof RefusedFile) return undefined
      throw error
    }
  }

  /** For the holder of the lock. @returns the messages that are left */
  const putAside = async (): Promise<readonly []> => {
    const kept = `${path}.${now()}.unusable`
    await rename(path, kept)
    log.warn("a file that is no list of c2c's messages is put aside", { path: kept })
    return []
  }

  const save = (next: readonly Spooled[]): Promise<void> => replaceFile(path, `${JSON.stringify(next)}\n`)

  /** Undefined if OpenCode does not tell. */
  const isStored = async (message: Spooled): Promise<boolean | undefined> => {
    const { tried } = message
    if (!tried) return false
    const newest = await sessions.messages(tried.sessionID, READ_MESSAGES)
    if (newest.kind === "failed") return newest.missing ? false : undefined
    const text = renderMessage(message)
    return newest.value.messages.some(
      ({ info, parts }) =>
        info.role === "user" &&
        info.time.created >= tried.at &&
        parts.some((part) => part.type === "text" && part.text === text),
    )
  }

  const deliver = async (waiting: readonly Spooled[]): Promise<void> => {
    const [first, ...rest] = waiting
    if (!first) return
    const stored = await isStored(first)
    if (stored === undefined) return
    if (stored) {
      await save(rest)
      log.info("a message of c2c's was delivered", { from: first.from_alias, sessionID: first.tried?.sessionID })
      return deliver(rest)
    }
    const target = root()
    if (!target?.isIdle || now() - (first.tried?.at ?? 0) < RETRY_MS) return
    const { sessionID } = target
    await save([{ ...first, tried: { sessionID, at: now() } }, ...rest])
    const agentAndModel = await findAgentAndModel(sessions, sessionID)
    const started = await sessions.start(sessionID, renderMessage(first), agentAndModel)
    if (started.kind === "failed")
      log.warn("a message of c2c's was not taken and is kept", { sessionID, reason: started.reason })
  }

  return {
    /** Takes new messages in and delivers the oldest one, if the root session is idle. Never throws. */
    receive: async (messages: readonly C2cMessage[]): Promise<void> => {
      unsaved = [...unsaved, ...messages]
      let held: HeldLock | undefined
      try {
        if (unsaved.length === 0 && (await read())?.length === 0) return
        await state.prepare("c2c")
        held = await acquireWithin(lock, LOCK_DEADLINE_MS)
        if (!held) return log.warn("c2c's messages wait: another process holds their file", { path })
        const waiting = [...((await read()) ?? (await putAside())), ...unsaved]
        if (unsaved.length > 0) await save(waiting)
        unsaved = []
        await deliver(waiting)
      } catch (error) {
        log.error("messages of c2c's cannot be kept on disk", { path, error: describeError(error) })
      } finally {
        await held?.release()
      }
    },
  }
}
