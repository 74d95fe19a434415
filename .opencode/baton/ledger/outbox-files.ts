import { readdir, readFile, rename, rm } from "node:fs/promises"
import { describeError, errorCode, isAbsent } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import type { ParkedEntry } from "./outbox-entry.ts"
import { type OutboxRecord, type ParsedRecord, parseRecord, renderRecord } from "./outbox-record.ts"
import { OUTBOX_FOLDER, RECORD_ENDING } from "./waiting-records.ts"

const REASON = ".reason"
const STAMP_DIGITS = 13
const COUNT_DIGITS = 6
const NAME = /^(\d{13})-(\d{6})-/
/** Far more than ever waits while the ledger is within reach. */
const MAX_OWN = 200

/** The outbox on disk: one file per record, in the order of their names. */
export type OutboxFiles = {
  readonly lockPath: string
  /** A name that sorts behind every name given before, by an earlier process too. @param now epoch ms */
  nextName(now: number, id: string): Promise<string>
  /** Names of the records that wait, oldest first. */
  list(): Promise<string[]>
  /** @throws when zod cannot be loaded */
  read(
    name: string,
  ): Promise<ParsedRecord | { readonly kind: "gone" } | { readonly kind: "unreadable"; reason: string }>
  write(name: string, record: OutboxRecord): Promise<void>
  remove(name: string): Promise<void>
  /** Puts a record aside with the reason, byte for byte as it is. @param since ISO 8601 */
  park(name: string, reason: string, since: string): Promise<void>
  listParked(): Promise<ParkedEntry[]>
  /**
   * The records that wait before this name, oldest first. Where the disk does not tell, the newest 200 of those that were
   * written here and still waited when last looked for. Never rejects.
   */
  before(name: string): Promise<NamedRecord[]>
}

export type NamedRecord = { readonly name: string; readonly record: OutboxRecord }

/** Undefined when there is no such folder. */
const listRecords = async (folder: string): Promise<string[] | undefined> => {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(RECORD_ENDING)).sort((a, b) => (a < b ? -1 : 1))
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

const readReason = async (path: string): Promise<{ reason: string; since: string }> => {
  try {
    const [since = "", ...reason] = (await readFile(path, "utf8")).trim().split("\n")
    return { reason: reason.join("\n"), since }
  } catch (error) {
    if (isAbsent(error)) return { reason: "unknown: the note beside the file is missing", since: "" }
    throw error
  }
}

export const createOutboxFiles = (state: Pick<StateFolder, "path" | "write">): OutboxFiles => {
  const waiting = (name = "") => state.path(OUTBOX_FOLDER, name)
  const parked = (name = "") => state.path(OUTBOX_FOLDER, "parked", name)
  const own = new Map<string, OutboxRecord>()
  let last: { stamp: number; count: number } | undefined

  const remember = (name: string, record: OutboxRecord): void => {
    own.set(name, record)
    const [oldest] = own.keys()
    if (own.size > MAX_OWN && oldest !== undefined) own.delete(oldest)
  }

  /** Forgets what another process has delivered. Undefined without the folder, which tells nothing: it may come back. */
  const list = async (): Promise<string[] | undefined> => {
    const before = [...own.keys()]
    const names = await listRecords(waiting())
    if (names === undefined) return undefined
    const found = new Set(names)
    for (const name of before) if (!found.has(name)) own.delete(name)
    return names
  }

  const read: OutboxFiles["read"] = async (name) => {
    let text: string
    try {
      text = await readFile(waiting(name), "utf8")
    } catch (error) {
      if (isAbsent(error)) return { kind: "gone" }
      if (errorCode(error) === "EISDIR") return { kind: "malformed", reason: "it is a folder" }
      return { kind: "unreadable", reason: describeError(error) }
    }
    return await parseRecord(text)
  }

  const readLast = async (): Promise<{ stamp: number; count: number }> => {
    const names = (await listRecords(waiting()).catch(() => undefined)) ?? []
    const [, stamp, count] = names.map((name) => NAME.exec(name)).findLast((match) => match !== null) ?? []
    return { stamp: Number(stamp ?? 0), count: Number(count ?? 0) }
  }

  return {
    lockPath: waiting("lock"),
    nextName: async (now, id) => {
      last ??= await readLast()
      // The clock may go back; the order may not.
      last = { stamp: Math.max(now, last.stamp), count: now > last.stamp ? 0 : last.count + 1 }
      const stamp = String(last.stamp).padStart(STAMP_DIGITS, "0")
      return `${stamp}-${String(last.count).padStart(COUNT_DIGITS, "0")}-${id}${RECORD_ENDING}`
    },
    list: async () => (await list()) ?? [],
    read,
    write: async (name, record) => {
      await state.write(waiting(name), renderRecord(record))
      remember(name, record)
    },
    remove: async (name) => {
      await rm(waiting(name), { force: true })
      own.delete(name)
    },
    park: async (name, reason, since) => {
      await state.write(parked(`${name}${REASON}`), `${since}\n${reason}\n`)
      await rename(waiting(name), parked(name))
      own.delete(name)
    },
    listParked: async () =>
      await Promise.all(
        ((await listRecords(parked())) ?? []).map(async (name) => {
          const file = parked(name)
          const note = await readReason(`${file}${REASON}`)
          const text = await readFile(file, "utf8").catch(() => "")
          const parsed = await parseRecord(text)
          return { file, ...note, ...(parsed.kind === "record" ? { entry: parsed.record.entry } : {}) }
        }),
      ),
    before: async (name) => {
      const listed = await list().catch(() => undefined)
      const found: NamedRecord[] = []
      for (const earlier of (listed ?? [...own.keys()].sort()).filter((one) => one < name)) {
        const parsed = await read(earlier).catch(() => undefined)
        if (listed && parsed?.kind === "gone") continue
        const record = parsed?.kind === "record" ? parsed.record : own.get(earlier)
        if (record) found.push({ name: earlier, record })
      }
      return found
    },
  }
}
