import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { findCompletedCompaction, isAwaitingSummary, withNote } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { collectUserText, extractBrief } from "../task/parse.ts"
import type { KnownLearnings } from "./known-learnings.ts"
import { chooseLearnings } from "./ranking.ts"
import { renderLearnings } from "./rendering.ts"
import { type Given, withGiven } from "./session-record.ts"
import type { SessionRecords } from "./session-records.ts"

export type RecallDeps = {
  readonly known: KnownLearnings
  readonly records: Pick<SessionRecords, "read" | "update">
  readonly isRoot: (sessionID: string) => Promise<boolean>
  readonly log: Log
  readonly now: () => Date
}

export type Recall = {
  /** @returns the change that puts the learnings into this request, or nothing */
  remind(messages: StoredMessage[]): Promise<Change | undefined>
  /** Whether the session was given any. */
  hasGiven(sessionID: string): boolean
  /** The next request is the summariser's. */
  summaryExpected(sessionID: string): void
  forget(sessionID: string): void
}

/** Where the learnings stand, and by which text they are chosen. `isFirst`: no turn has begun behind it. */
type Anchor = { readonly messageID: string; readonly text: string; readonly isFirst: boolean }

const RECENT_MESSAGES = 5
/** More than this is a paste, in which any learning finds a word. */
const QUERY_CHARACTERS = 8_000

const findAnchor = (messages: readonly StoredMessage[]): Anchor | undefined => {
  const users = messages.filter(({ info }) => info.role === "user")
  // A role prompt has words for everything.
  const texts = users.map(({ parts }) => extractBrief(collectUserText(parts)).slice(0, QUERY_CHARACTERS))
  const compaction = findCompletedCompaction(messages)
  if (compaction) {
    const { requestID, summaryID, summary } = compaction
    // Ids grow with time; of the turns before the compaction some may stand behind its summary.
    const isFirst = !messages.some(({ info }) => info.role === "assistant" && info.id > summaryID)
    return { messageID: requestID, text: [...texts.slice(-RECENT_MESSAGES), summary].join("\n"), isFirst }
  }
  const [first] = users
  if (!first) return undefined
  return {
    messageID: first.info.id,
    text: texts[0] ?? "",
    isFirst: users.length === messages.length && users.length === 1,
  }
}

/**
 * Puts the best few learnings beside the first message of a root session, and beside each compaction's summary. The text
 * is made when the model first sees that message and kept from then on, so that all requests agree up to their end and
 * provider caches hit; a session that began without any gets none before its next compaction.
 */
export const createRecall = ({ known, records, isRoot, log, now }: RecallDeps): Recall => {
  const expected = new Set<string>()
  const given = new Map<string, Given>()
  /** By session, the message beside which the record was last found to have nothing. */
  const emptyAnchors = new Map<string, string>()

  const choose = async (sessionID: string, { messageID, text }: Anchor): Promise<Given | undefined> => {
    const at = now()
    const [all, { sayings }] = await Promise.all([known.read(), records.read(sessionID)])
    // What the message itself teaches stands right beside it.
    const own = new Set(sayings.filter((saying) => saying.messageID === messageID).map(({ key }) => key))
    const others = all.filter(({ key }) => !own.has(key))
    const chosen = chooseLearnings(others, text, { now: at.getTime() })
    const { text: block, shown } = renderLearnings(chosen)
    if (block === "") return undefined
    return { messageID, at: at.toISOString(), text: block, keys: shown.map(({ key }) => key) }
  }

  /** From 1.14 on the summariser's messages come without any summary; before, they do not come here, or with its request. */
  const isForSummary = (sessionID: string, messages: readonly StoredMessage[]): boolean =>
    isAwaitingSummary(messages) || (expected.delete(sessionID) && findCompletedCompaction(messages) === undefined)

  /** What stands beside this message; after a revert that may be an earlier block than the newest. */
  const findGiven = async (sessionID: string, messageID: string): Promise<Given | undefined> => {
    const newest = given.get(sessionID)
    if (newest?.messageID === messageID) return newest
    if (emptyAnchors.get(sessionID) === messageID) return undefined
    const stored = (await records.read(sessionID)).given.find((one) => one.messageID === messageID)
    if (stored) given.set(sessionID, stored)
    else emptyAnchors.set(sessionID, messageID)
    return stored
  }

  const remember = (sessionID: string, chosen: Given): void => {
    const { messageID, keys, text } = chosen
    log.info("learnings given", { sessionID, messageID, learnings: keys.length, characters: text.length })
    given.set(sessionID, chosen)
    void records.update(sessionID, (record) => withGiven(record, chosen))
  }

  return {
    remind: async (messages) => {
      const sessionID = messages[0]?.info.sessionID
      if (sessionID === undefined || isForSummary(sessionID, messages)) return undefined
      const anchor = findAnchor(messages)
      if (!anchor || !(await isRoot(sessionID))) return undefined
      const { messageID } = anchor
      const before = await findGiven(sessionID, messageID)
      if (before) return () => withNote(messages, messageID, before.text)
      const chosen = anchor.isFirst ? await choose(sessionID, anchor) : undefined
      if (!chosen) return undefined
      return () => {
        remember(sessionID, chosen)
        withNote(messages, messageID, chosen.text)
      }
    },
    hasGiven: (sessionID) => given.has(sessionID),
    summaryExpected: (sessionID) => {
      expected.add(sessionID)
    },
    forget: (sessionID) => {
      expected.delete(sessionID)
      given.delete(sessionID)
      emptyAnchors.delete(sessionID)
    },
  }
}
