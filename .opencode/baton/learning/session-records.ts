import { readdir, rm } from "node:fs/promises"
import { describeError, isAbsent, type Log } from "../host/log.ts"
import { createSessionStore, type StateFolder } from "../host/state.ts"
import { emptyRecord, isWaiting, type SessionRecord, sessionRecordSchema } from "./session-record.ts"

/**
 * The records of a project's sessions. No call throws; what the disk refuses is kept in memory. Another process may work on
 * the same session (`opencode run --session` beside a TUI), so that the disk is asked each time.
 */
export type SessionRecords = {
  read(sessionID: string): Promise<SessionRecord>
  /** One change after the other, on disk when it resolves. @returns the record as it is then */
  update(sessionID: string, change: (record: SessionRecord) => SessionRecord): Promise<SessionRecord>
  /** Whether memory alone has it as it is. */
  isUnsaved(sessionID: string): boolean
  /** Those with something that did not reach the outbox, of this process or of an earlier one. */
  waiting(): Promise<SessionRecord[]>
  all(): Promise<SessionRecord[]>
  forget(sessionID: string): Promise<void>
}

const FOLDER = "learning/sessions"
/** A file for each session with something that waits, so that a start need not look into all of them. */
const MARKERS = "learning/waiting"
const SUFFIX = ".json"

export const createSessionRecords = (deps: { state: StateFolder; log: Log; pid: number }): SessionRecords => {
  const { state, log, pid } = deps
  const store = createSessionStore({ state, folder: FOLDER, schema: sessionRecordSchema, log })
  /** What the disk refused. */
  const unsaved = new Map<string, SessionRecord>()
  /** Changes that are under way, each session's one behind the other. */
  const changing = new Map<string, Promise<unknown>>()
  const marker = (sessionID: string) => state.path(MARKERS, sessionID)

  const list = async (folder: string): Promise<string[]> => {
    try {
      return (await readdir(state.path(folder))).filter((name) => /^[\w-]+(?:\.json)?$/.test(name))
    } catch (error) {
      if (!isAbsent(error)) log.warn("records cannot be listed", { folder, error: describeError(error) })
      return []
    }
  }

  const stored = async (sessionID: string): Promise<SessionRecord | undefined> =>
    unsaved.get(sessionID) ?? (await store.read(sessionID))

  const settled = async (sessionID: string): Promise<SessionRecord | undefined> => {
    await changing.get(sessionID)
    return stored(sessionID)
  }

  const afterOthers = async <T>(sessionID: string, work: () => Promise<T>): Promise<T> => {
    const mine = (changing.get(sessionID) ?? Promise.resolve()).then(work)
    // Whoever asked for the work before this one hears of its failure.
    const over = mine.catch(() => {})
    changing.set(sessionID, over)
    try {
      return await mine
    } finally {
      if (changing.get(sessionID) === over) changing.delete(sessionID)
    }
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
    read: async (sessionID) => (await settled(sessionID)) ?? emptyRecord(sessionID, pid),
    update: (sessionID, change) =>
      afterOthers(sessionID, async () => {
        const before = (await stored(sessionID)) ?? emptyRecord(sessionID, pid)
        const after = { ...change(before), pid }
        if (isWaiting(after) && !isWaiting(before)) await mark(sessionID, true)
        if (await store.write(sessionID, after)) unsaved.delete(sessionID)
        else unsaved.set(sessionID, after)
        if (!isWaiting(after) && isWaiting(before)) await mark(sessionID, false)
        return after
      }),
    isUnsaved: (sessionID) => unsaved.has(sessionID),
    waiting: async () => {
      const sessionIDs = new Set([...(await list(MARKERS)), ...unsaved.keys()])
      const records = await Promise.all([...sessionIDs].map(settled))
      return records.filter((record) => record !== undefined).filter(isWaiting)
    },
    all: async () => {
      const names = (await list(FOLDER)).filter((name) => name.endsWith(SUFFIX))
      const records = await Promise.all(names.map((name) => store.read(name.slice(0, -SUFFIX.length))))
      return records.filter((record) => record !== undefined)
    },
    forget: (sessionID) =>
      afterOthers(sessionID, async () => {
        unsaved.delete(sessionID)
        await mark(sessionID, false)
        await store.remove(sessionID)
      }),
  }
}
