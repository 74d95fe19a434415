import { randomBytes } from "node:crypto"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import { collectUserText } from "../host/messages.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import { onOneLine } from "../host/text.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { handoffTitle } from "./delivery.ts"
import { findMarker, type Marker } from "./draft.ts"
import { type LoadedFiles, renderLeftOut } from "./files.ts"
import type { HandoffRecord, HandoffRecords } from "./records.ts"
import { readReferences, type WrittenReference } from "./references.ts"

const STAMP = /^prt_([0-9a-f]{12})/
const RANDOM_BYTES = 7

/** OpenCode's time stamp: milliseconds times 4,096, in 48 bits. */
const stampOf = (ms: number): number => (ms * 4_096) % 2 ** 48

/**
 * Makes ids for parts added at the end of a message. OpenCode orders a message's parts by id and refuses an id in use: `prt_`, 12
 * hex digits that grow with time, 14 random characters.
 *
 * @param existing ids of the message's parts
 * @param now epoch ms; used when no existing id has that form
 */
export const nextPartIDs = (existing: readonly string[], count: number, now: number): string[] => {
  // Hex digits of one length sort as their numbers.
  const last = existing
    .flatMap((id) => STAMP.exec(id)?.[1] ?? [])
    .sort()
    .at(-1)
  const first = last === undefined ? stampOf(now) : Number.parseInt(last, 16) + 1
  return Array.from({ length: count }, (_, index) => {
    const stamp = (first + index).toString(16).padStart(12, "0")
    return `prt_${stamp}${randomBytes(RANDOM_BYTES).toString("hex")}`
  })
}

type AttachmentDeps = {
  sessions: Pick<Sessions, "messages" | "info" | "rename">
  records: HandoffRecords
  loadFiles: (references: readonly WrittenReference[]) => Promise<LoadedFiles>
  outbox: Pick<Outbox, "add">
  log: Log
  now: () => Date
}

type Draft = {
  readonly from: string
  readonly references: readonly WrittenReference[]
  /** The files that were left out when it was made: its text does not name them. */
  readonly leftOut: LoadedFiles["leftOut"]
  /** Settles when the record and the ledger have the arrival, or have failed to store it. */
  readonly recorded: Promise<void>
  /** Settles when the session has its title, or has none that it could be given. */
  readonly titled: Promise<void>
}

type Loaded = { readonly from: string; readonly texts: readonly string[]; readonly counts: Record<string, number> }

/** The message waits this long for its record, which goes on after it. */
const RECORD_DEADLINE_MS = 500
/** A request waits this long for files that were late for its message. */
const LATE_DEADLINE_MS = 500

/** A message waits this long for its session's title: without it OpenCode asks a model for one, with the files. */
const TITLE_DEADLINE_MS = 2_000

/** OpenCode's own title for a session that has none yet. */
const DEFAULT_TITLE = /^New session - \d{4}-\d{2}-\d{2}T/

/** Enough to tell whether a session has a message besides the arriving one. */
const FIRST_MESSAGES = 2

/** Adds the files that a draft names to the message that contains it, so that the model sees them at its first step, once. */
export const createFileAttachment = ({ sessions, records, loadFiles, outbox, log, now }: AttachmentDeps) => {
  const pending = new Map<string, Draft>()
  /** Files that have not come to their message. */
  const late = new Map<string, { readonly messageID: string; readonly loaded: Promise<Loaded | undefined> }>()

  /** A draft begins a session; later on its text is a quotation. Reverted messages are already deleted here. */
  const isFirstMessage = async (sessionID: string, messageID: string): Promise<boolean> => {
    const answer = await sessions.messages(sessionID, FIRST_MESSAGES)
    if (answer.kind === "failed") {
      log.warn("cannot tell whether the draft begins its session: it is taken for one that does", {
        sessionID,
        reason: answer.reason,
      })
      return true
    }
    return !answer.value.messages.some(({ info }) => info.id !== messageID)
  }

  /**
   * Finds the handoff of this message; undefined when the draft was sent elsewhere and is only quoted here. A draft that the user
   * edited is recognised by its session only.
   */
  const findRecord = (
    all: readonly HandoffRecord[],
    marker: Marker,
    { sessionID, text }: { sessionID: string; text: string },
  ): HandoffRecord | undefined => {
    const ofSession = all.filter(({ from }) => from === marker.from)
    const unedited = ofSession.filter(({ draft }) => text.includes(draft.trim()))
    const own = unedited.length > 0 ? unedited : ofSession
    const isHere = ({ arrivals }: HandoffRecord) => arrivals.some((arrival) => arrival.sessionID === sessionID)
    return (
      own.findLast(isHere) ??
      own.findLast(({ arrivals }) => arrivals.length === 0) ??
      (marker.isFirst ? own.at(-1) : undefined)
    )
  }

  /** OpenCode asks a model for a title only for a session that has none, after the message's hooks (seen on 1.2.15 and 1.18.33). */
  const giveTitle = async (sessionID: string, goal: string): Promise<void> => {
    const session = await sessions.info(sessionID)
    if (session.kind === "ok" && !DEFAULT_TITLE.test(session.value.title)) return
    const given = session.kind === "ok" ? await sessions.rename(sessionID, handoffTitle(goal)) : session
    if (given.kind === "failed")
      log.warn("the session gets its title from a model, which is sent the handoff's files", {
        sessionID,
        reason: given.reason,
      })
  }

  const recordArrival = async (record: HandoffRecord, sessionID: string): Promise<void> => {
    const { arrivals, taskID, goal } = record
    if (arrivals.some((arrival) => arrival.sessionID === sessionID)) return
    const message = `Handoff to ${sessionID}: ${onOneLine(goal)}`
    try {
      await Promise.all([
        records.write({ ...record, arrivals: [...arrivals, { sessionID, at: now().toISOString() }] }),
        taskID === undefined ? undefined : outbox.add({ kind: "log", taskID, message }),
      ])
    } catch (error) {
      log.error("the arrival of a handoff was not recorded everywhere", { sessionID, error: describeError(error) })
    }
  }

  /** Returns the draft whose files this message should load: its own, whose arrival is recorded, or one that is still pending. */
  const draftIn = async (message: UserMessage, text: string): Promise<Draft | undefined> => {
    const { sessionID } = message
    const marker = findMarker(text)
    if (!marker) return pending.get(sessionID)
    if (marker.from === sessionID || !(await isFirstMessage(sessionID, message.id))) return undefined
    const all = await records.list()
    const record = findRecord(all, marker, { sessionID, text })
    if (!record && all.some(({ from }) => from === marker.from)) {
      log.info("a draft that was sent before is only quoted here: no files added", { sessionID, from: marker.from })
      return undefined
    }
    const recorded = record ? recordArrival(record, sessionID) : Promise.resolve()
    const titled = giveTitle(sessionID, record?.goal ?? "go on")
    return { from: marker.from, references: readReferences(text), leftOut: record?.leftOut ?? [], recorded, titled }
  }

  const load = async (message: UserMessage, text: string): Promise<Loaded | undefined> => {
    const { sessionID } = message
    const draft = await draftIn(message, text)
    if (!draft) return undefined
    pending.set(sessionID, draft)
    const { blocks, references, leftOut: leftOutNow } = await loadFiles(draft.references)
    const named = new Set([...references, ...leftOutNow].map(({ path }) => path))
    const leftOut = [...draft.leftOut.filter(({ path }) => !named.has(path)), ...leftOutNow]
    // On 1.2.15 `run` may end right after the message, without notifying its plugins.
    await Promise.all([withDeadline(draft.recorded, RECORD_DEADLINE_MS), withDeadline(draft.titled, TITLE_DEADLINE_MS)])
    const texts = blocks.flatMap(({ header, content }) => [header, content])
    if (leftOut.length > 0)
      texts.push(`Not loaded with this message; read what you need with the Read tool:\n${renderLeftOut(leftOut)}`)
    return { from: draft.from, texts, counts: { files: blocks.length, leftOut: leftOut.length } }
  }

  const addTo = (parts: Part[], texts: readonly string[], place: { sessionID: string; messageID: string }): void => {
    const ids = nextPartIDs(
      parts.map(({ id }) => id),
      texts.length,
      now().getTime(),
    )
    for (const [index, text] of texts.entries())
      parts.push({ id: ids[index] ?? "", ...place, type: "text", synthetic: true, text })
  }

  const attachFiles = async (message: UserMessage, parts: Part[]): Promise<Change | undefined> => {
    const { sessionID, id: messageID } = message
    const loaded = load(message, collectUserText(parts))
    late.set(sessionID, { messageID, loaded })
    const files = await loaded
    if (files) {
      return () => {
        late.delete(sessionID)
        addTo(parts, files.texts, { sessionID, messageID })
        pending.delete(sessionID)
        log.info("files of the handoff added", { sessionID, from: files.from, ...files.counts })
      }
    }
    late.delete(sessionID)
    return undefined
  }

  /** Files that came too late for their message stand in its requests all the same. */
  const attachLate = async (sessionID: string, messages: readonly StoredMessage[]): Promise<Change | undefined> => {
    const begun = late.get(sessionID)
    const message = messages.find(({ info }) => info.id === begun?.messageID)
    if (!begun || !message) return undefined
    const outcome = await withDeadline(begun.loaded, LATE_DEADLINE_MS)
    const files = outcome.kind === "done" ? outcome.value : undefined
    return files && (() => addTo(message.parts, files.texts, { sessionID, messageID: begun.messageID }))
  }

  return {
    /** @returns the change that adds the files; undefined for a message without a draft */
    attachFiles,
    attachLate,
    /** Files of a draft could not be added in time; the next message gets them. */
    isPending: (sessionID: string): boolean => pending.has(sessionID),
    forget: (sessionID: string): void => {
      pending.delete(sessionID)
      late.delete(sessionID)
    },
  }
}
