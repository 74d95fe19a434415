import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import type { ZodType } from "zod"
import { createKeyedQueue } from "../../host/async.ts"
import { acquireWithin, createFileLock, type HeldLock } from "../../host/file-lock.ts"
import { describeError, errorCode, isNotFound, type Log } from "../../host/log.ts"
import { loadZod } from "../../host/schema.ts"
import type { StateFolder } from "../../host/state.ts"
import { readOwnText, readOwnTextSync } from "../../host/untrusted.ts"
import {
  createPassID,
  findForeignResult,
  isPassID,
  isRepeatable,
  isUnfinished,
  type PassRecord,
  passRecordSchema,
} from "./record.ts"

/** Lists of passes: folders with one empty file per pass, so that passes are found and counted without reading them. */
const createPassIndex = (state: Pick<StateFolder, "path">, folder: string) => ({
  put: (passID: string, ...list: string[]): void => {
    mkdirSync(state.path(folder, ...list), { recursive: true })
    writeFileSync(state.path(folder, ...list, passID), "")
  },
  drop: (passID: string, ...list: string[]): void => rmSync(state.path(folder, ...list, passID), { force: true }),
  /** Oldest first. @throws when they cannot be listed, since an empty list would be wrong */
  ids: (...list: string[]): string[] => {
    try {
      return readdirSync(state.path(folder, ...list))
        .filter(isPassID)
        .sort()
    } catch (error) {
      if (errorCode(error) === "ENOENT") return []
      throw error
    }
  },
})

/** Records the process that works on a pass, to distinguish a running pass from an abandoned one. */
export const createPassOwners = (state: Pick<StateFolder, "path" | "prepare">, { waitMs = LOCK_DEADLINE_MS } = {}) => {
  const held = new Map<string, HeldLock>()
  const lockOf = (passID: string) => createFileLock({ path: state.path(FOLDER, passID, "work.lock") })
  return {
    claim: async (passID: string): Promise<void> => {
      await state.prepare(FOLDER, passID)
      const lock = await lockOf(passID).tryAcquire()
      if (lock) held.set(passID, lock)
    },
    release: async (passID: string): Promise<void> => {
      await held.get(passID)?.release()
      held.delete(passID)
    },
    /** A pass of this process was taken over by another one. */
    isLost: async (passID: string) => (await held.get(passID)?.isHeld()) === false,
    isOwned: (passID: string) => lockOf(passID).isTaken(),
    /** Does work on a pass of this process, or on one that no process works on; "busy" while another one does. */
    during: async <T>(passID: string, work: () => Promise<T>): Promise<T | "busy"> => {
      if (await held.get(passID)?.isHeld()) return work()
      const lock = await acquireWithin(lockOf(passID), waitMs)
      if (lock === undefined) return "busy"
      try {
        return await work()
      } finally {
        await lock.release()
      }
    },
  }
}

export type PassOwners = ReturnType<typeof createPassOwners>

const FOLDER = "pass-over"
const BY_ROOT = "by-root"
const BY_SESSION = "by-session"
const UNFINISHED = "unfinished"
const CACHE = "cache"
/**
 * A change takes milliseconds; a longer wait means that another process hangs. A lock left incomplete by a crash is recognised by
 * its age only; it expires before the wait does.
 */
const LOCK_DEADLINE_MS = 10_000
const LOCK_STALE_MS = 3000
const LOCK_HEARTBEAT_MS = 500

type PassStoreDeps = {
  readonly state: Pick<StateFolder, "path" | "prepare" | "write">
  readonly log: Pick<Log, "warn">
}

type Change = [
  /** Returns the new record, or undefined for no change. */
  change: (record: PassRecord) => PassRecord | undefined,
  /** Called when the new record is on disk, before the next change of the pass. */
  onStored?: (record: PassRecord) => Promise<void>,
]

const isName = (text: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(text)

/**
 * The passes of a project on disk: `.opencode/state/pass-over/<pass id>/pass.json`, replaced as a whole at each change. Read
 * errors are logged and count as absent; write errors are thrown, since a pass that is not stored is lost. Lists are oldest first,
 * and throw when they cannot be read.
 */
export const createPassStore = ({ state, log }: PassStoreDeps) => {
  let schema: ZodType<PassRecord> | undefined
  /** Without it the changes of this process would wait for each other by looking at the lock. */
  const changes = createKeyedQueue()

  const index = createPassIndex(state, FOLDER)
  const pathOf = (passID: string) => state.path(FOLDER, passID, "pass.json")
  /** Only a result is flushed to disk. Earlier records survive a killed process without that, which saves time per pass. */
  const save = (record: PassRecord) =>
    state.write(pathOf(record.request.pass_over_id), `${JSON.stringify(record)}\n`, {
      isDurable: record.output !== null,
    })

  const read = async (passID: string): Promise<PassRecord | undefined> => {
    if (!isPassID(passID)) return undefined
    const path = pathOf(passID)
    try {
      const text = readOwnTextSync(path)
      schema ??= passRecordSchema(await loadZod())
      return schema.parse(JSON.parse(text))
    } catch (error) {
      if (!isNotFound(error)) log.warn("stored pass is unusable and ignored", { path, error: describeError(error) })
      return undefined
    }
  }

  const readAll = async (ids: readonly string[]): Promise<PassRecord[]> =>
    (await Promise.all(ids.map(read))).filter((record) => record !== undefined)

  /** @returns undefined when there is no such pass */
  const acquire = async (passID: string): Promise<HeldLock | undefined> => {
    const path = state.path(FOLDER, passID, "pass.lock")
    const lock = createFileLock({ path, heartbeatMs: LOCK_HEARTBEAT_MS, staleAfterMs: LOCK_STALE_MS })
    const held = await acquireWithin(lock, LOCK_DEADLINE_MS).catch((error: unknown) => {
      if (isNotFound(error)) return "none" as const
      throw error
    })
    if (held === undefined) throw new Error(`another process has held ${passID} for ${LOCK_DEADLINE_MS} ms`)
    return held === "none" ? undefined : held
  }

  const changeLocked = async (passID: string, ...[change, onStored]: Change): Promise<PassRecord | undefined> => {
    const held = isPassID(passID) ? await acquire(passID) : undefined
    if (!held) return undefined
    try {
      const record = await read(passID)
      const changed = record && change(record)
      if (changed && !(await held.isHeld()))
        throw new Error(`this process was paused too long and lost its lock on ${passID}`)
      if (changed) await save(changed)
      // Files that are found later make it unfinished again.
      if (changed) index[isUnfinished(changed) ? "put" : "drop"](passID, UNFINISHED)
      if (changed) await onStored?.(changed)
      return changed ?? record
    } finally {
      await held.release()
    }
  }

  const idsOf = (list: string, sessionID: string): string[] => (isName(sessionID) ? index.ids(list, sessionID) : [])

  /** @returns the id of the pass that answers a question; empty when none does */
  const readAnswer = async (cacheKey: string): Promise<string> => {
    try {
      return isName(cacheKey) ? (await readOwnText(state.path(FOLDER, CACHE, cacheKey))).trim() : ""
    } catch (error) {
      if (isNotFound(error)) return ""
      throw error
    }
  }

  const removeIfFinished = async (passID: string, before: Date): Promise<void> => {
    const record = await read(passID)
    if (!record || isUnfinished(record)) return
    // A remaining sandbox holds changes that could not be stored.
    if (existsSync(state.path(FOLDER, passID, "copy"))) return
    if ((record.history.at(-1)?.at ?? "") >= before.toISOString()) return
    const { originating_session_id: session, metadata } = record.request
    await rm(state.path(FOLDER, passID), { recursive: true, force: true })
    index.drop(passID, BY_SESSION, session)
    index.drop(passID, BY_ROOT, metadata.root_session_id)
    const key = record.cache_key
    // A later pass may answer the question by now.
    if (key !== null && (await readAnswer(key)) === passID) await rm(state.path(FOLDER, CACHE, key), { force: true })
  }

  return {
    /** @returns the number of passes made so far when the limit of the root session leaves no place for this one */
    create: async (record: PassRecord): Promise<{ kind: "created" } | { kind: "full"; passes: number }> => {
      const { pass_over_id: passID, originating_session_id: session, metadata } = record.request
      const { root_session_id: root } = metadata
      if (!isPassID(passID) || !isName(root) || !isName(session)) {
        throw new Error(`expected a pass id and session ids, received ${passID}, ${root} and ${session}`)
      }
      await state.prepare(FOLDER, passID)
      // Counted and listed without a wait in between, so that only one of two passes takes the last place.
      const passes = index.ids(BY_ROOT, root).length
      if (passes >= record.policy.values.max_passes_per_session) return { kind: "full", passes }
      // Listed first: after a crash here there is a name too many, never one too few.
      index.put(passID, UNFINISHED)
      index.put(passID, BY_ROOT, root)
      index.put(passID, BY_SESSION, session)
      await save(record)
      return { kind: "created" }
    },
    read,
    /**
     * Changes a pass, one change at a time over all processes.
     *
     * @returns the record stored afterwards; undefined when there is no such pass
     * @throws also when another process holds the pass too long
     */
    update: (passID: string, ...change: Change) => changes.add(passID, () => changeLocked(passID, ...change)),
    /** Passes that are open, undecided or to be announced. */
    listUnfinished: async () => (await readAll(index.ids(UNFINISHED))).filter(isUnfinished),
    listOfSession: async (sessionID: string) => readAll(idsOf(BY_SESSION, sessionID)),
    idsOfSession: (sessionID: string) => idsOf(BY_SESSION, sessionID),
    /** Passes made by a root session and those below it. */
    idsOfRoot: (rootSessionID: string) => idsOf(BY_ROOT, rootSessionID),
    idsUnfinished: () => index.ids(UNFINISHED),
    /** Removes the folder and list entries of a pass that was never written, as after a crash; a written one stays. */
    removeUnwritten: async (passID: string): Promise<void> => {
      if (!isPassID(passID) || existsSync(pathOf(passID))) return
      await rm(state.path(FOLDER, passID), { recursive: true, force: true })
      for (const list of [BY_ROOT, BY_SESSION]) {
        const folder = state.path(FOLDER, list)
        // Without its record the sessions of the pass are unknown.
        for (const session of existsSync(folder) ? readdirSync(folder) : []) index.drop(passID, list, session)
      }
      index.drop(passID, UNFINISHED)
    },
    /** Removes finished passes that have not changed since a time, with all their files. Never throws. */
    removeFinished: async (before: Date): Promise<void> => {
      try {
        const oldest = createPassID(before, "0000")
        for (const id of index.ids().filter((each) => each < oldest)) await removeIfFinished(id, before)
      } catch (error) {
        log.warn("old passes could not be removed", { error: describeError(error) })
      }
    },
    /** Finds a pass whose stored output answers the question with this key. */
    findAnswer: async (key: string): Promise<PassRecord | undefined> => {
      try {
        const record = await read(await readAnswer(key))
        const { output, cache_key } = record ?? {}
        const isAnswer = record && output && cache_key === key && isRepeatable(output) && !findForeignResult(record)
        return isAnswer ? record : undefined
      } catch (error) {
        log.warn("stored answer is unusable and ignored", { key, error: describeError(error) })
        return undefined
      }
    },
    keepAnswer: async ({ cache_key: key, output, request }: PassRecord): Promise<void> => {
      if (key === null || output === null || !isName(key) || !isRepeatable(output)) return
      try {
        await state.write(state.path(FOLDER, CACHE, key), `${request.pass_over_id}\n`)
      } catch (error) {
        log.warn("answer could not be kept: the question will be asked again", { key, error: describeError(error) })
      }
    },
  }
}

export type PassStore = ReturnType<typeof createPassStore>
