import { isRecord } from "../host/sessions.ts"
import type { LedgerTask, TaskSummary } from "./ledger.ts"

/*
 * Read by hand and not with zod: a session's first request waits for its task, and loading zod takes 17 ms of OpenCode's
 * only thread (docs/adr/0003).
 */

const textAt = (record: Record<string, unknown>, key: string): string => {
  const value = record[key]
  if (typeof value === "string") return value
  throw new TypeError(`expected text in '${key}', received ${JSON.stringify(value)?.slice(0, 80) ?? "nothing"}`)
}

/** Text, or undefined where prog says null or nothing. */
const optionalTextAt = (record: Record<string, unknown>, key: string): string | undefined =>
  record[key] === undefined || record[key] === null ? undefined : textAt(record, key)

const toRecord = (value: unknown, what: string): Record<string, unknown> => {
  if (isRecord(value)) return value
  throw new TypeError(`expected ${what}, received ${JSON.stringify(value)?.slice(0, 80)}`)
}

const toList = (value: unknown, what: string): unknown[] => {
  if (Array.isArray(value)) return value
  throw new TypeError(`expected ${what}, received ${JSON.stringify(value)?.slice(0, 80)}`)
}

/**
 * Reads what `prog show ID --json` printed (prog v0.17.0).
 *
 * @throws SyntaxError or TypeError when it is no such task
 */
export const parseTaskJson = (json: string): LedgerTask => {
  const shown = toRecord(JSON.parse(json), "a task")
  const definitionOfDone = optionalTextAt(shown, "definition_of_done")
  return {
    id: textAt(shown, "id"),
    title: textAt(shown, "title"),
    status: textAt(shown, "status"),
    type: textAt(shown, "type"),
    project: textAt(shown, "project"),
    description: optionalTextAt(shown, "description") ?? "",
    ...(definitionOfDone ? { definitionOfDone } : {}),
    logs: toList(shown.logs ?? [], "a list of log entries").map((entry) => {
      const log = toRecord(entry, "a log entry")
      return { message: textAt(log, "message"), createdAt: textAt(log, "created_at") }
    }),
  }
}

/**
 * Reads what `prog list --json` printed (prog v0.17.0).
 *
 * @throws SyntaxError or TypeError when it is no such list
 */
export const parseTaskList = (json: string): readonly TaskSummary[] =>
  toList(JSON.parse(json), "a list of tasks").map((each) => {
    const task = toRecord(each, "a task")
    return { id: textAt(task, "id"), title: textAt(task, "title"), status: textAt(task, "status") }
  })
