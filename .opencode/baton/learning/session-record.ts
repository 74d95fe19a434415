import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"
import { LEARNING_TYPES, type LearningType } from "./learning-type.ts"

/** One thing a user said in a session that is to be learned. */
export type Saying = {
  readonly key: string
  readonly type: LearningType
  readonly sentence: string
  readonly messageID: string
  /** ISO 8601. */
  readonly at: string
  readonly taskID?: string | undefined
  /** `waiting`: not in the outbox yet, or changed since. */
  readonly state: "waiting" | "stored"
  /** What the agent had done before, in a few words; absent as long as nobody looked. */
  readonly answered?: string | undefined
  readonly files: readonly string[]
  readonly confirmed: boolean
}

/** What the model was given beside one message. */
export type Given = {
  /** The first user message, or the compaction request. */
  readonly messageID: string
  /** ISO 8601. */
  readonly at: string
  readonly text: string
  readonly keys: readonly string[]
}

/** `.opencode/state/learning/sessions/<sessionID>.json`; only for sessions that taught or were given something. */
export type SessionRecord = {
  readonly version: 1
  readonly sessionID: string
  /** The process that looks after it. */
  readonly pid: number
  readonly sayings: readonly Saying[]
  readonly given: readonly Given[]
}

export const MAX_LEARNINGS = 10
/** A session's compactions are many, and only the newest is ever asked for again. */
const KEPT_GIVEN = 5

export const sessionRecordSchema = (z: Zod): ZodType<SessionRecord> =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    pid: z.number(),
    sayings: z.array(
      z.object({
        key: z.string(),
        type: z.enum(LEARNING_TYPES),
        sentence: z.string(),
        messageID: z.string(),
        at: z.string(),
        taskID: z.string().optional(),
        state: z.enum(["waiting", "stored"]),
        answered: z.string().optional(),
        files: z.array(z.string()),
        confirmed: z.boolean(),
      }),
    ),
    given: z.array(z.object({ messageID: z.string(), at: z.string(), text: z.string(), keys: z.array(z.string()) })),
  })

export const emptyRecord = (sessionID: string, pid: number): SessionRecord => ({
  version: 1,
  sessionID,
  pid,
  sayings: [],
  given: [],
})

export const isWaiting = ({ sayings }: SessionRecord): boolean => sayings.some(({ state }) => state === "waiting")

/** Adds what a message taught; a session teaches ten different things at most. @returns the record and what was left out */
export const withSayings = (
  record: SessionRecord,
  sayings: readonly Saying[],
): { record: SessionRecord; leftOut: number } => {
  const keys = new Set(record.sayings.map(({ key }) => key))
  const added = sayings.filter(({ key }) => {
    if (keys.size >= MAX_LEARNINGS && !keys.has(key)) return false
    keys.add(key)
    return true
  })
  return { record: { ...record, sayings: [...record.sayings, ...added] }, leftOut: sayings.length - added.length }
}

/** The user objects to the work that followed the newest message that taught something: it is confirmed no more. */
export const withObjection = (record: SessionRecord): SessionRecord => {
  const messageID = record.sayings.at(-1)?.messageID
  const sayings = record.sayings.map((saying): Saying => {
    const isOpposed = saying.messageID === messageID && saying.confirmed
    return isOpposed ? { ...saying, confirmed: false, state: "waiting" } : saying
  })
  return { ...record, sayings }
}

export const withGiven = (record: SessionRecord, given: Given): SessionRecord => ({
  ...record,
  given: [...record.given.filter(({ messageID }) => messageID !== given.messageID), given].slice(-KEPT_GIVEN),
})
