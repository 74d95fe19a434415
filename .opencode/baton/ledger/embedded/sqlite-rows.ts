/** Columns of prog's tables and the rows of store.ts, both ways. */
import type { ConceptRow, ItemRow, LabelRow, LearningRow } from "./store.ts"

/** What SQLite gives for one column. */
export type Cell = string | number | null
export type Cells = Readonly<Record<string, Cell>>

const text = (cell: Cell | undefined): string => (cell === null || cell === undefined ? "" : String(cell))
const nullable = (cell: Cell | undefined): string | null => (cell === null || cell === undefined ? null : String(cell))

const DEFAULT_PRIORITY = 2

/** prog never writes NULL where a reader needs a text; another writer may have. */
export const itemRow = (cells: Cells): ItemRow => ({
  id: text(cells.id),
  project: text(cells.project),
  type: text(cells.type),
  title: text(cells.title),
  description: text(cells.description),
  definitionOfDone: nullable(cells.definition_of_done),
  status: text(cells.status),
  priority: Number(cells.priority ?? DEFAULT_PRIORITY),
  parentId: nullable(cells.parent_id),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
})

export const labelRow = (cells: Cells): LabelRow => ({
  id: text(cells.id),
  name: text(cells.name),
  project: text(cells.project),
  color: text(cells.color),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
})

export const conceptRow = (cells: Cells): ConceptRow => ({
  id: text(cells.id),
  name: text(cells.name),
  project: text(cells.project),
  summary: text(cells.summary),
  lastUpdated: text(cells.last_updated),
  learningCount: Number(cells.learning_count ?? 0),
})

const fileList = (cell: Cell | undefined): string[] => {
  const stored = text(cell)
  const parsed: unknown = stored === "" ? [] : JSON.parse(stored)
  return Array.isArray(parsed) ? parsed.filter((file) => typeof file === "string") : []
}

export const learningRow = (cells: Cells): LearningRow => ({
  id: text(cells.id),
  project: text(cells.project),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
  taskId: nullable(cells.task_id),
  summary: text(cells.summary),
  detail: text(cells.detail),
  files: fileList(cells.files),
  status: text(cells.status),
})

const COLUMN_NAMES: Readonly<Record<string, string>> = {
  definitionOfDone: "definition_of_done",
  parentId: "parent_id",
  createdAt: "created_at",
  updatedAt: "updated_at",
  lastUpdated: "last_updated",
  taskId: "task_id",
}

/** The column a row's key is kept in. */
export const columnOf = (key: string): string => COLUMN_NAMES[key] ?? key
