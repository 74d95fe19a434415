import { readdir, readFile } from "node:fs/promises"
import { setTimeout as wait } from "node:timers/promises"
import type { ZodType } from "zod"
import { errorCode, isAbsent } from "../host/error-code.ts"
import { createFileLock, type HeldLock } from "../host/file-lock.ts"
import { describeError, type Log } from "../host/log.ts"
import { loadZod } from "../host/schema.ts"
import type { StateFolder } from "../host/state-folder.ts"
import { isRepeatable } from "./cache-key.ts"
import { isPassID, type PassRecord, passRecordSchema } from "./pass-record.ts"

const FOLDER = "pass-over"
/** One empty file a pass, so that a session's passes are counted without reading them. */
const BY_ROOT = "by-root"
const CACHE = "cache"
/** A change takes milliseconds; whoever waits longer waits for a process that hangs. */
const LOCK_DEADLINE_MS = 5000
const LOCK_RETRY_MS = 10

/**
 * The passes of a project on disk: `.opencode/state/pass-over/<pass id>/pass.json`, replaced as a whole at each change. What
 * cannot be read is logged and taken for absent; what cannot be written is thrown, since a pass that is not stored is lost.
 */
export type PassStore = {
  /** @throws the file system's own error */
  create(record: PassRecord): Promise<void>
  read(passID: string): Promise<PassRecord | undefined>
  /**
   * Changes a pass, one change at a time over all processes.
   *
   * @param change gives the new record, or undefined to leave it as it is
   * @returns what is stored afterwards; undefined when there is no such pass
   * @throws the file system's own error, or when another process does not let go of the pass
   */
  update(passID: string, change: (record: PassRecord) => PassRecord | undefined): Promise<PassRecord | undefined>
  /** Oldest first. */
  list(): Promise<PassRecord[]>
  /** Passes that a root session and those below it have made, oldest first. @throws when they cannot be listed */
  idsOfRoot(rootSessionID: string): Promise<string[]>
  /** A pass whose stored output answers the question with this key. */
  findAnswer(cacheKey: string): Promise<PassRecord | undefined>
  /** Makes the output of a pass the answer to its question, where it can be. */
  keepAnswer(record: PassRecord): Promise<void>
}

export type PassStoreDeps = {
  readonly state: Pick<StateFolder, "path" | "write">
  readonly log: Pick<Log, "warn">
}

const isName = (text: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(text)

export const createPassStore = ({ state, log }: PassStoreDeps): PassStore => {
  let schema: ZodType<PassRecord> | undefined
  /** The newest change of each pass in this process; the next one waits for it. */
  const changing = new Map<string, Promise<unknown>>()

  const pathOf = (passID: string) => state.path(FOLDER, passID, "pass.json")
  const save = (record: PassRecord) => state.write(pathOf(record.request.pass_over_id), `${JSON.stringify(record)}\n`)

  const read = async (passID: string): Promise<PassRecord | undefined> => {
    if (!isPassID(passID)) return undefined
    const path = pathOf(passID)
    try {
      const text = await readFile(path, "utf8")
      schema ??= passRecordSchema(await loadZod())
      return schema.parse(JSON.parse(text))
    } catch (error) {
      if (!isAbsent(error)) log.warn("stored pass is unusable and ignored", { path, error: describeError(error) })
      return undefined
    }
  }

  const names = async (...folder: string[]): Promise<string[]> => {
    try {
      return (await readdir(state.path(FOLDER, ...folder))).filter(isPassID).sort()
    } catch (error) {
      if (errorCode(error) === "ENOENT") return []
      throw error
    }
  }

  /** @returns undefined when there is no such pass */
  const acquire = async (passID: string): Promise<HeldLock | undefined> => {
    const lock = createFileLock({ path: state.path(FOLDER, passID, "pass.lock") })
    const end = performance.now() + LOCK_DEADLINE_MS
    try {
      for (;;) {
        const held = await lock.tryAcquire()
        if (held) return held
        if (performance.now() > end) throw new Error(`another process has held ${passID} for ${LOCK_DEADLINE_MS} ms`)
        await wait(LOCK_RETRY_MS)
      }
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw error
    }
  }

  const changeLocked: PassStore["update"] = async (passID, change) => {
    const held = isPassID(passID) ? await acquire(passID) : undefined
    if (!held) return undefined
    try {
      const record = await read(passID)
      const changed = record && change(record)
      if (changed) await save(changed)
      return changed ?? record
    } finally {
      await held.release()
    }
  }

  return {
    create: async (record) => {
      const { pass_over_id: passID, metadata } = record.request
      if (!isPassID(passID) || !isName(metadata.root_session_id)) {
        throw new Error(`expected a pass id and a session id, received ${passID} and ${metadata.root_session_id}`)
      }
      // Counted first: a pass that is cut off here is one too many, never one too few.
      await state.write(state.path(FOLDER, BY_ROOT, metadata.root_session_id, passID), "")
      await save(record)
    },
    read,
    update: (passID, change) => {
      const before = changing.get(passID) ?? Promise.resolve()
      const now = before.then(() => changeLocked(passID, change))
      const settled = now.then(
        () => {},
        () => {},
      )
      changing.set(passID, settled)
      void settled.then(() => changing.get(passID) === settled && changing.delete(passID))
      return now
    },
    list: async () => {
      const ids = await names().catch((error: unknown) => {
        log.warn("stored passes cannot be listed", { error: describeError(error) })
        return []
      })
      return (await Promise.all(ids.map(read))).filter((record) => record !== undefined)
    },
    idsOfRoot: (rootSessionID) => (isName(rootSessionID) ? names(BY_ROOT, rootSessionID) : Promise.resolve([])),
    findAnswer: async (cacheKey) => {
      if (!isName(cacheKey)) return undefined
      const path = state.path(FOLDER, CACHE, cacheKey)
      try {
        const record = await read((await readFile(path, "utf8")).trim())
        return record?.output && record.cache_key === cacheKey && isRepeatable(record.output) ? record : undefined
      } catch (error) {
        if (!isAbsent(error)) log.warn("stored answer is unusable and ignored", { path, error: describeError(error) })
        return undefined
      }
    },
    keepAnswer: async ({ cache_key: key, output, request }) => {
      if (key === null || output === null || !isName(key) || !isRepeatable(output)) return
      const path = state.path(FOLDER, CACHE, key)
      try {
        await state.write(path, `${request.pass_over_id}\n`)
      } catch (error) {
        log.warn("answer could not be kept: the question will be asked again", { path, error: describeError(error) })
      }
    },
  }
}
