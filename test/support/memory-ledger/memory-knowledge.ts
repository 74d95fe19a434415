import { compareText } from "../../../.opencode/baton/ledger/embedded/go-text.ts"
import type {
  ConceptRow,
  ConceptStore,
  LearningRow,
  LearningStore,
} from "../../../.opencode/baton/ledger/embedded/store.ts"
import { primaryKeyFailure, uniqueFailure } from "./memory-keys.ts"
import { searchTexts } from "./memory-search.ts"
import { replaceRows } from "./memory-tasks.ts"

export type KnowledgeTables = {
  concepts: Omit<ConceptRow, "learningCount">[]
  learnings: LearningRow[]
  learningConcepts: { readonly learningId: string; readonly conceptId: string }[]
}

export const createMemoryConcepts = (tables: KnowledgeTables): ConceptStore => {
  const find = (project: string, name: string) =>
    tables.concepts.find((concept) => concept.project === project && concept.name === name)
  const countOf = (id: string): number => tables.learningConcepts.filter(({ conceptId }) => conceptId === id).length
  return {
    of: (project) =>
      tables.concepts
        .filter((concept) => concept.project === project)
        .map((concept) => ({ ...concept, learningCount: countOf(concept.id) }))
        .toSorted((left, right) => right.learningCount - left.learningCount || compareText(left.name, right.name)),
    insert: (row) => {
      if (find(row.project, row.name) !== undefined) throw uniqueFailure("concepts.name, concepts.project")
      tables.concepts.push({ ...row, summary: "" })
    },
    update: (project, name, changes) => {
      const concept = find(project, name)
      if (concept === undefined) return false
      const twin = changes.name === undefined ? undefined : find(project, changes.name)
      if (twin !== undefined && twin.id !== concept.id) throw uniqueFailure("concepts.name, concepts.project")
      return replaceRows(tables.concepts, ({ id }) => id === concept.id, changes)
    },
  }
}

const newestFirst = (left: LearningRow, right: LearningRow): number => compareText(right.createdAt, left.createdAt)

export const createMemoryLearnings = (tables: KnowledgeTables): LearningStore => {
  const find = (id: string): LearningRow | undefined => tables.learnings.find((learning) => learning.id === id)
  return {
    find,
    of: (project) => tables.learnings.filter((learning) => learning.project === project).toSorted(newestFirst),
    search: (project, query) => {
      const ranked = searchTexts(tables.learnings, query)
      return ranked.filter((learning) => learning.project === project)
    },
    insert: (row) => {
      if (find(row.id) !== undefined) throw primaryKeyFailure("learnings.id")
      tables.learnings.push(row)
    },
    update: (id, changes) => replaceRows(tables.learnings, (learning) => learning.id === id, changes),
    remove: (id) => {
      const found = find(id) !== undefined
      tables.learningConcepts = tables.learningConcepts.filter(({ learningId }) => learningId !== id)
      tables.learnings = tables.learnings.filter((learning) => learning.id !== id)
      return found
    },
    tag: (learningId, conceptId) => {
      const known = tables.learningConcepts.some(
        (pair) => pair.learningId === learningId && pair.conceptId === conceptId,
      )
      if (known) throw primaryKeyFailure("learning_concepts.learning_id, learning_concepts.concept_id")
      tables.learningConcepts.push({ learningId, conceptId })
    },
    conceptNames: (learningId) =>
      tables.learningConcepts
        .filter((pair) => pair.learningId === learningId)
        .map(({ conceptId }) => conceptId)
        .toSorted(compareText)
        .flatMap((id) => tables.concepts.filter((concept) => concept.id === id).map(({ name }) => name)),
  }
}
