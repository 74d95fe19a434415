import { createHash } from "node:crypto"
import { readdir, rename, rm } from "node:fs/promises"
import { basename } from "node:path"
import { lazy } from "../host/async.ts"
import { describeError, isNotFound } from "../host/log.ts"
import { OUTBOX_FOLDER, RECORD_ENDING } from "../host/project.ts"
import { loadZod, type Parsed, type Zod } from "../host/schema.ts"
import type { StateFolder } from "../host/state.ts"
import { cutText } from "../host/text.ts"
import { RefusedFile, readOwnText } from "../host/untrusted.ts"

/**
 * The ordering key of an entry: its task, or the project of a learning. Entries of one key are delivered in order; a waiting one
 * blocks only its own key.
 */
export const orderingKey = (entry: { readonly taskID: string } | { readonly project: string }): string =>
  "taskID" in entry ? entry.taskID : `the learnings of ${entry.project}`

export const logFields = (entry: OutboxEntry): { kind: OutboxEntry["kind"]; taskID?: string; project?: string } =>
  "taskID" in entry ? { kind: entry.kind, taskID: entry.taskID } : { kind: entry.kind, project: entry.project }

/** "log of ts-b54507", "learning of demo" */
export const describeEntry = (entry: OutboxEntry): string =>
  `${entry.kind} of ${"taskID" in entry ? entry.taskID : entry.project}`

/** A record's id for people: the name of its file without the ending. */
export const recordID = (file: string): string => basename(file, RECORD_ENDING)

export type ParkedEntry = {
  /** Absolute path of the parked file. */
  readonly file: string
  /** Absent if the file could not be parsed. */
  readonly record?: OutboxRecord
  readonly reason: string
  /** ISO 8601. */
  readonly since: string
}

type OutboxStatus = {
  readonly waiting: number
  /** The reason why the last delivery failed; absent if it did not. */
  readonly lastFailure?: string
  readonly parked: readonly ParkedEntry[]
}

/** A queue of ledger writes: each is on disk before it is tried, and reaches the ledger later, in order and once. */
export type Outbox = {
  /** Resolves when the entry is durably on disk, or is held in memory since the disk refused it. Never rejects. */
  add(entry: OutboxEntry): Promise<void>
  /** The entries of an ordering key on disk (see `orderingKey`), oldest first; undefined if they cannot be read, which is logged. */
  pending(key: string): Promise<OutboxEntry[] | undefined>
  /** Delivers the waiting entries in the background. Never rejects; may be called at any time. */
  drain(): Promise<void>
  /**
   * Delivers until nothing waits, nothing more can be done now, or the deadline (ms) passes.
   *
   * @param unsavedMs the deadline while records are in memory alone, since the disk refuses them
   */
  flush(deadlineMs: number, unsavedMs?: number): Promise<void>
  status(): Promise<OutboxStatus>
  /** Stops the retry timer. Waiting entries stay on disk. */
  stop(): void
}

type ParsedRecord =
  | { readonly kind: "record"; readonly record: OutboxRecord }
  | { readonly kind: "malformed"; readonly reason: string }

const recordSchema = (z: Zod) => {
  const taskID = z.string().min(1)
  const learningName = { project: z.string().min(1), folder: z.string(), key: z.string().min(1) }
  return z.object({
    version: z.literal(1),
    /** ISO 8601. */
    createdAt: z.iso.datetime(),
    entry: z.discriminatedUnion("kind", [
      /** The message names its record: an equal line in the task's log is the same one. */
      z.object({ kind: z.literal("log"), taskID, message: z.string() }),
      z.object({
        kind: z.literal("handoff"),
        taskID,
        sessionID: z.string(),
        /** The handoff text, without markers. */
        section: z.string(),
        /** The session's copy of the original specification; restores one that an agent's `prog desc` removed. */
        specification: z.string().optional(),
      }),
      z.object({
        kind: z.literal("learning"),
        ...learningName,
        summary: z.string(),
        /** The type first. */
        concepts: z.array(z.string()).readonly(),
        files: z.array(z.string()).readonly(),
        answered: z.string().optional(),
        confirmed: z.boolean(),
        source: z.object({
          /** ISO 8601. */
          at: z.string(),
          sessionID: z.string(),
          messageID: z.string(),
          taskID: z.string().optional(),
        }),
      }),
      z.object({
        kind: z.literal("retire"),
        ...learningName,
        as: z.enum(["forgotten", "superseded"]),
        /** For the user; one line. */
        reason: z.string(),
        /** The message that superseded it. */
        by: z.string().optional(),
      }),
      z.object({ kind: z.literal("withdraw"), ...learningName, messageID: z.string().min(1) }),
    ]),
  })
}

/** An entry on disk. */
export type OutboxRecord = Parsed<typeof recordSchema>
/** A write that must reach the ledger. A new kind is a new member of the schema and a new case in outbox-delivery.ts. */
export type OutboxEntry = OutboxRecord["entry"]

const loadSchema = lazy(async () => recordSchema(await loadZod()))

/** @throws when zod cannot be loaded, which says nothing about the record */
const parseRecord = async (text: string): Promise<ParsedRecord> => {
  const schema = await loadSchema()
  try {
    return { kind: "record", record: schema.parse(JSON.parse(text)) }
  } catch (error) {
    const what = error instanceof Error ? cutText(error.message.replaceAll(/\s+/g, " "), 300) : String(error)
    return { kind: "malformed", reason: `no outbox record of version 1: ${what}` }
  }
}

const REASON = ".reason"
const STAMP_DIGITS = 13
const COUNT_DIGITS = 6
const NAME = /^(\d{13})-(\d{6})-/
/** The last part is a digest of the ordering key. */
const TAGGED = /^\d{13}-\d{6}-[^-]+-([0-9a-f]{8})\.json$/
/** Equal for the records of an ordering key, which a file that cannot be read says, too; the name itself for another file. */
export const queueOf = (name: string): string => TAGGED.exec(name)?.[1] ?? name
const tagOf = (key: string): string => createHash("sha256").update(key).digest("hex").slice(0, 8)

type ReadRecord =
  | ParsedRecord
  | { readonly kind: "gone" }
  /** The file exists and cannot be read now. */
  | { readonly kind: "unreadable"; readonly reason: string }

/** Undefined if the folder does not exist. */
const listRecords = async (folder: string): Promise<string[] | undefined> => {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(RECORD_ENDING))
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

const inOrder = (names: Iterable<string>): string[] => [...names].sort((a, b) => (a < b ? -1 : 1))

type ReadText = { readonly kind: "text"; readonly text: string } | Exclude<ReadRecord, { readonly kind: "record" }>

const readText = async (path: string): Promise<ReadText> => {
  try {
    return { kind: "text", text: await readOwnText(path) }
  } catch (error) {
    if (error instanceof RefusedFile) return { kind: "malformed", reason: error.message }
    return isNotFound(error) ? { kind: "gone" } : { kind: "unreadable", reason: describeError(error) }
  }
}

/** @throws when zod cannot be loaded */
const readParked = async (file: string): Promise<ParkedEntry> => {
  const [read, note] = await Promise.all([readText(file), readText(`${file}${REASON}`)])
  const parsed = read.kind === "text" ? await parseRecord(read.text) : read
  const record = parsed.kind === "record" ? { record: parsed.record } : {}
  if (note.kind === "text") {
    const [since = "", ...reason] = note.text.trim().split("\n")
    return { file, ...record, reason: reason.join("\n"), since }
  }
  const reason = "reason" in parsed ? parsed.reason : "unknown: the note beside the file is missing"
  return { file, ...record, reason, since: "" }
}

const renderRecord = (record: OutboxRecord): string => `${JSON.stringify(record, undefined, 2)}\n`

/** The waiting records as one list, ordered by name. Each is a file. */
export const createOutboxStore = (state: Pick<StateFolder, "path" | "write">) => {
  const waiting = (name = "") => state.path(OUTBOX_FOLDER, name)
  const parked = (name = "") => state.path(OUTBOX_FOLDER, "parked", name)
  let last: { stamp: number; count: number } | undefined

  const readLast = async (): Promise<{ stamp: number; count: number }> => {
    const names = inOrder((await listRecords(waiting()).catch(() => undefined)) ?? [])
    const [, stamp, count] = names.map((name) => NAME.exec(name)).findLast((match) => match !== null) ?? []
    return { stamp: Number(stamp ?? 0), count: Number(count ?? 0) }
  }

  return {
    lockPath: waiting("lock"),
    /** Gives a name that sorts after all earlier names, also those of earlier processes. @param now epoch ms */
    nextName: async (now: number, id: string, entry: OutboxEntry): Promise<string> => {
      last ??= await readLast()
      // The clock may go back; the order may not.
      last = { stamp: Math.max(now, last.stamp), count: now > last.stamp ? 0 : last.count + 1 }
      const stamp = String(last.stamp).padStart(STAMP_DIGITS, "0")
      const count = String(last.count).padStart(COUNT_DIGITS, "0")
      return `${stamp}-${count}-${id}-${tagOf(orderingKey(entry))}${RECORD_ENDING}`
    },
    /** Names of the waiting records, oldest first; of one ordering key those that may be its own. @throws when the disk cannot tell */
    list: async (key?: string): Promise<string[]> => {
      const names = inOrder((await listRecords(waiting())) ?? [])
      if (key === undefined) return names
      const wanted = tagOf(key)
      return names.filter((name) => wanted === TAGGED.exec(name)?.[1])
    },
    /** @throws when zod cannot be loaded */
    read: async (name: string): Promise<ReadRecord> => {
      const read = await readText(waiting(name))
      return read.kind === "text" ? await parseRecord(read.text) : read
    },
    /** @returns why the disk refused it; undefined when it is on disk */
    write: (name: string, record: OutboxRecord): Promise<string | undefined> =>
      state.write(waiting(name), renderRecord(record)).then(() => undefined, describeError),
    /** @returns whether it is gone: the disk may refuse */
    remove: async (name: string): Promise<boolean> => {
      try {
        await rm(waiting(name), { force: true })
        return true
      } catch {
        // Its next delivery finds that the ledger has it, and tries again.
        return false
      }
    },
    /** Moves a record aside unchanged, with the reason. @param since ISO 8601 @throws when the disk refuses */
    park: async (name: string, reason: string, since: string): Promise<void> => {
      await state.write(parked(`${name}${REASON}`), `${since}\n${reason}\n`)
      await rename(waiting(name), parked(name))
    },
    listParked: async (): Promise<ParkedEntry[]> => {
      const names = inOrder((await listRecords(parked())) ?? [])
      return await Promise.all(names.map((name) => readParked(parked(name))))
    },
    /**
     * Moves a parked record to its place in the order again. For the holder of the lock.
     *
     * @param record its new content, if that has changed
     * @throws when the disk refuses
     */
    unpark: async (name: string, record?: OutboxRecord): Promise<void> => {
      if (record) await state.write(parked(name), renderRecord(record))
      await rename(parked(name), waiting(name))
      await rm(parked(`${name}${REASON}`), { force: true, recursive: true })
    },
  }
}

export type OutboxStore = ReturnType<typeof createOutboxStore>
