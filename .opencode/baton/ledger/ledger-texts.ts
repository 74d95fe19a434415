import type { ReadOnlyDatabase } from "../host/sqlite.ts"
import { parseTimestamp } from "./embedded/format.ts"

/** A task's title, description and definition of done, or a line of its log. `at` in epoch milliseconds. */
export type LedgerText = {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly part: "task" | "log"
  readonly at: number
  readonly text: string
}

type Item = {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly description: string | null
  readonly definition_of_done: string | null
  readonly updated_at: string
}

type Line = {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly message: string
  readonly created_at: string
}

const OF_PROJECT = "(i.project = ? OR i.id IN (SELECT value FROM json_each(?)))"

type Of = {
  readonly project: string /** Of tasks that are the project's whichever name they are filed under. */
  readonly ids: readonly string[]
}

const valuesOf = ({ project, ids }: Of): [string, string] => [project, JSON.stringify(ids)]

function* taskTexts(database: ReadOnlyDatabase, of: Of): Generator<LedgerText> {
  const query = `SELECT i.* FROM items i WHERE ${OF_PROJECT} ORDER BY i.updated_at DESC`
  for (const { id, title, status, description, definition_of_done, updated_at } of database.rows<Item>(
    query,
    ...valuesOf(of),
  )) {
    const text = [title, description, definition_of_done].filter(Boolean).join("\n")
    yield { id, title, status, part: "task", at: parseTimestamp(updated_at).epochMs, text }
  }
}

function* logTexts(database: ReadOnlyDatabase, of: Of): Generator<LedgerText> {
  const query = `SELECT i.id, i.title, i.status, l.message, l.created_at
    FROM logs l JOIN items i ON i.id = l.item_id WHERE ${OF_PROJECT} ORDER BY l.id DESC`
  for (const { id, title, status, message, created_at } of database.rows<Line>(query, ...valuesOf(of)))
    yield { id, title, status, part: "log", at: parseTimestamp(created_at).epochMs, text: message }
}

/**
 * The texts of a project's tasks, and those of their logs, each the newest first and read as they are asked for. prog and the embedded
 * ledger have the same tables.
 *
 * @throws SQLite's own error
 */
export const ledgerTexts = (database: ReadOnlyDatabase, of: Of): Generator<LedgerText>[] => [
  taskTexts(database, of),
  logTexts(database, of),
]
