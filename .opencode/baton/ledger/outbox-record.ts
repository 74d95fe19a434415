import { loadZod } from "../host/schema.ts"
import type { OutboxEntry } from "./outbox-entry.ts"

export type OutboxAttempt = {
  /** ISO 8601. */
  readonly at: string
  /** Which outbox of which process made it. */
  readonly by: string
  /** How many log entries with this very text the task had just before; for log entries alone. */
  readonly equalBefore?: number | undefined
}

/** An entry as it lies on disk. `attempt` is written before the ledger is called, so it survives a crash in the call. */
export type OutboxRecord = {
  readonly version: 1
  /** ISO 8601. */
  readonly createdAt: string
  readonly entry: OutboxEntry
  readonly attempt?: OutboxAttempt | undefined
}

export type ParsedRecord =
  | { readonly kind: "record"; readonly record: OutboxRecord }
  | { readonly kind: "malformed"; readonly reason: string }

const loadSchema = async () => {
  const z = await loadZod()
  const taskID = z.string().min(1)
  const learningName = { project: z.string().min(1), folder: z.string(), key: z.string().min(1) }
  return z.object({
    version: z.literal(1),
    createdAt: z.iso.datetime(),
    entry: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("log"), taskID, message: z.string() }),
      z.object({
        kind: z.literal("handoff"),
        taskID,
        sessionID: z.string(),
        section: z.string(),
        specification: z.string().optional(),
      }),
      z.object({
        kind: z.literal("learning"),
        ...learningName,
        summary: z.string(),
        concepts: z.array(z.string()),
        files: z.array(z.string()),
        answered: z.string().optional(),
        confirmed: z.boolean(),
        source: z.object({
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
        reason: z.string(),
      }),
    ]),
    attempt: z.object({ at: z.iso.datetime(), by: z.string(), equalBefore: z.int().optional() }).optional(),
  })
}

let loaded: ReturnType<typeof loadSchema> | undefined

/** @throws when zod cannot be loaded, which says nothing about the record */
export const parseRecord = async (text: string): Promise<ParsedRecord> => {
  loaded ??= loadSchema().catch((error: unknown) => {
    loaded = undefined
    throw error
  })
  const schema = await loaded
  try {
    return { kind: "record", record: schema.parse(JSON.parse(text)) }
  } catch (error) {
    const what = error instanceof Error ? error.message.replaceAll(/\s+/g, " ").slice(0, 300) : String(error)
    return { kind: "malformed", reason: `no outbox record of version 1: ${what}` }
  }
}

export const renderRecord = (record: OutboxRecord): string => `${JSON.stringify(record, undefined, 2)}\n`
