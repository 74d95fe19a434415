import { readdir, rm } from "node:fs/promises"
import { isAbsent } from "../host/error-code.ts"
import { describeError, type Log } from "../host/log.ts"
import { createSessionStore } from "../host/session-store.ts"
import type { StateFolder } from "../host/state-folder.ts"
import { emptyRecord, isWaiting, type SessionRecord, sessionRecordSchema } from "./session-record.ts"

/** The records of a project's sessions. No call throws; what the disk refuses is kept in memory. */
export type SessionRecords = {
  read(sessionID: string): Promise<SessionRecord>
  /** One change after the other, on disk when it resolves. @returns the record as it is then */
  update(sessionID: string, change: (record: SessionRecord) => SessionRecord): Promise<SessionRecord>
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
  const known = new Map<string, Promise<SessionRecord>>()
  const marker = (sessionID: string) => state.path(MARKERS, sessionID)

  const list = async (folder: string): Promise<string[]> => {
    try {
      return (await readdir(state.path(folder))).filter((name) => /^[\w-]+(?:\.json)?$/.test(name))
    } catch (error) {
      if (!isAbsent(error)) log.warn("records cannot be listed", { folder, error: describeError(error) })
      return []
    }
  }

  const read = (sessionID: string): Promise<SessionRecord> => {
    const found = known.get(sessionID) ?? store.read(sessionID).then((record) => record ?? emptyRecord(sessionID, pid))
    known.set(sessionID, found)
    return found
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
    read,
    update: (sessionID, change) => {
      const changed = read(sessionID).then(async (before) => {
        const after = { ...change(before), pid }
        if (isWaiting(after) && !isWaiting(before)) await mark(sessionID, true)
        await store.write(sessionID, after)
        if (!isWaiting(after) && isWaiting(before)) await mark(sessionID, false)
        return after
      })
      known.set(sessionID, changed)
      return changed
    },
    waiting: async () => {
      const records = await Promise.all(
        (await list(MARKERS)).map((sessionID) => known.get(sessionID) ?? store.read(sessionID)),
      )
      return records.filter((record) => record !== undefined).filter(isWaiting)
    },
    all: async () => {
      const names = (await list(FOLDER)).filter((name) => name.endsWith(SUFFIX))
      const records = await Promise.all(names.map((name) => store.read(name.slice(0, -SUFFIX.length))))
      return records.filter((record) => record !== undefined)
    },
    forget: async (sessionID) => {
      known.delete(sessionID)
      await mark(sessionID, false)
      await store.remove(sessionID)
    },
  }
}
