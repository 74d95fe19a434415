import { CONVERSATION_LABEL } from "../labels.ts"
import { type Dependency, type ItemRow, LedgerError, type LedgerStore } from "./store.ts"

/** An item with the status to show. */
export type LabelledItem = ItemRow & { readonly labels: readonly string[] }

export const findItem = (store: LedgerStore, id: string): ItemRow | undefined =>
  store.all<ItemRow>("SELECT * FROM items WHERE id = ?", id)[0]

/** prog v0.17's message for an unknown id. */
export const itemNotFound = (id: string): LedgerError =>
  new LedgerError(`item not found: ${id} (use 'prog list' to see available items)`)

/** @throws LedgerError for an unknown id */
export const requireItem = (store: LedgerStore, id: string): ItemRow => {
  const item = findItem(store, id)
  if (item === undefined) throw itemNotFound(id)
  return item
}

type ItemChanges = Partial<Omit<ItemRow, "id">> & Pick<ItemRow, "updated_at">

/** @throws LedgerError for an unknown id */
export const updateItem = (store: LedgerStore, id: string, changes: ItemChanges): void => {
  if (!store.update("items", { id }, changes)) throw itemNotFound(id)
}

/** Every pair, ordered by both ids. */
export const readDependencies = (store: LedgerStore): Dependency[] =>
  store.all("SELECT item_id, depends_on FROM deps ORDER BY item_id, depends_on")

/** Groups pairs by their first part, in their order. */
const grouped = (pairs: Iterable<readonly [string, string]>): Map<string, string[]> => {
  const groups = new Map<string, string[]>()
  for (const [key, value] of pairs) {
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return groups
}

const LABEL_NAMES = `
  SELECT il.item_id, l.name FROM item_labels il JOIN labels l ON il.label_id = l.id ORDER BY il.item_id, l.name`

/** Names of attached labels in alphabetical order, by item. */
export const labelsByItem = (store: LedgerStore): Map<string, string[]> =>
  grouped(store.all<{ item_id: string; name: string }>(LABEL_NAMES).map(({ item_id, name }) => [item_id, name]))

/** Reads all items, by priority and then by the text of their creation time, as prog sorts. */
export const readItems = (store: LedgerStore): LabelledItem[] => {
  const rows = store.all<ItemRow>("SELECT * FROM items ORDER BY priority, created_at, rowid")
  const children = childStatusesByParent(rows)
  const labels = labelsByItem(store)
  return rows.map((row) => ({
    ...withDerivedStatus(row, children.get(row.id) ?? []),
    labels: labels.get(row.id) ?? [],
  }))
}

/** @throws LedgerError for an unknown id */
export const readItem = (store: LedgerStore, id: string): ItemRow => {
  const children = store.all<ItemRow>("SELECT * FROM items WHERE parent_id = ?", id)
  return withDerivedStatus(
    requireItem(store, id),
    children.map(({ status }) => status),
  )
}

/** The ids that each item waits for, in the order of ids. */
export const dependenciesByItem = (pairs: readonly Dependency[]): Map<string, string[]> =>
  grouped(pairs.map(({ item_id, depends_on }) => [item_id, depends_on]))

/** prog compares the number of distinct labels with the number of flags: a label that is given twice matches nothing. */
export const hasLabels = (item: LabelledItem, wanted: readonly string[]): boolean =>
  new Set(wanted.filter((name) => item.labels.includes(name))).size === wanted.length

/**
 * Open tasks whose dependencies are all resolved, in the order of `list`; those of conversations only where their label is wanted.
 *
 * @param project "" for all projects
 */
export const readyItems = (store: LedgerStore, project: string, labels: readonly string[] = []): LabelledItem[] => {
  const items = readItems(store)
  const blocked = blockedIds(items, readDependencies(store))
  return items.filter(
    (item) =>
      item.type === "task" &&
      item.status === "open" &&
      !blocked.has(item.id) &&
      (project === "" || project === item.project) &&
      (labels.includes(CONVERSATION_LABEL) || !item.labels.includes(CONVERSATION_LABEL)) &&
      hasLabels(item, labels),
  )
}

/** Beside prog's own indexes, and kept by SQLite for the real prog, too. */
const READY_INDEX = `
  CREATE INDEX IF NOT EXISTS baton_ready ON items (project, priority, created_at) WHERE type = 'task' AND status = 'open'`

const HAS_LABEL =
  "EXISTS (SELECT 1 FROM item_labels il JOIN labels l ON l.id = il.label_id WHERE il.item_id = i.id AND l.name = ?)"

/** The rule of `blockedIds` for one item. */
const IS_BLOCKED = `EXISTS (
  SELECT 1 FROM deps d JOIN items b ON b.id = d.depends_on
  WHERE d.item_id = i.id AND b.status NOT IN ('done', 'canceled') AND NOT (
    b.type = 'epic' AND EXISTS (SELECT 1 FROM items c WHERE c.parent_id = b.id)
    AND NOT EXISTS (SELECT 1 FROM items c WHERE c.parent_id = b.id AND c.status NOT IN ('done', 'canceled'))))`

/** The query of `firstReady`. Its values: the project, the id if one is asked for, the labels, the conversation's label where that is not among them, and the time. */
export const firstReadyQuery = (labels: readonly string[], id?: string): string => `
  SELECT i.* FROM items i WHERE i.project = ? AND i.type = 'task' AND i.status = 'open' ${id === undefined ? "" : "AND i.id = ?"}
  ${labels.map(() => `AND ${HAS_LABEL}`).join(" ")} ${labels.includes(CONVERSATION_LABEL) ? "" : `AND NOT ${HAS_LABEL}`}
  AND NOT ${IS_BLOCKED}
  AND NOT EXISTS (SELECT 1 FROM baton_queue q WHERE q.task_id = i.id AND q.not_before > ?)
  ORDER BY i.priority, i.created_at, i.rowid LIMIT 1`

/**
 * The first of `readyItems`, by an index: its cost does not grow with the number of tasks, but with those before it that are blocked.
 * Within a transaction that writes, since the first call makes the index, and after the tables of runs.ts.
 *
 * @param now ISO 8601: a task that is not to be handed out before a later time is left out
 * @param id only this task
 */
export const firstReady = (
  store: LedgerStore,
  project: string,
  labels: readonly string[],
  now: string,
  id?: string,
): ItemRow | undefined => {
  store.run(READY_INDEX)
  // A label that is given twice matches nothing, as in hasLabels.
  if (new Set(labels).size < labels.length) return undefined
  const values = [
    project,
    ...(id === undefined ? [] : [id]),
    ...labels,
    ...(labels.includes(CONVERSATION_LABEL) ? [] : [CONVERSATION_LABEL]),
    now,
  ]
  return store.all<ItemRow>(firstReadyQuery(labels, id), ...values)[0]
}

// The rules of prog v0.17 about statuses; `draft` comes from later versions of prog. Pure.

/** In the order of prog v0.17's own message. */
export const STATUSES = ["open", "in_progress", "blocked", "reviewing", "done", "canceled"] as const

const CLOSED: ReadonlySet<string> = new Set(["done", "canceled"])
const ACTIVE: ReadonlySet<string> = new Set(["in_progress", "reviewing", "done"])

export const isClosed = (status: string): boolean => CLOSED.has(status)

export const isStatus = (text: string): boolean => text === "draft" || STATUSES.some((status) => status === text)

/**
 * Derives an epic's status from its direct children. A stored done or canceled wins, and without children the stored status
 * stays. Else all closed is done, all others blocked is blocked, anything started is in_progress, only drafts is draft, and
 * the rest is open.
 */
export const deriveEpicStatus = (stored: string, children: readonly string[]): string => {
  if (CLOSED.has(stored) || children.length === 0) return stored
  const unresolved = children.filter((status) => !CLOSED.has(status))
  if (unresolved.length === 0) return "done"
  if (unresolved.every((status) => status === "blocked")) return "blocked"
  if (children.some((status) => ACTIVE.has(status))) return "in_progress"
  return unresolved.every((status) => status === "draft") ? "draft" : "open"
}

const withDerivedStatus = (item: ItemRow, children: readonly string[]): ItemRow =>
  item.type === "epic" ? { ...item, status: deriveEpicStatus(item.status, children) } : item

const childStatusesByParent = (items: readonly ItemRow[]): Map<string, string[]> =>
  grouped(items.flatMap(({ parent_id, status }) => (parent_id === null ? [] : [[parent_id, status] as const])))

/**
 * Ids of items with at least one unresolved dependency. A dependency is resolved if it is done or canceled, or an epic with
 * at least one child and all of them closed.
 */
export const blockedIds = (items: readonly ItemRow[], dependencies: readonly Dependency[]): Set<string> => {
  const children = childStatusesByParent(items)
  const byId = new Map(items.map((item) => [item.id, item]))
  const isResolved = (id: string): boolean => {
    const item = byId.get(id)
    if (item === undefined || CLOSED.has(item.status)) return true
    const statuses = children.get(id) ?? []
    return item.type === "epic" && statuses.length > 0 && statuses.every((status) => CLOSED.has(status))
  }
  return new Set(dependencies.filter((pair) => !isResolved(pair.depends_on)).map((pair) => pair.item_id))
}

export const DRAFT_IN_EPIC = "a draft cannot belong to an epic: prog v0.17 cannot read an epic with a draft child"
