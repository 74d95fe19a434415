import { compareText } from "./format.ts"
import type { Dependency, ItemRow, LedgerStore } from "./store.ts"

export type LabelledItem = ItemRow & { readonly labels: readonly string[] }

const byPriority = (left: ItemRow, right: ItemRow): number =>
  left.priority - right.priority || compareText(left.createdAt, right.createdAt)

/** Reads all items, by priority and then by the text of their creation time, as prog sorts. */
export const readItems = (store: LedgerStore): LabelledItem[] => {
  const rows = store.items.all()
  const children = childStatusesByParent(rows)
  const labels = store.labels.namesByItem()
  return rows
    .map((row) => ({ ...withDerivedStatus(row, children.get(row.id) ?? []), labels: labels.get(row.id) ?? [] }))
    .sort(byPriority)
}

/** The ids that each item waits for, in the order of ids. */
export const dependenciesByItem = (pairs: readonly Dependency[]): Map<string, string[]> => {
  const grouped = new Map<string, string[]>()
  for (const { itemId, dependsOn } of pairs) {
    const known = grouped.get(itemId)
    if (known === undefined) grouped.set(itemId, [dependsOn])
    else known.push(dependsOn)
  }
  return grouped
}

/** prog compares the number of distinct labels with the number of flags: a label that is given twice matches nothing. */
export const hasLabels = (item: LabelledItem, wanted: readonly string[]): boolean =>
  new Set(wanted.filter((name) => item.labels.includes(name))).size === wanted.length

/** Open tasks whose dependencies are all resolved, in the order of `list`. @param project "" for all projects */
export const readyItems = (store: LedgerStore, project: string, labels: readonly string[] = []): LabelledItem[] => {
  const items = readItems(store)
  const blocked = blockedIds(items, store.dependencies.all())
  return items.filter(
    (item) =>
      item.type === "task" &&
      item.status === "open" &&
      !blocked.has(item.id) &&
      (project === "" || project === item.project) &&
      hasLabels(item, labels),
  )
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

/** The item with the status to show. */
export const withDerivedStatus = <Item extends ItemRow>(item: Item, children: readonly string[]): Item =>
  item.type === "epic" ? { ...item, status: deriveEpicStatus(item.status, children) } : item

/** Statuses of direct children, by parent. */
const childStatusesByParent = (items: readonly ItemRow[]): Map<string, string[]> => {
  const children = new Map<string, string[]>()
  for (const { parentId, status } of items) {
    if (parentId === null) continue
    const known = children.get(parentId)
    if (known === undefined) children.set(parentId, [status])
    else known.push(status)
  }
  return children
}

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
  return new Set(dependencies.filter((pair) => !isResolved(pair.dependsOn)).map((pair) => pair.itemId))
}

export const DRAFT_IN_EPIC = "a draft cannot belong to an epic: prog v0.17 cannot read an epic with a draft child"
