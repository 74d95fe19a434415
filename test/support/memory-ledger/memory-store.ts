import type { LedgerStore } from "../../../.opencode/baton/ledger/embedded/store.ts"
import { createMemoryConcepts, createMemoryLearnings, type KnowledgeTables } from "./memory-knowledge.ts"
import {
  createMemoryDependencies,
  createMemoryItems,
  createMemoryLabels,
  createMemoryLogs,
  createMemoryProjects,
  type TaskTables,
} from "./memory-tasks.ts"

export type Tables = TaskTables & KnowledgeTables

const emptyTables = (): Tables => ({
  items: [],
  dependencies: [],
  logs: [],
  projects: [],
  labels: [],
  itemLabels: [],
  concepts: [],
  learnings: [],
  learningConcepts: [],
})

/** Rows are replaced and never changed in place, so copies of the lists are a full copy. */
const copyTables = (tables: Tables): Tables => ({
  items: [...tables.items],
  dependencies: [...tables.dependencies],
  logs: [...tables.logs],
  projects: [...tables.projects],
  labels: [...tables.labels],
  itemLabels: [...tables.itemLabels],
  concepts: [...tables.concepts],
  learnings: [...tables.learnings],
  learningConcepts: [...tables.learningConcepts],
})

/**
 * The SQLite store's twin: same rows, same keys, same failures, nothing on disk. For tests of what uses a ledger.
 * @param nowMs milliseconds since 1970, for the times of log lines
 */
export const createMemoryStore = (nowMs: () => number): LedgerStore => {
  const tables = emptyTables()
  return {
    items: createMemoryItems(tables),
    dependencies: createMemoryDependencies(tables),
    logs: createMemoryLogs(tables, nowMs),
    projects: createMemoryProjects(tables),
    labels: createMemoryLabels(tables),
    concepts: createMemoryConcepts(tables),
    learnings: createMemoryLearnings(tables),
    location: ":memory:",
    write: (work) => {
      const before = copyTables(tables)
      try {
        return work()
      } catch (error) {
        Object.assign(tables, before)
        throw error
      }
    },
    close: () => {},
  }
}
