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
 * The task or the project that an entry is about. Entries of one subject are delivered in order; a waiting one blocks only
 * its own subject.
 */
export const subjectOf = (entry: { readonly taskID: string } | { readonly project: string }): string =>
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
  /** Resolves when the entry is durably on disk, or was tried directly if the disk refused it. Never rejects. */
  add(entry: OutboxEntry): Promise<void>
  /**
   * Like `add`, unless an equal entry waits or the ledger already has its log line. For a caller that was killed before and
   * cannot know how far it got.
   */
  addIfMissing(entry: OutboxEntry): Promise<void>
  /** The waiting entries of a subject (see `subjectOf`), oldest first; undefined if they cannot be read, which is logged. */
  pending(subject: string): Promise<OutboxEntry[] | undefined>
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

/** `by` of a record that a person put back: no program may be writing it, and the ledger may have it. */
export const PUT_BACK = "baton outbox"

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
    /** Written before the ledger is called, so it survives a crash during the call. */
    attempt: z
      .object({
        at: z.iso.datetime(),
        /** Identifies the outbox and its process. */
        by: z.string(),
        /** Number of the task's log entries with the same text just before; for log entries alone. */
        equalBefore: z.int().optional(),
      })
      .optional(),
  })
}

/** An entry on disk. */
export type OutboxRecord = Parsed<typeof recordSchema>
export type OutboxAttempt = NonNullable<OutboxRecord["attempt"]>
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
/** The last part tells the subject. */
const TAGGED = /^(\d{13}-\d{6}-[^-]+-)([0-9a-f]{8})(?=\.json$)/
const tagOf = (subject: string): string => createHash("sha256").update(subject).digest("hex").slice(0, 8)

/** Far more than wait while the ledger can be reached. */
const MAX_OWN = 200

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

/**
 * The waiting records as one list, ordered by name. Each is a file; memory holds those that the disk refused, and the newest
 * 200 written by this process, for the time in which the disk does not answer.
 */
export const createOutboxStore = (state: Pick<StateFolder, "path" | "write">) => {
  const waiting = (name = "") => state.path(OUTBOX_FOLDER, name)
  const parked = (name = "") => state.path(OUTBOX_FOLDER, "parked", name)
  const own = new Map<string, { readonly record: OutboxRecord; readonly isSaved: boolean }>()
  /** Delivered records that may still be on disk. */
  const done = new Set<string>()
  let last: { stamp: number; count: number } | undefined

  const unsaved = () => inOrder(own.keys()).filter((name) => own.get(name)?.isSaved === false)

  const remember = (name: string, record: OutboxRecord, isSaved: boolean): void => {
    own.set(name, { record, isSaved })
    for (const [oldest, one] of own) {
      if (own.size <= MAX_OWN) return
      if (one.isSaved) own.delete(oldest)
    }
  }

  /** Undefined if the folder is missing: it may come back. */
  const onDisk = (): Promise<string[] | undefined> => listRecords(waiting())

  /** @returns why the disk refused it; undefined when it is on disk */
  const write = async (name: string, record: OutboxRecord): Promise<string | undefined> => {
    try {
      await state.write(waiting(name), renderRecord(record))
      remember(name, record, true)
      return undefined
    } catch (error) {
      return describeError(error)
    }
  }

  const readLast = async (): Promise<{ stamp: number; count: number }> => {
    const names = inOrder((await onDisk().catch(() => undefined)) ?? [])
    const [, stamp, count] = names.map((name) => NAME.exec(name)).findLast((match) => match !== null) ?? []
    return { stamp: Number(stamp ?? 0), count: Number(count ?? 0) }
  }

  const removeDone = async (name: string): Promise<void> => {
    try {
      await rm(waiting(name), { force: true })
    } catch {
      // Tried again at the next listing.
    }
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
      return `${stamp}-${count}-${id}-${tagOf(subjectOf(entry))}${RECORD_ENDING}`
    },
    /** Names of the waiting records, oldest first; of one subject those that may be its own. @throws when neither disk nor memory can tell */
    list: async (subject?: string): Promise<string[]> => {
      const wanted = subject === undefined ? undefined : tagOf(subject)
      const isWanted = (name: string): boolean =>
        !done.has(name) && (wanted === undefined || wanted === TAGGED.exec(name)?.[2])
      const before = [...own.keys()]
      const failed = { error: undefined as unknown }
      const names = await onDisk().catch((error: unknown) => {
        failed.error = error
        return undefined
      })
      if (names === undefined) {
        if (failed.error !== undefined && own.size === 0) throw failed.error
        return inOrder(own.keys()).filter(isWanted)
      }
      const found = new Set(names)
      // A saved record that is gone was delivered by another process.
      for (const name of before) if (own.get(name)?.isSaved && !found.has(name)) own.delete(name)
      for (const name of done) {
        if (found.has(name)) await removeDone(name)
        else done.delete(name)
      }
      return inOrder([...new Set([...names, ...own.keys()])].filter(isWanted))
    },
    /** @throws when zod cannot be loaded */
    read: async (name: string): Promise<ReadRecord> => {
      const known = own.get(name)
      if (known && !known.isSaved) return { kind: "record", record: known.record }
      const read = await readText(waiting(name))
      if (read.kind === "text") return await parseRecord(read.text)
      // The folder may be unavailable: then the record in memory is used.
      return known ? { kind: "record", record: known.record } : read
    },
    write,
    /** Keeps a record in memory that the disk refused. */
    hold: (name: string, record: OutboxRecord) => remember(name, record, false),
    /** Tries again to write the records that are only in memory. */
    saveUnsaved: async (): Promise<void> => {
      for (const name of unsaved()) {
        const { record } = own.get(name) ?? {}
        if (record && (await write(name, record)) !== undefined) return
      }
    },
    unsaved: (): OutboxRecord[] => unsaved().flatMap((name) => own.get(name)?.record ?? []),
    isUnsaved: (name: string) => own.get(name)?.isSaved === false,
    remove: async (name: string): Promise<void> => {
      own.delete(name)
      done.add(name)
      await removeDone(name)
    },
    /** Moves a record aside unchanged, with the reason. @param since ISO 8601 @throws when the disk refuses */
    park: async (name: string, reason: string, since: string): Promise<void> => {
      await state.write(parked(`${name}${REASON}`), `${since}\n${reason}\n`)
      await rename(waiting(name), parked(name))
      own.delete(name)
    },
    listParked: async (): Promise<ParkedEntry[]> => {
      const names = inOrder((await listRecords(parked())) ?? [])
      return await Promise.all(names.map((name) => readParked(parked(name))))
    },
    /**
     * Puts a parked record into its place in the order again. For the holder of the lock.
     *
     * @returns its name there, another one if its subject changed
     * @throws when the disk refuses
     */
    putBack: async (name: string, record: OutboxRecord): Promise<string> => {
      await state.write(parked(name), renderRecord(record))
      const there = name.replace(TAGGED, `$1${tagOf(subjectOf(record.entry))}`)
      await rename(parked(name), waiting(there))
      await rm(parked(`${name}${REASON}`), { force: true, recursive: true })
      return there
    },
  }
}

export type OutboxStore = ReturnType<typeof createOutboxStore>
