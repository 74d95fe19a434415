/** What readers see of learnings. Pure. */
import { goJson } from "./go-text.ts"
import type { LearningRow } from "./store.ts"
import { parseTimestamp, rfc3339, timeAgo } from "./timestamps.ts"

export type LearningView = LearningRow & { readonly concepts: readonly string[] }

const staleMark = ({ status }: LearningView): string => (status === "stale" ? " [stale]" : "")

export const learningsJson = (learnings: readonly LearningView[]): string =>
  goJson(
    learnings.map(({ id, summary, detail, concepts, files, createdAt, status }) => ({
      id,
      summary,
      ...(detail === "" ? {} : { detail }),
      concepts,
      ...(files.length === 0 ? {} : { files }),
      created_at: rfc3339(parseTimestamp(createdAt)),
      status,
    })),
  )

const detailLines = (learning: LearningView, nowMs: number): string[] => [
  `## ${learning.id}${staleMark(learning)} (${timeAgo(parseTimestamp(learning.createdAt), nowMs)})`,
  learning.summary,
  ...(learning.detail === "" ? [] : ["", learning.detail]),
  ...(learning.concepts.length === 0 ? [] : ["", `Concepts: ${learning.concepts.join(", ")}`]),
  ...(learning.files.length === 0 ? [] : [`Files: ${learning.files.join(", ")}`]),
  ...(learning.taskId === null ? [] : [`Task: ${learning.taskId}`]),
]

export const learningDetails = (learnings: readonly LearningView[], nowMs: number): string[] =>
  learnings.flatMap((learning, at) => [...(at === 0 ? [] : [""]), ...detailLines(learning, nowMs)])

const summaryLine = (learning: LearningView): string => `  ${learning.id}: ${learning.summary}${staleMark(learning)}`

const conceptLine = (name: string, about: ReadonlyMap<string, string>): string =>
  `${name}: ${about.get(name) || "(no summary)"}`

/** The asked-for concepts first, then a line for each learning. */
export const summariesUnderConcepts = (
  learnings: readonly LearningView[],
  names: readonly string[],
  about: ReadonlyMap<string, string>,
): string[] => [
  ...names.map((name) => conceptLine(name, about)),
  ...(names.length === 0 ? [] : [""]),
  ...learnings.map(summaryLine),
]

/** Every concept in the order of its first learning, with a line for each of its learnings. */
export const groupedSummaries = (learnings: readonly LearningView[], about: ReadonlyMap<string, string>): string[] => {
  const names = [...new Set(learnings.flatMap(({ concepts }) => concepts))]
  return names.flatMap((name, at) => [
    ...(at === 0 ? [] : [""]),
    conceptLine(name, about),
    ...learnings.filter(({ concepts }) => concepts.includes(name)).map(summaryLine),
  ])
}
