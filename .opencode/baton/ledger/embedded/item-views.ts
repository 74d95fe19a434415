/** Items as readers see them: with derived status and labels, in prog's order. */
import { compareText } from "./go-text.ts"
import { childStatusesByParent, withDerivedStatus } from "./status-rules.ts"
import type { Dependency, ItemRow, LedgerStore } from "./store.ts"

export type LabelledItem = ItemRow & { readonly labels: readonly string[] }

const byPriority = (left: ItemRow, right: ItemRow): number =>
  left.priority - right.priority || compareText(left.createdAt, right.createdAt)

/** Every item, by priority and then by the text of its creation time, as prog sorts. */
export const readItems = (store: LedgerStore): LabelledItem[] => {
  const rows = store.items.all()
  const children = childStatusesByParent(rows)
  const labels = store.labels.namesByItem()
  return rows
    .map((row) => ({ ...withDerivedStatus(row, children.get(row.id) ?? []), labels: labels.get(row.id) ?? [] }))
    .sort(byPriority)
}

/** Ids of what each item waits for, in the order of ids. */
export const dependenciesByItem = (pairs: readonly Dependency[]): Map<string, string[]> => {
  const grouped = new Map<string, string[]>()
  for (const { itemId, dependsOn } of pairs) {
    const known = grouped.get(itemId)
    if (known === undefined) grouped.set(itemId, [dependsOn])
    else known.push(dependsOn)
  }
  return grouped
}

/** prog counts distinct labels against the number of flags: the same label asked for twice matches nothing. */
export const hasLabels = (item: LabelledItem, wanted: readonly string[]): boolean =>
  new Set(wanted.filter((name) => item.labels.includes(name))).size === wanted.length
