import { readdir, readFile } from "node:fs/promises"
import type { ZodType } from "zod"
import { describeError, isAbsent, type Log } from "../host/log.ts"
import { loadZod, type Zod } from "../host/schema.ts"
import type { StateFolder } from "../host/state.ts"

/** One handoff, from the draft on; a file of its own under `.opencode/state/handoffs/`. */
export type HandoffRecord = {
  version: 1
  id: string
  /** ISO 8601, UTC. */
  createdAt: string
  /** The session that was handed over. */
  from: string
  goal: string
  /** The whole draft as it was made. */
  draft: string
  files: readonly string[]
  leftOut: readonly { path: string; reason: string }[]
  taskID?: string | undefined
  /** Sessions in which the draft arrived; the first is the one that goes on. */
  arrivals: readonly { sessionID: string; at: string }[]
}

const PREFIX = "handoff-"
const SUFFIX = ".json"

const handoffRecordSchema = (z: Zod): ZodType<HandoffRecord> =>
  z.object({
    version: z.literal(1),
    id: z.string(),
    createdAt: z.string(),
    from: z.string(),
    goal: z.string(),
    draft: z.string(),
    files: z.array(z.string()),
    leftOut: z.array(z.object({ path: z.string(), reason: z.string() })),
    taskID: z.string().optional(),
    arrivals: z.array(z.object({ sessionID: z.string(), at: z.string() })),
  })

/** The handoffs of a project. No call throws; what cannot be read or written is logged. */
export type HandoffRecords = {
  /** Oldest first. */
  list(): Promise<HandoffRecord[]>
  /** @returns whether it is on disk */
  write(record: HandoffRecord): Promise<boolean>
}

export const createHandoffRecords = ({
  state,
  log,
}: {
  state: Pick<StateFolder, "path" | "write">
  log: Pick<Log, "warn">
}): HandoffRecords => {
  /** What could not be written is still known to this process. */
  const unsaved = new Map<string, HandoffRecord>()

  const read = async (name: string): Promise<HandoffRecord | undefined> => {
    const path = state.path("handoffs", name)
    try {
      return handoffRecordSchema(await loadZod()).parse(JSON.parse(await readFile(path, "utf8")))
    } catch (error) {
      if (!isAbsent(error)) log.warn("stored handoff is unusable and ignored", { path, error: describeError(error) })
      return undefined
    }
  }

  const names = async (): Promise<string[]> => {
    try {
      const all = await readdir(state.path("handoffs"))
      return all.filter((name) => name.startsWith(PREFIX) && name.endsWith(SUFFIX)).sort()
    } catch (error) {
      if (!isAbsent(error)) log.warn("stored handoffs cannot be listed", { error: describeError(error) })
      return []
    }
  }

  return {
    list: async () => {
      const stored = await Promise.all((await names()).map(read))
      const found = new Map(stored.flatMap((record) => (record ? [[record.id, record]] : [])))
      for (const record of unsaved.values()) found.set(record.id, record)
      return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    },
    write: async (record) => {
      const path = state.path("handoffs", `${PREFIX}${record.id}${SUFFIX}`)
      try {
        await state.write(path, `${JSON.stringify(record, null, 2)}\n`)
        unsaved.delete(record.id)
        return true
      } catch (error) {
        unsaved.set(record.id, record)
        log.warn("handoff could not be stored", { path, error: describeError(error) })
        return false
      }
    },
  }
}

/** An id that sorts by time. @param random lower-case letters and digits */
export const handoffID = (at: Date, random: string): string => `${at.toISOString().replaceAll(/[^0-9]/g, "")}-${random}`
