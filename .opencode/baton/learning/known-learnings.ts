import { existsSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import type { ZodType } from "zod"
import { describeError, isAbsent, type Log } from "../host/log.ts"
import { loadZod, type Zod } from "../host/schema.ts"
import type { StateFolder } from "../host/state.ts"
import type { LearningLedger } from "../ledger/learning-calls.ts"
import type { LearningEntry, RetireEntry } from "../ledger/learning-record.ts"
import { type Outbox, subjectOf } from "../ledger/outbox-entry.ts"
import { fromLedger, type KnownLearning, knownLearningSchema, withWaiting } from "./known-learning.ts"
import type { LearningProject } from "./project.ts"
import type { Saying, SessionRecord } from "./session-record.ts"
import { contentWords } from "./words.ts"

/** All learnings of the project, what is on its way to the ledger included. Never rejects. */
export type KnownLearnings = { read(): Promise<KnownLearning[]> }

export type KnownLearningsDeps = {
  readonly project: LearningProject
  readonly ledger: Pick<LearningLedger, "readLearnings">
  readonly outbox: Pick<Outbox, "waiting">
  readonly waitingRecords: () => Promise<readonly SessionRecord[]>
  readonly state: Pick<StateFolder, "path" | "write">
  readonly log: Log
  /** Of the ledger's database; by default where prog keeps it. */
  readonly database?: string
}

type Copy = { readonly version: 1; readonly stamp: string; readonly learnings: readonly KnownLearning[] }

const COPY_FILE = "known.json"

/** `$PROG_DB`, or where prog keeps it. */
export const ledgerDatabase = (env: NodeJS.ProcessEnv = process.env): string =>
  env.PROG_DB || join(homedir(), ".prog", "prog.db")

/** Changes whenever somebody writes to the database; undefined when there is none. */
const stampOf = async (database: string): Promise<string | undefined> => {
  const sizes = await Promise.all(
    [database, `${database}-wal`].map((path) =>
      stat(path).then(
        ({ mtimeMs, size }) => (size > 0 ? `${mtimeMs}-${size}` : ""),
        (error: unknown) => {
          if (isAbsent(error)) return ""
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

/** The first words that the sentence is about; a concept's name is one word that any shell can type. */
const topicsOf = (sentence: string): string[] =>
  [...new Set(contentWords(sentence))]
    .filter((word) => /^[\p{L}\p{N}][\p{L}\p{N}._/-]{1,39}$/u.test(word))
    .slice(0, MAX_TOPICS)

/** A saying as the outbox takes it. */
export const toEntry = (
  { sessionID }: Pick<SessionRecord, "sessionID">,
  saying: Saying,
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
 * Reading the ledger starts a program, so that a copy of what it said is kept in `.opencode/state/learning/` for as long as
 * nobody writes to the database.
 */
export const createKnownLearnings = (deps: KnownLearningsDeps): KnownLearnings => {
  const { project, ledger, outbox, waitingRecords, state, log, database = ledgerDatabase() } = deps
  const path = state.path("learning", COPY_FILE)
  let copy: Copy | undefined

  const readCopy = async (): Promise<Copy | undefined> => {
    try {
      const text = await readFile(path, "utf8")
      return copySchema(await loadZod()).parse(JSON.parse(text))
    } catch (error) {
      if (!isAbsent(error)) log.warn("the copy of the learnings is unusable", { path, error: describeError(error) })
      return undefined
    }
  }

  /** A project that has learned nothing costs no program's start; one that the user named may have learned elsewhere. */
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
        // In this order: what leaves the outbox meanwhile is in the ledger when that is read.
        const sayings = (await waitingRecords()).flatMap((record) =>
          record.sayings.filter(({ state: how }) => how === "waiting").map((one) => toEntry(record, one, project)),
        )
        const entries = await outbox.waiting(subjectOf({ project: project.name }))
        const waiting = entries.filter((entry): entry is LearningEntry | RetireEntry => !("taskID" in entry))
        return withWaiting(await readLedger(), [...waiting, ...sayings])
      } catch (error) {
        log.warn("learnings cannot be read", { error: describeError(error) })
        return []
      }
    },
  }
}
