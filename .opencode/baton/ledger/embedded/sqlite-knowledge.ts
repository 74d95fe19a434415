import type { Connection } from "./sqlite-connection.ts"
import { conceptRow, learningRow } from "./sqlite-rows.ts"
import type { ConceptStore, LearningStore } from "./store.ts"

const CONCEPTS = `
  SELECT c.*, (SELECT COUNT(*) FROM learning_concepts lc WHERE lc.concept_id = c.id) AS learning_count
  FROM concepts c WHERE c.project = ? ORDER BY learning_count DESC, c.name`

const SEARCH = `
  SELECT l.* FROM learnings l JOIN learnings_fts fts ON l.rowid = fts.rowid
  WHERE learnings_fts MATCH ? AND l.project = ? ORDER BY rank`

const CONCEPT_NAMES = `
  SELECT c.name FROM learning_concepts lc JOIN concepts c ON c.id = lc.concept_id
  WHERE lc.learning_id = ? ORDER BY lc.concept_id`

export const createSqliteConcepts = (connection: Connection): ConceptStore => ({
  of: (project) => connection.all(CONCEPTS, project).map(conceptRow),
  insert: (row) => connection.insert("concepts", row),
  update: (project, name, changes) => connection.update("concepts", changes, { name, project }),
})

export const createSqliteLearnings = (connection: Connection): LearningStore => ({
  find: (id) => {
    const cells = connection.first("SELECT * FROM learnings WHERE id = ?", id)
    return cells === undefined ? undefined : learningRow(cells)
  },
  of: (project) =>
    connection.all("SELECT * FROM learnings WHERE project = ? ORDER BY created_at DESC", project).map(learningRow),
  search: (project, query) => connection.all(SEARCH, query, project).map(learningRow),
  insert: (row) => connection.insert("learnings", { ...row, files: JSON.stringify(row.files) }),
  update: (id, changes) => connection.update("learnings", changes, { id }),
  remove: (id) => {
    connection.run("DELETE FROM learning_concepts WHERE learning_id = ?", id)
    return connection.run("DELETE FROM learnings WHERE id = ?", id) > 0
  },
  tag: (learningId, conceptId) =>
    connection.insert("learning_concepts", { learning_id: learningId, concept_id: conceptId }),
  conceptNames: (learningId) => connection.all(CONCEPT_NAMES, learningId).map(({ name }) => String(name)),
})
