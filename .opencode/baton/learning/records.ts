import { readdir, rm } from "node:fs/promises"
import { createKeyedQueue } from "../host/async.ts"
import { describeError, isNotFound, type Log } from "../host/log.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { createJsonStore, type StateFolder } from "../host/state.ts"
import { cutText } from "../host/text.ts"
import { LEARNING_TYPES } from "./signals.ts"

export type LearningProject = {
  /** Its name in prog. */
  readonly name: string
  /** Distinguishes it from others of that name; the same for all worktrees of a repository. */
  readonly folder: string
  /** Learnings of other folders are ignored, unless the user named the project. */
  readonly onlyFolder: string | undefined
}

/** A statement of the user that is to be learned. */
const statementSchema = (z: Zod) =>
  z.object({
    key: z.string(),
    type: z.enum(LEARNING_TYPES),
    sentence: z.string(),
    messageID: z.string(),
    /** ISO 8601. */
    at: z.string(),
    taskID: z.string().optional(),
    /** `waiting`: not in the outbox yet, or changed since. `undone`: its message is not shown any more. */
    state: z.enum(["waiting", "stored", "undone"]),
    /** The agent's work before the message, in a few words; absent until it has been looked up. */
    answered: z.string().optional(),
    files: z.array(z.string()).readonly(),
    confirmed: z.boolean(),
  })

export type Statement = Parsed<typeof statementSchema>

/** The learnings given to the model with one message. */
const injectedSchema = (z: Zod) =>
  z.object({
    /** The first user message, or the compaction request. */
    messageID: z.string(),
    /** ISO 8601. */
    at: z.string(),
    text: z.string(),
    keys: z.array(z.string()).readonly(),
  })

export type Injected = Parsed<typeof injectedSchema>

const sessionRecordSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    /** The process responsible for the record. */
    pid: z.number(),
    /** OpenCode has not told yet whether the user writes in this session, or a model to its child. */
    isUnverified: z.boolean().optional(),
    sayings: z.array(statementSchema(z)).readonly(),
    given: z.array(injectedSchema(z)).readonly(),
  })

/** `.opencode/state/learning/sessions/<sessionID>.json`; only for sessions with statements or given learnings. */
export type SessionRecord = Parsed<typeof sessionRecordSchema>

/** Different statements that are learned from a session in one day. */
export const MAX_LEARNINGS = 10
/** A session may have many compactions; only the newest entries are read again. */
const KEPT_GIVEN = 5

const emptyRecord = (sessionID: string, pid: number): SessionRecord => ({
  version: 1,
  sessionID,
  pid,
  sayings: [],
  given: [],
})

const isWaiting = ({ sayings }: SessionRecord): boolean => sayings.some(({ state }) => state === "waiting")

const isSaid = ({ state }: Statement): boolean => state !== "undone"

const dayOf = ({ at }: Pick<Statement, "at">): string => cutText(at, "2026-01-01".length)

/** The statements that make way when the day of `newest` has too many: those of the least type first, and of these the newest. */
const surplusOf = (sayings: readonly Statement[], newest: Statement): ReadonlySet<string> => {
  const ofDay = sayings.filter((statement) => isSaid(statement) && dayOf(statement) === dayOf(newest))
  const different = ofDay.filter(({ key }, at) => ofDay.findIndex((one) => one.key === key) === at)
  const byType = different.toSorted(
    (one, other) => LEARNING_TYPES.indexOf(one.type) - LEARNING_TYPES.indexOf(other.type),
  )
  return new Set(byType.slice(MAX_LEARNINGS).map(({ key }) => key))
}

/**
 * Adds what a message taught; of a day's at most ten different statements per session, those of the most important types.
 *
 * @returns the record, the number left out, and the statements that made way
 */
export const withStatements = (
  record: SessionRecord,
  added: readonly Statement[],
): { record: SessionRecord; leftOut: number; displaced: readonly Statement[] } => {
  const displaced: Statement[] = []
  let sayings = record.sayings
  for (const statement of added) {
    const all = [...sayings, statement]
    const surplus = surplusOf(all, statement)
    const isSurplus = (one: Statement): boolean =>
      isSaid(one) && surplus.has(one.key) && dayOf(one) === dayOf(statement)
    displaced.push(...all.filter(isSurplus))
    sayings = all.filter((one) => !isSurplus(one))
  }
  const isNew = (statement: Statement): boolean => added.includes(statement)
  return {
    record: { ...record, sayings },
    leftOut: displaced.filter(isNew).length,
    displaced: displaced.filter((statement) => !isNew(statement)),
  }
}

/** Withdraws the confirmation of the newest statement's message, because the user objects to the work that followed it. */
export const withObjection = (record: SessionRecord): SessionRecord => {
  const messageID = record.sayings.findLast(isSaid)?.messageID
  const sayings = record.sayings.map((statement): Statement => {
    const isOpposed = statement.messageID === messageID && statement.confirmed
    return isOpposed ? { ...statement, confirmed: false, state: "waiting" } : statement
  })
  return { ...record, sayings }
}

/** @param undone ids of messages that are not shown any more; `redone`: that are shown again */
export const withUndo = (
  record: SessionRecord,
  { undone, redone }: { undone: ReadonlySet<string>; redone: ReadonlySet<string> },
): SessionRecord => ({
  ...record,
  sayings: record.sayings.map((statement): Statement => {
    if (isSaid(statement)) return undone.has(statement.messageID) ? { ...statement, state: "undone" } : statement
    return redone.has(statement.messageID) ? { ...statement, state: "waiting" } : statement
  }),
})

export const withGiven = (record: SessionRecord, given: Injected): SessionRecord => ({
  ...record,
  given: [...record.given.filter(({ messageID }) => messageID !== given.messageID), given].slice(-KEPT_GIVEN),
})

export type SessionRecords = ReturnType<typeof createSessionRecords>

const FOLDER = "learning/sessions"
/** One file per session with waiting statements, so that a start need not read all records. */
const MARKERS = "learning/waiting"

/**
 * The records of a project's sessions. No call throws; what cannot be written is kept in memory. Another process may work on the
 * same session (`opencode run --session` beside a TUI), so each call reads the disk.
 */
export const createSessionRecords = (deps: { state: StateFolder; log: Log; pid: number }) => {
  const { state, log, pid } = deps
  const store = createJsonStore({ state, folder: FOLDER, schema: sessionRecordSchema, log })
  const changes = createKeyedQueue()
  const marker = (sessionID: string) => state.path(MARKERS, sessionID)

  const marked = async (): Promise<string[]> => {
    try {
      return (await readdir(state.path(MARKERS))).filter((name) => /^[\w-]+$/.test(name))
    } catch (error) {
      if (!isNotFound(error)) log.warn("records cannot be listed", { folder: MARKERS, error: describeError(error) })
      return []
    }
  }

  const readAll = async (sessionIDs: Iterable<string>): Promise<SessionRecord[]> => {
    const records = await Promise.all([...sessionIDs].map(read))
    return records.filter((record) => record !== undefined)
  }

  const read = async (sessionID: string): Promise<SessionRecord | undefined> => {
    await changes.idle(sessionID)
    return store.read(sessionID)
  }

  const mark = async (sessionID: string, waits: boolean): Promise<void> => {
    try {
      if (waits) await state.write(marker(sessionID), "")
      else await rm(marker(sessionID), { force: true })
    } catch (error) {
      log.warn("a session could not be marked", { sessionID, waits, error: describeError(error) })
    }
  }

  return {
    read: async (sessionID: string): Promise<SessionRecord> => (await read(sessionID)) ?? emptyRecord(sessionID, pid),
    /** Changes are serialised and on disk when this resolves; returning the same record changes nothing. @returns the new record */
    update: (sessionID: string, change: (record: SessionRecord) => SessionRecord): Promise<SessionRecord> =>
      changes.add(sessionID, async () => {
        const before = (await store.read(sessionID)) ?? emptyRecord(sessionID, pid)
        const changed = change(before)
        if (changed === before) return before
        const after = { ...changed, pid }
        if (isWaiting(after) && !isWaiting(before)) await mark(sessionID, true)
        await store.write(sessionID, after)
        if (!isWaiting(after) && isWaiting(before)) await mark(sessionID, false)
        return after
      }),
    /** True when the current record is in memory only. */
    isUnsaved: store.isUnsaved,
    /** Records with statements that did not reach the outbox, of this process or an earlier one. */
    waiting: async (): Promise<SessionRecord[]> => {
      const unsaved = (await store.keys()).filter(store.isUnsaved)
      return (await readAll(new Set([...(await marked()), ...unsaved]))).filter(isWaiting)
    },
    all: async (): Promise<SessionRecord[]> => readAll(await store.keys()),
    forget: (sessionID: string): Promise<void> =>
      changes.add(sessionID, async () => {
        await mark(sessionID, false)
        await store.remove(sessionID)
      }),
  }
}
