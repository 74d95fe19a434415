import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"
import type { LedgerLearning } from "../ledger/learning-json.ts"
import { type LearningEntry, parseDetail, type RetireEntry } from "../ledger/learning-record.ts"
import { isLearningType, LEARNING_TYPES, type LearningType } from "./learning-type.ts"
import { contentWords } from "./words.ts"

/** A learning as it is looked up: only what ranking and showing it takes. */
export type KnownLearning = {
  /** The ledger's; absent while it waits in the outbox. */
  readonly id?: string | undefined
  readonly key: string
  readonly folder: string
  readonly type: LearningType
  readonly sentence: string
  /** Content words of the sentence, each between blanks. */
  readonly words: string
  /** The user said it for all work that is to come: it fits any, behind what fits this one. */
  readonly isStanding: boolean
  readonly files: readonly string[]
  /** When it was said last; ISO 8601. */
  readonly at: string
  readonly times: number
  readonly confirmed: boolean
  readonly status: "active" | "replaced" | "forgotten"
}

/** As it is copied to disk. */
export const knownLearningSchema = (z: Zod): ZodType<KnownLearning> =>
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

/** By what a sentence is looked up. */
export const lookUpBy = (sentence: string): Pick<KnownLearning, "words" | "isStanding"> => ({
  words: ` ${contentWords(sentence).join(" ")} `,
  isStanding: STANDING.test(sentence),
})

/** @returns undefined for a learning of somebody else's making, and for one of another folder */
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
    // Whoever ran `prog learn stale` meant it.
    status: isActive ? "active" : detail.superseded !== undefined ? "replaced" : "forgotten",
  }
}

/** What was said and is not in the ledger yet. */
export const fromEntry = (entry: Omit<LearningEntry, "kind">): KnownLearning | undefined => {
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

/** The ledger's learnings with what waits to reach it, in the order in which it will. Pure. */
export const withWaiting = (
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
