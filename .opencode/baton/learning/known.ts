import { existsSync } from "node:fs"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import type { ZodType } from "zod"
import { describeError, isNotFound, type Log } from "../host/log.ts"
import { loadZod, type Zod } from "../host/schema.ts"
import type { StateFolder } from "../host/state.ts"
import { readOwnText } from "../host/untrusted.ts"
import { type LearningEntry, parseDetail, type RetireEntry } from "../ledger/learnings.ts"
import type { LearningLedger, LedgerLearning } from "../ledger/ledger.ts"
import { databasePath } from "../ledger/locate.ts"
import { type Outbox, queueKey } from "../ledger/outbox-store.ts"
import type { LearningProject } from "./learning.ts"
import type { SessionRecord, Statement } from "./records.ts"
import { contentWords } from "./words.ts"

/** Kinds of learning, the most important first. */
export const LEARNING_TYPES = ["correction", "decision", "preference", "anti_pattern", "pattern", "insight"] as const

export type LearningType = (typeof LEARNING_TYPES)[number]

export const isLearningType = (name: string): name is LearningType =>
  (LEARNING_TYPES as readonly string[]).includes(name)

/** A learning in the index: only the fields that ranking and display need. */
export type KnownLearning = {
  /** The ledger's id; absent while the learning waits in the outbox. */
  readonly id?: string | undefined
  readonly key: string
  readonly folder: string
  readonly type: LearningType
  readonly sentence: string
  /** Content words of the sentence, each between blanks. */
  readonly words: string
  /** The user said it for all future work: it fits any text, after the learnings that match it. */
  readonly isStanding: boolean
  readonly files: readonly string[]
  /** The last time it was said; ISO 8601. */
  readonly at: string
  readonly times: number
  readonly confirmed: boolean
  readonly status: "active" | "replaced" | "forgotten"
}

/** The schema of the copy on disk. */
const knownLearningSchema = (z: Zod): ZodType<KnownLearning> =>
  z.object({
    id: z.string().optional(),
    key: z.string(),
    folder: z.string(),
    type: z.enum(LEARNING_TYPES),
    sentence: z.string(),
    words: z.string(),
    isStanding: z.boolean(),
    files: z.array(z.string()),
    at: z.string(),
    times: z.number(),
    confirmed: z.boolean(),
    status: z.enum(["active", "replaced", "forgotten"]),
  })

const STANDING =
  /\b(?:always|never|from now on|going forward|every time|whenever)\b|\bin this (?:repo|project|code ?base)/i

/** The fields that a sentence is looked up by. */
export const lookUpBy = (sentence: string): Pick<KnownLearning, "words" | "isStanding"> => ({
  words: ` ${contentWords(sentence).join(" ")} `,
  isStanding: STANDING.test(sentence),
})

/** @returns undefined for a learning that this feature did not make, and for one of another folder */
export const fromLedger = (learning: LedgerLearning, folder: string | undefined): KnownLearning | undefined => {
  const detail = parseDetail(learning.detail)
  const type = learning.concepts.find(isLearningType)
  if (!detail || !type || (folder !== undefined && detail.folder !== folder)) return undefined
  const isActive = learning.status === "active"
  return {
    id: learning.id,
    key: detail.key,
    folder: detail.folder,
    type,
    sentence: learning.summary,
    ...lookUpBy(learning.summary),
    files: learning.files,
    at: detail.sources.at(-1)?.at ?? learning.createdAt,
    times: detail.times,
    confirmed: detail.confirmed,
    // Retired with `prog learn stale`, so the user meant it.
    status: isActive ? "active" : detail.superseded !== undefined ? "replaced" : "forgotten",
  }
}

/** Converts an outbox entry, which is not in the ledger yet. */
const fromEntry = (entry: Omit<LearningEntry, "kind">): KnownLearning | undefined => {
  const type = entry.concepts.find(isLearningType)
  if (!type) return undefined
  const { key, folder, files, confirmed, summary: sentence } = entry
  return {
    key,
    folder,
    type,
    sentence,
    ...lookUpBy(sentence),
    files,
    at: entry.source.at,
    times: 1,
    confirmed,
    status: "active",
  }
}

/** Applies the waiting entries to the ledger's learnings, in the order in which they will reach it. Pure. */
const withWaiting = (
  known: readonly KnownLearning[],
  waiting: readonly (LearningEntry | RetireEntry)[],
): KnownLearning[] => {
  let list = [...known]
  for (const entry of waiting) {
    const isSame = (one: KnownLearning) => one.key === entry.key && one.folder === entry.folder
    if (entry.kind === "retire") {
      const status = entry.as === "forgotten" ? "forgotten" : "replaced"
      list = list.map((one) => (isSame(one) && one.status === "active" ? { ...one, status } : one))
    } else if (!list.some((one) => isSame(one) && one.status !== "replaced")) {
      const added = fromEntry(entry)
      if (added) list.unshift(added)
    }
  }
  return list
}

/** All learnings of the project, including those still waiting for the ledger. Never rejects. */
export type LearningIndex = { read(): Promise<KnownLearning[]> }

type KnownLearningsDeps = {
  readonly project: LearningProject
  readonly ledger: Pick<LearningLedger, "readLearnings">
  readonly outbox: Pick<Outbox, "pending">
  readonly waitingRecords: () => Promise<readonly SessionRecord[]>
  readonly state: Pick<StateFolder, "path" | "write">
  readonly log: Log
  /** Path of the ledger's database; prog's default when absent. */
  readonly database?: string
}

type Copy = { readonly version: 1; readonly stamp: string; readonly learnings: readonly KnownLearning[] }

const COPY_FILE = "known.json"

/** Changes with each write to the database; undefined when there is none. */
const stampOf = async (database: string): Promise<string | undefined> => {
  const sizes = await Promise.all(
    [database, `${database}-wal`].map((path) =>
      stat(path).then(
        ({ mtimeMs, size }) => (size > 0 ? `${mtimeMs}-${size}` : ""),
        (error: unknown) => {
          if (isNotFound(error)) return ""
          throw error
        },
      ),
    ),
  )
  return sizes[0] === "" ? undefined : sizes.join(" ")
}

const copySchema = (z: Zod): ZodType<Copy> =>
  z.object({ version: z.literal(1), stamp: z.string(), learnings: z.array(knownLearningSchema(z)) })

const MAX_TOPICS = 2

/** The first content words of the sentence that are valid concept names: one word that any shell can type. */
const topicsOf = (sentence: string): string[] =>
  [...new Set(contentWords(sentence))]
    .filter((word) => /^[\p{L}\p{N}][\p{L}\p{N}._/-]{1,39}$/u.test(word))
    .slice(0, MAX_TOPICS)

/** Converts a statement to an outbox entry. */
export const toEntry = (
  { sessionID }: Pick<SessionRecord, "sessionID">,
  saying: Statement,
  { name, folder }: LearningProject,
): LearningEntry => ({
  kind: "learning",
  project: name,
  folder,
  key: saying.key,
  summary: saying.sentence,
  concepts: [saying.type, ...topicsOf(saying.sentence)],
  files: saying.files,
  ...(saying.answered ? { answered: saying.answered } : {}),
  confirmed: saying.confirmed,
  source: { at: saying.at, sessionID, messageID: saying.messageID, taskID: saying.taskID },
})

/**
 * Reading the ledger starts a program. So a copy of its answer is kept in `.opencode/state/learning/` until the database changes.
 */
export const createLearningIndex = (deps: KnownLearningsDeps): LearningIndex => {
  const { project, ledger, outbox, waitingRecords, state, log, database = databasePath(process.env) } = deps
  const path = state.path("learning", COPY_FILE)
  let copy: Copy | undefined

  const readCopy = async (): Promise<Copy | undefined> => {
    try {
      const text = await readOwnText(path)
      return copySchema(await loadZod()).parse(JSON.parse(text))
    } catch (error) {
      if (!isNotFound(error)) log.warn("the copy of the learnings is unusable", { path, error: describeError(error) })
      return undefined
    }
  }

  /**
   * Avoids starting a program for a project that has learned nothing. A project that the user named may have learnings from other
   * folders.
   */
  const hasLearned = (): boolean =>
    project.onlyFolder === undefined ||
    [state.path("learning"), join(project.folder, ".opencode", "state", "learning")].some((folder) =>
      existsSync(folder),
    )

  const readLedger = async (): Promise<readonly KnownLearning[]> => {
    if (!hasLearned()) return []
    const stamp = await stampOf(database)
    if (stamp === undefined) return []
    copy ??= await readCopy()
    const key = `${project.onlyFolder ?? project.name} ${stamp}`
    if (copy?.stamp === key) return copy.learnings
    const read = await ledger.readLearnings(project.name)
    if (read.kind === "unavailable") {
      log.warn("learnings cannot be read: what was known before stands in", { reason: read.reason })
      return copy?.learnings ?? []
    }
    const learnings = read.learnings.flatMap((learning) => fromLedger(learning, project.onlyFolder) ?? [])
    copy = { version: 1, stamp: key, learnings }
    state.write(path, JSON.stringify(copy)).catch((error: unknown) => {
      log.warn("the copy of the learnings could not be kept", { path, error: describeError(error) })
    })
    return learnings
  }

  return {
    read: async () => {
      try {
        // In this order: an entry that leaves the outbox meanwhile is in the ledger when that is read.
        const sayings = (await waitingRecords()).flatMap((record) =>
          record.sayings.filter(({ state: how }) => how === "waiting").map((one) => toEntry(record, one, project)),
        )
        const entries = (await outbox.pending(queueKey({ project: project.name }))) ?? []
        const waiting = entries.filter((entry): entry is LearningEntry | RetireEntry => !("taskID" in entry))
        return withWaiting(await readLedger(), [...waiting, ...sayings])
      } catch (error) {
        log.warn("learnings cannot be read", { error: describeError(error) })
        return []
      }
    },
  }
}
