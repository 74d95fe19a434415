import { compareText } from "../../../.opencode/baton/ledger/embedded/go-text.ts"
import type {
  Dependency,
  DependencyStore,
  ItemRow,
  ItemStore,
  LabelRow,
  LabelStore,
  LearningRow,
  LogRow,
  LogStore,
  ProjectStore,
} from "../../../.opencode/baton/ledger/embedded/store.ts"
import { formatLogTimestamp } from "../../../.opencode/baton/ledger/embedded/timestamps.ts"
import { foreignKeyFailure, primaryKeyFailure, uniqueFailure } from "./memory-keys.ts"

export type TaskTables = {
  items: ItemRow[]
  dependencies: Dependency[]
  logs: (LogRow & { readonly itemId: string })[]
  projects: string[]
  labels: LabelRow[]
  itemLabels: { readonly itemId: string; readonly labelId: string }[]
  learnings: LearningRow[]
}

/** Replaces the rows that match; false when there is none. */
export const replaceRows = <Row>(rows: Row[], matches: (row: Row) => boolean, changes: Partial<Row>): boolean => {
  const found = rows.some(matches)
  for (const [at, row] of rows.entries()) if (matches(row)) rows[at] = { ...row, ...changes }
  return found
}

export const createMemoryItems = (tables: TaskTables): ItemStore => {
  const isReferred = (id: string): boolean =>
    tables.items.some((item) => item.parentId === id) ||
    tables.dependencies.some((pair) => pair.itemId === id || pair.dependsOn === id) ||
    tables.logs.some((log) => log.itemId === id) ||
    tables.itemLabels.some((pair) => pair.itemId === id) ||
    tables.learnings.some((learning) => learning.taskId === id)
  const find = (id: string): ItemRow | undefined => tables.items.find((item) => item.id === id)
  return {
    find,
    all: () => [...tables.items],
    childStatuses: (parentId) => tables.items.filter((item) => item.parentId === parentId).map(({ status }) => status),
    insert: (row) => {
      if (find(row.id) !== undefined) throw primaryKeyFailure("items.id")
      tables.items.push(row)
    },
    update: (id, changes) => replaceRows(tables.items, (item) => item.id === id, changes),
    remove: (id) => {
      if (isReferred(id)) throw foreignKeyFailure()
      tables.items = tables.items.filter((item) => item.id !== id)
    },
  }
}

export const createMemoryDependencies = (tables: TaskTables): DependencyStore => ({
  all: () =>
    tables.dependencies.toSorted(
      (left, right) => compareText(left.itemId, right.itemId) || compareText(left.dependsOn, right.dependsOn),
    ),
  add: (pair) => {
    const known = tables.dependencies.some(
      ({ itemId, dependsOn }) => itemId === pair.itemId && dependsOn === pair.dependsOn,
    )
    if (!known) tables.dependencies.push(pair)
  },
  removeOf: (id) => {
    tables.dependencies = tables.dependencies.filter(({ itemId, dependsOn }) => itemId !== id && dependsOn !== id)
  },
})

export const createMemoryLogs = (tables: TaskTables, nowMs: () => number): LogStore => ({
  of: (itemId) => tables.logs.filter((log) => log.itemId === itemId),
  add: (itemId, message) => {
    if (!tables.items.some((item) => item.id === itemId)) throw foreignKeyFailure()
    tables.logs.push({ itemId, message, createdAt: formatLogTimestamp(nowMs()) })
  },
  removeOf: (itemId) => {
    tables.logs = tables.logs.filter((log) => log.itemId !== itemId)
  },
})

export const createMemoryProjects = (tables: TaskTables): ProjectStore => ({
  names: () => tables.projects.toSorted(compareText),
  ensure: (name) => {
    if (!tables.projects.includes(name)) tables.projects.push(name)
  },
})

export const createMemoryLabels = (tables: TaskTables): LabelStore => {
  const byName = (left: LabelRow, right: LabelRow): number => compareText(left.name, right.name)
  const refuseTwin = (project: string, name: string, id: string): void => {
    const twin = tables.labels.some((label) => label.project === project && label.name === name && label.id !== id)
    if (twin) throw uniqueFailure("labels.name, labels.project")
  }
  return {
    of: (project) => tables.labels.filter((label) => label.project === project).toSorted(byName),
    insert: (row) => {
      refuseTwin(row.project, row.name, row.id)
      tables.labels.push(row)
    },
    rename: (project, name, newName, at) => {
      const label = tables.labels.find((known) => known.project === project && known.name === name)
      if (label === undefined) return false
      refuseTwin(project, newName, label.id)
      return replaceRows(tables.labels, ({ id }) => id === label.id, { name: newName, updatedAt: at })
    },
    remove: (id) => {
      tables.itemLabels = tables.itemLabels.filter(({ labelId }) => labelId !== id)
      tables.labels = tables.labels.filter((label) => label.id !== id)
    },
    namesByItem: () => {
      const names = new Map<string, string[]>()
      for (const { id, name } of tables.labels.toSorted(byName)) {
        for (const { itemId, labelId } of tables.itemLabels) {
          if (labelId === id) names.set(itemId, [...(names.get(itemId) ?? []), name])
        }
      }
      return names
    },
    attach: (itemId, labelId) => {
      const known = tables.itemLabels.some((pair) => pair.itemId === itemId && pair.labelId === labelId)
      if (!known) tables.itemLabels.push({ itemId, labelId })
    },
    detach: (itemId, labelId) => {
      const kept = tables.itemLabels.filter((pair) => pair.itemId !== itemId || pair.labelId !== labelId)
      const found = kept.length < tables.itemLabels.length
      tables.itemLabels = kept
      return found
    },
  }
}
