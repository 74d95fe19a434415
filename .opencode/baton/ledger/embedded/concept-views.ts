/** What readers see of concepts. Pure. */
import { compareText, padLeft, padRight, tableSummary } from "./go-text.ts"
import type { ConceptRow, ItemRow } from "./store.ts"
import { parseTimestamp, shortAge, timeAgo } from "./timestamps.ts"

/** Concepts with at least one learning whose name occurs in the item's title or description, whatever its case. */
export const relatedConcepts = (item: ItemRow, concepts: readonly ConceptRow[]): ConceptRow[] => {
  const text = `${item.title} ${item.description}`.toLowerCase()
  return concepts.filter(({ name, learningCount }) => learningCount > 0 && text.includes(name.toLowerCase()))
}

export const byLastUpdate = (left: ConceptRow, right: ConceptRow): number =>
  compareText(right.lastUpdated, left.lastUpdated) || compareText(left.name, right.name)

export const conceptTable = (concepts: readonly ConceptRow[], nowMs: number): string[] => {
  const row = (name: string, count: string, updated: string, summary: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 10)}  ${padRight(updated, 12)}  ${summary}`
  return [
    row("NAME", "LEARNINGS", "LAST UPDATED", "SUMMARY"),
    ...concepts.map(({ name, learningCount, lastUpdated, summary }) =>
      row(name, String(learningCount), timeAgo(parseTimestamp(lastUpdated), nowMs), tableSummary(summary)),
    ),
  ]
}

/** A concept with its active learnings: how many, and the creation text of the oldest. */
export type ConceptCount = { readonly name: string; readonly count: number; readonly oldest: string | undefined }

export const conceptCountTable = (counts: readonly ConceptCount[], nowMs: number): string[] => {
  const row = (name: string, count: string, oldest: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 6)}  ${oldest}`
  const age = (oldest: string | undefined): string =>
    oldest === undefined ? "-" : shortAge(nowMs - parseTimestamp(oldest).epochMs)
  return [
    row("CONCEPT", "COUNT", "OLDEST"),
    ...counts.map(({ name, count, oldest }) => row(name, String(count), age(oldest))),
  ]
}
