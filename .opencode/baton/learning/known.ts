import { existsSync } from "node:fs"
import { join } from "node:path"
import { describeError, isNotFound, type Log } from "../host/log.ts"
import { stateRoot } from "../host/project.ts"
import { loadZod, type Parsed, type Zod } from "../host/schema.ts"
import type { StateFolder } from "../host/state.ts"
import type { Sign } from "../host/state-mark.ts"
import { readOwnText } from "../host/untrusted.ts"
import {
  type LearningDetail,
  type LearningEntry,
  parseDetail,
  parseSigned,
  type RetireEntry,
  type WithdrawEntry,
} from "../ledger/learnings.ts"
import type { LearningLedger, LedgerLearning } from "../ledger/ledger.ts"
import { type Outbox, orderingKey } from "../ledger/outbox-store.ts"
import { databasePath, stampOf } from "../ledger/runner.ts"
import type { LearningProject, SessionRecord, Statement } from "./records.ts"
import {
  ABOUT_ANSWERS,
  ABOUT_CHANGES,
  isGeneral,
  isLearningType,
  LEARNING_TYPES,
  type LearningType,
  SCOPED,
  STANDING,
} from "./signals.ts"
import { rootsOf, weightOf } from "./words.ts"

const knownLearningSchema = (z: Zod) =>
  z.object({
    /** The ledger's id; absent while the learning waits in the outbox. */
    id: z.string().optional(),
    /** Of an agent's learning: its id. */
    key: z.string(),
    /** Empty for an agent's learning, of which only the project's name is known. */
    folder: z.string(),
    /** `agent`: stored with `prog learn`. */
    by: z.enum(["user", "agent"]),
    type: z.enum(LEARNING_TYPES),
    sentence: z.string(),
    /** Roots of the words of the sentence and of the concepts. */
    words: z.array(z.string()).readonly(),
    /** The sum of their weights. */
    weight: z.number(),
    /** Chosen by an agent; none of a user's. */
    concepts: z.array(z.string()).readonly(),
    /**
     * The requests it can fit: those about its subject; all, for a rule about answers; all that change something, for a rule about
     * commits; none, for a remark about one moment that was made once.
     */
    reach: z.enum(["subject", "answers", "changes", "moment"]),
    files: z.array(z.string()).readonly(),
    /** The last time it was said; ISO 8601. */
    at: z.string(),
    times: z.number(),
    /** The newest messages that said it; of an agent's learning those that it claims. */
    messageIDs: z.array(z.string()).readonly(),
    confirmed: z.boolean(),
    status: z.enum(["active", "replaced", "forgotten"]),
  })

/** A learning in the index: only the fields that ranking and display need. */
export type KnownLearning = Parsed<typeof knownLearningSchema>

const reachOf = (sentence: string, type: LearningType): KnownLearning["reach"] => {
  if (ABOUT_ANSWERS.test(sentence)) return "answers"
  if (ABOUT_CHANGES.test(sentence) && STANDING.test(sentence) && !SCOPED.test(sentence)) return "changes"
  return type === "correction" && !isGeneral(sentence) ? "moment" : "subject"
}

type LookUp = Pick<KnownLearning, "sentence" | "words" | "weight" | "concepts" | "reach">

/** The fields that a learning is looked up by. @param concepts chosen by an agent */
export const lookUpBy = (sentence: string, type: LearningType, concepts: readonly string[] = []): LookUp => {
  const words = [...new Set([...rootsOf(sentence), ...concepts.flatMap(rootsOf)])]
  const weight = words.reduce((sum, word) => sum + weightOf(word), 0)
  return { sentence, words, weight, concepts, reach: reachOf(sentence, type) }
}

/** Fields that an agent's learning has not. */
const AGENTS = { folder: "", by: "agent", type: "insight", times: 1, confirmed: false } as const

const messageIDsOf = (detail: LearningDetail | undefined): string[] =>
  detail?.sources.map(({ messageID }) => messageID) ?? []

const fromAgent = ({ id, summary, detail, concepts, files, createdAt, status }: LedgerLearning): KnownLearning => ({
  ...AGENTS,
  id,
  key: id,
  ...lookUpBy(summary, AGENTS.type, concepts),
  reach: "subject",
  files,
  at: createdAt,
  messageIDs: messageIDsOf(parseDetail(detail)),
  status: status === "active" ? "active" : "forgotten",
})

/**
 * Takes a learning for the user's if Baton signed it, and else for an agent's.
 *
 * @returns undefined for one that names another folder
 */
export const fromLedger = (
  learning: LedgerLearning,
  { name, onlyFolder }: Pick<LearningProject, "name" | "onlyFolder">,
  sign: Sign | undefined,
): KnownLearning | undefined => {
  const folder = parseDetail(learning.detail)?.folder
  if (folder !== undefined && onlyFolder !== undefined && folder !== onlyFolder) return undefined
  const detail = parseSigned(learning, name, sign)
  if (!detail || !isLearningType(detail.type)) return fromAgent(learning)
  const { type } = detail
  const isActive = learning.status === "active"
  return {
    id: learning.id,
    key: detail.key,
    folder: detail.folder,
    by: "user",
    type,
    ...lookUpBy(learning.summary, type),
    files: learning.files,
    at: detail.sources.at(-1)?.at ?? learning.createdAt,
    times: detail.times,
    messageIDs: messageIDsOf(detail),
    confirmed: detail.confirmed,
    // An agent may have retired it with `prog learn stale`: said again, it comes back.
    status: isActive ? "active" : detail.forgotten !== undefined ? "forgotten" : "replaced",
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
    by: "user",
    type,
    ...lookUpBy(sentence, type),
    files,
    at: entry.source.at,
    times: 1,
    messageIDs: [entry.source.messageID],
    confirmed,
    status: "active",
  }
}

type WaitingEntry = LearningEntry | RetireEntry | WithdrawEntry

const withdraw = (one: KnownLearning): KnownLearning =>
  one.times > 1 ? { ...one, times: one.times - 1 } : { ...one, status: "replaced" }

/** Applies the waiting entries to the ledger's learnings, in the order in which they will reach it. Pure. */
const withWaiting = (known: readonly KnownLearning[], waiting: readonly WaitingEntry[]): KnownLearning[] => {
  let list = [...known]
  for (const entry of waiting) {
    const isSame = (one: KnownLearning) => one.key === entry.key && one.folder === entry.folder
    if (entry.kind === "retire") {
      const status = entry.as === "forgotten" ? "forgotten" : "replaced"
      list = list.map((one) => (isSame(one) && one.status === "active" ? { ...one, status } : one))
    } else if (entry.kind === "withdraw") {
      const isIts = (one: KnownLearning) => isSame(one) && one.messageIDs.includes(entry.messageID)
      list = list.map((one) => (isIts(one) && one.status === "active" ? withdraw(one) : one))
    } else {
      // The ledger may have it already, and not yet its signature.
      const isIts = ({ by, sentence, messageIDs }: KnownLearning) =>
        by === "agent" && sentence === entry.summary && messageIDs.includes(entry.source.messageID)
      const unsigned = list.find(isIts)
      list = list.filter((one) => one !== unsigned)
      const added = list.some((one) => isSame(one) && one.status !== "replaced") ? undefined : fromEntry(entry)
      if (added) list.unshift(unsigned ? { ...added, id: unsigned.id } : added)
    }
  }
  return list
}

type KnownLearningsDeps = {
  readonly project: LearningProject
  readonly ledger: Pick<LearningLedger, "readLearnings">
  readonly outbox: Pick<Outbox, "pending">
  readonly waitingRecords: () => Promise<readonly SessionRecord[]>
  readonly state: Pick<StateFolder, "path" | "write">
  readonly readSigner: () => Sign | undefined
  readonly log: Log
  /** Path of the ledger's database; prog's default when absent. */
  readonly database?: string
}

const COPY_FILE = "known.json"

const copySchema = (z: Zod) =>
  z.object({ version: z.literal(1), stamp: z.string(), learnings: z.array(knownLearningSchema(z)).readonly() })

type Copy = Parsed<typeof copySchema>

const MAX_TOPICS = 2

/** Concepts that agents have chosen in this project and the sentence names: no word of it becomes one by itself. */
const topicsOf = (sentence: string, known: readonly KnownLearning[]): string[] => {
  const roots = rootsOf(sentence)
  const concepts = [...new Set(known.flatMap((learning) => learning.concepts))]
  return concepts.filter((concept) => rootsOf(concept).every((root) => roots.includes(root))).slice(0, MAX_TOPICS)
}

/** Converts a statement to an outbox entry. @param known the project's learnings, for its concepts */
export const toEntry = (
  { sessionID }: Pick<SessionRecord, "sessionID">,
  statement: Statement,
  { name, folder }: LearningProject,
  known: readonly KnownLearning[] = [],
): LearningEntry => ({
  kind: "learning",
  project: name,
  folder,
  key: statement.key,
  summary: statement.sentence,
  concepts: [statement.type, ...topicsOf(statement.sentence, known)],
  files: statement.files,
  ...(statement.answered ? { answered: statement.answered } : {}),
  confirmed: statement.confirmed,
  source: { at: statement.at, sessionID, messageID: statement.messageID, taskID: statement.taskID },
})

export type LearningIndex = ReturnType<typeof createLearningIndex>

/**
 * Reading the ledger starts a program. So a copy of its answer is kept in `.opencode/state/learning/` until the database changes.
 */
export const createLearningIndex = (deps: KnownLearningsDeps) => {
  const { project, ledger, outbox, waitingRecords, state, readSigner, log, database = databasePath(process.env) } = deps
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
    [state.path("learning"), join(stateRoot(project.folder), "learning")].some((folder) => existsSync(folder))

  const readLedger = async (hasTask: boolean): Promise<readonly KnownLearning[]> => {
    if (!hasTask && !hasLearned()) return []
    const stamp = stampOf(database)
    if (stamp === undefined) return []
    copy ??= await readCopy()
    const key = `${project.onlyFolder ?? project.name} ${stamp}`
    if (copy?.stamp === key) return copy.learnings
    const read = await ledger.readLearnings(project.name)
    if (read.kind === "unavailable") {
      log.warn("learnings cannot be read: using cached learnings", { reason: read.reason })
      return copy?.learnings ?? []
    }
    const sign = readSigner()
    const learnings = read.learnings.flatMap((learning) => fromLedger(learning, project, sign) ?? [])
    copy = { version: 1, stamp: key, learnings }
    // A folder for nothing would make every later session ask the ledger.
    if (learnings.length === 0 && !hasLearned()) return learnings
    state.write(path, JSON.stringify(copy)).catch((error: unknown) => {
      log.warn("the copy of the learnings could not be kept", { path, error: describeError(error) })
    })
    return learnings
  }

  return {
    /**
     * All learnings of the project, including those still waiting for the ledger. Never rejects.
     *
     * @param hasTask the session has a task: agents may have learned where the user has said nothing yet
     */
    read: async (hasTask = false): Promise<KnownLearning[]> => {
      try {
        // In this order: an entry that leaves the outbox meanwhile is in the ledger when that is read.
        const sayings = (await waitingRecords()).flatMap((record) =>
          record.sayings.filter(({ state: how }) => how === "waiting").map((one) => toEntry(record, one, project)),
        )
        const entries = (await outbox.pending(orderingKey({ project: project.name }))) ?? []
        const waiting = entries.filter((entry): entry is WaitingEntry => !("taskID" in entry))
        return withWaiting(await readLedger(hasTask), [...waiting, ...sayings])
      } catch (error) {
        log.warn("learnings cannot be read", { error: describeError(error) })
        return []
      }
    },
  }
}
