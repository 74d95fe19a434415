import { loadZod } from "../host/schema.ts"
import type { LedgerTask, TaskSummary } from "./ledger.ts"

const loadSchema = async () => {
  const z = await loadZod()
  return z.object({
    id: z.string(),
    title: z.string(),
    status: z.string(),
    type: z.string(),
    project: z.string(),
    description: z.string().nullish(),
    definition_of_done: z.string().nullish(),
    logs: z.array(z.object({ message: z.string(), created_at: z.string() })).nullish(),
  })
}

let schema: ReturnType<typeof loadSchema> | undefined

/**
 * Reads what `prog show ID --json` printed (prog v0.17.0).
 *
 * @throws SyntaxError or zod's error when it is no such task
 */
export const parseTaskJson = async (json: string): Promise<LedgerTask> => {
  schema ??= loadSchema().catch((error: unknown) => {
    schema = undefined
    throw error
  })
  const shown = (await schema).parse(JSON.parse(json))
  return {
    id: shown.id,
    title: shown.title,
    status: shown.status,
    type: shown.type,
    project: shown.project,
    description: shown.description ?? "",
    ...(shown.definition_of_done ? { definitionOfDone: shown.definition_of_done } : {}),
    logs: (shown.logs ?? []).map(({ message, created_at }) => ({ message, createdAt: created_at })),
  }
}

/**
 * Reads what `prog list --json` printed (prog v0.17.0).
 *
 * @throws SyntaxError or zod's error when it is no such list
 */
export const parseTaskList = async (json: string): Promise<readonly TaskSummary[]> => {
  const z = await loadZod()
  return z.array(z.object({ id: z.string(), title: z.string(), status: z.string() })).parse(JSON.parse(json))
}
