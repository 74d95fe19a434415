import { type Command, type CommandContext, JSON_FLAG, refuse, withErrorPrefix } from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, padLeft, padRight, parseTimestamp, rfc3339, shortAge, tableSummary, timeAgo } from "../format.ts"
import { requireItem } from "../items.ts"
import type { Cells, ConceptRow, ItemRow, LearningRow, LedgerStore } from "../store.ts"

type LearningView = Omit<LearningRow, "files"> & {
  readonly files: readonly string[]
  readonly concepts: readonly string[]
}

const staleMark = ({ status }: LearningView): string => (status === "stale" ? " [stale]" : "")

const learningsJson = (learnings: readonly LearningView[]): string =>
  goJson(
    learnings.map(({ id, summary, detail, concepts, files, created_at, status }) => ({
      id,
      summary,
      ...(detail === "" ? {} : { detail }),
      concepts,
      ...(files.length === 0 ? {} : { files }),
      created_at: rfc3339(parseTimestamp(created_at)),
      status,
    })),
  )

const detailLines = (learning: LearningView, nowMs: number): string[] => [
  `## ${learning.id}${staleMark(learning)} (${timeAgo(parseTimestamp(learning.created_at), nowMs)})`,
  learning.summary,
  ...(learning.detail === "" ? [] : ["", learning.detail]),
  ...(learning.concepts.length === 0 ? [] : ["", `Concepts: ${learning.concepts.join(", ")}`]),
  ...(learning.files.length === 0 ? [] : [`Files: ${learning.files.join(", ")}`]),
  ...(learning.task_id === null ? [] : [`Task: ${learning.task_id}`]),
]

const learningDetails = (learnings: readonly LearningView[], nowMs: number): string[] =>
  learnings.flatMap((learning, at) => [...(at === 0 ? [] : [""]), ...detailLines(learning, nowMs)])

const summaryLine = (learning: LearningView): string => `  ${learning.id}: ${learning.summary}${staleMark(learning)}`

const conceptLine = (name: string, about: ReadonlyMap<string, string | null>): string =>
  `${name}: ${about.get(name) || "(no summary)"}`

/** The requested concepts first, then one line per learning. */
const summariesUnderConcepts = (
  learnings: readonly LearningView[],
  names: readonly string[],
  about: ReadonlyMap<string, string | null>,
): string[] => [
  ...names.map((name) => conceptLine(name, about)),
  ...(names.length === 0 ? [] : [""]),
  ...learnings.map(summaryLine),
]

/** Each concept in the order of its first learning, with one line per learning. */
const groupedSummaries = (learnings: readonly LearningView[], about: ReadonlyMap<string, string | null>): string[] => {
  const names = [...new Set(learnings.flatMap(({ concepts }) => concepts))]
  return names.flatMap((name, at) => [
    ...(at === 0 ? [] : [""]),
    conceptLine(name, about),
    ...learnings.filter(({ concepts }) => concepts.includes(name)).map(summaryLine),
  ])
}

const CONCEPTS = `
  SELECT c.*, (SELECT COUNT(*) FROM learning_concepts lc WHERE lc.concept_id = c.id) AS learning_count
  FROM concepts c WHERE c.project = ? ORDER BY`

/** By number of learnings, the most first, or by their last update, the newest first; then by name. */
export const readConcepts = (
  store: LedgerStore,
  project: string,
  order: "learning_count" | "last_updated" = "learning_count",
): ConceptRow[] => store.all(`${CONCEPTS} ${order} DESC, c.name`, project)

/** Concepts with at least one learning whose name occurs in the item's title or description, in any case. */
export const relatedConcepts = (item: ItemRow, concepts: readonly ConceptRow[]): ConceptRow[] => {
  const text = `${item.title} ${item.description ?? ""}`.toLowerCase()
  return concepts.filter(({ name, learning_count }) => learning_count > 0 && text.includes(name.toLowerCase()))
}

const conceptTable = (concepts: readonly ConceptRow[], nowMs: number): string[] => {
  const row = (name: string, count: string, updated: string, summary: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 10)}  ${padRight(updated, 12)}  ${summary}`
  return [
    row("NAME", "LEARNINGS", "LAST UPDATED", "SUMMARY"),
    ...concepts.map(({ name, learning_count, last_updated, summary }) =>
      row(name, String(learning_count), timeAgo(parseTimestamp(last_updated), nowMs), tableSummary(summary ?? "")),
    ),
  ]
}

/** Number of a concept's active learnings, and the creation text of the oldest. */
type ConceptCount = { readonly name: string; readonly count: number; readonly oldest: string | null }

const conceptCountTable = (counts: readonly ConceptCount[], nowMs: number): string[] => {
  const row = (name: string, count: string, oldest: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 6)}  ${oldest}`
  const age = (oldest: string | null): string =>
    oldest === null ? "-" : shortAge(nowMs - parseTimestamp(oldest).epochMs)
  return [
    row("CONCEPT", "COUNT", "OLDEST"),
    ...counts.map(({ name, count, oldest }) => row(name, String(count), age(oldest))),
  ]
}

const PROJECT_REQUIRED = "project is required (-p)"

const DETAIL_FLAG: FlagSpec = { name: "detail", kind: "text", about: "the full explanation; '-' reads standard input" }

const readDetail = (given: string, context: CommandContext): string =>
  given === "-" ? context.readStdin().trim() : given

const IN_PROGRESS = "SELECT * FROM items WHERE status = 'in_progress' AND project = ? ORDER BY updated_at DESC LIMIT 1"

/** The project's item in progress with the latest update. */
const currentTask = (store: LedgerStore, project: string): ItemRow | undefined =>
  store.all<ItemRow>(IN_PROGRESS, project)[0]

const tagLearning = (context: CommandContext, learningId: string, project: string, name: string, at: string): void => {
  const store = context.store()
  const known = readConcepts(store, project).find((concept) => concept.name === name)
  const id = known?.id ?? context.newId("con")
  if (known === undefined) store.insert("concepts", { id, name, project, last_updated: at })
  else store.update("concepts", { id }, { last_updated: at })
  withErrorPrefix("failed to create concept association", () =>
    store.insert("learning_concepts", { learning_id: learningId, concept_id: id }),
  )
}

const learningNotFound = (id: string) => refuse(`learning not found: ${id}`)

const updateLearning = (store: LedgerStore, id: string, changes: Cells): void => {
  if (!store.update("learnings", { id }, changes)) throw learningNotFound(id)
}

const edit: Command = {
  name: "edit",
  operands: "<learning-id>",
  summary: "Change a learning's summary or detail",
  arguments: { least: 1, most: 1 },
  flags: [{ name: "summary", kind: "text", about: "the new summary" }, DETAIL_FLAG],
  run: ({ args: [id = ""], flags }, context) => {
    const [summary, given] = [flags.text("summary"), flags.text("detail")]
    if (summary === "" && given === "") throw refuse("--summary or --detail is required")
    const detail = readDetail(given, context)
    return context.write((store) => {
      const changes = { ...(summary === "" ? {} : { summary }), ...(given === "" ? {} : { detail }) }
      updateLearning(store, id, { ...changes, updated_at: context.timestamp() })
      return [`Updated ${id}`]
    })
  },
}

const stale: Command = {
  name: "stale",
  operands: "<learning-id> [learning-id...]",
  summary: "Mark learnings as out of date",
  arguments: { least: 1 },
  flags: [{ name: "reason", kind: "text", about: "why; shown once, not kept" }],
  run: ({ args, flags }, context) =>
    context.write((store) => {
      for (const id of args) updateLearning(store, id, { status: "stale", updated_at: context.timestamp() })
      const what = args.length === 1 ? args.join("") : `${args.length} learnings`
      const reason = flags.text("reason") === "" ? "" : `: ${flags.text("reason")}`
      return [`Marked ${what} as stale${reason}`]
    }),
}

const rm: Command = {
  name: "rm",
  operands: "<learning-id>",
  summary: "Delete a learning",
  arguments: { least: 1, most: 1 },
  run: ({ args: [id = ""] }, context) =>
    context.write((store) => {
      store.run("DELETE FROM learning_concepts WHERE learning_id = ?", id)
      if (store.run("DELETE FROM learnings WHERE id = ?", id) === 0) throw learningNotFound(id)
      return [`Deleted ${id}`]
    }),
}

const learn: Command = {
  name: "learn",
  operands: "<summary>",
  summary: "Keep something worth knowing, under one or more concepts; prints its id",
  arguments: { least: 1 },
  usesFolderProject: true,
  flags: [
    { name: "concept", short: "c", kind: "list", about: "a concept it belongs to; may be given again" },
    { name: "file", short: "f", kind: "list", about: "a file it is about; may be given again" },
    DETAIL_FLAG,
  ],
  children: [edit, stale, rm],
  run: ({ args, flags }, context) => {
    const [project, names] = [flags.text("project"), flags.list("concept")]
    if (project === "") throw refuse(PROJECT_REQUIRED)
    if (names.length === 0) throw refuse("at least one concept is required (-c)")
    const detail = readDetail(flags.text("detail"), context)
    return context.create((store) => {
      const [id, at, task] = [context.newId("lrn"), context.timestamp(), currentTask(store, project)]
      store.insert("learnings", {
        id,
        project,
        created_at: at,
        updated_at: at,
        task_id: task?.id ?? null,
        summary: args.join(" "),
        detail,
        files: JSON.stringify(flags.list("file")),
        status: "active",
      })
      for (const name of names) tagLearning(context, id, project, name, at)
      return [task === undefined ? id : `${id} (linked to ${task.id})`]
    })
  },
}

/** In the order of the concepts' ids, as prog gives them. */
const CONCEPT_NAMES = `
  SELECT c.name FROM learning_concepts lc JOIN concepts c ON c.id = lc.concept_id
  WHERE lc.learning_id = ? ORDER BY lc.concept_id`

const conceptsOf = (store: LedgerStore, learningId: string): string[] =>
  store.all<{ name: string }>(CONCEPT_NAMES, learningId).map(({ name }) => name)

const toView = (store: LedgerStore, row: LearningRow): LearningView => ({
  ...row,
  files: JSON.parse(row.files || "[]"),
  concepts: conceptsOf(store, row.id),
})

const print = (found: readonly LearningView[], flags: Flags, text: () => string[]): string[] => {
  if (flags.has("json")) return [learningsJson(found)]
  return found.length === 0 ? ["No learnings found"] : text()
}

const oneLearning = (id: string, flags: Flags, context: CommandContext): string[] => {
  const [row] = context.store().all<LearningRow>("SELECT * FROM learnings WHERE id = ?", id)
  if (row === undefined) throw learningNotFound(id)
  const found = [toView(context.store(), row)]
  return print(found, flags, () => learningDetails(found, context.nowMs()))
}

/** The best first. */
const SEARCH = `
  SELECT l.* FROM learnings l JOIN learnings_fts fts ON l.rowid = fts.rowid
  WHERE learnings_fts MATCH ? AND l.project = ? ORDER BY rank`

/** The newest first. */
const readLearnings = (store: LedgerStore, project: string): LearningRow[] =>
  store.all("SELECT * FROM learnings WHERE project = ? ORDER BY created_at DESC", project)

const findLearnings = (project: string, flags: Flags, store: LedgerStore): LearningView[] => {
  const [names, query] = [flags.list("concept"), flags.text("query")]
  const bySearch = names.length === 0 && query !== ""
  const rows = bySearch
    ? withErrorPrefix("failed to search learnings", () => store.all<LearningRow>(SEARCH, query, project))
    : readLearnings(store, project)
  return rows
    .filter(({ status }) => status === "active" || (flags.has("include-stale") && status === "stale"))
    .map((row) => toView(store, row))
    .filter(({ concepts }) => names.length === 0 || names.some((name) => concepts.includes(name)))
}

const context: Command = {
  name: "context",
  summary: "Show learnings by concept, by full-text search, or by id",
  usesFolderProject: true,
  flags: [
    { name: "concept", short: "c", kind: "list", about: "learnings of this concept; may be given again" },
    { name: "query", short: "q", kind: "text", about: "learnings that match this FTS5 query" },
    { name: "include-stale", kind: "switch", about: "stale learnings too" },
    { name: "summary", kind: "switch", about: "one line for each" },
    { name: "id", kind: "text", about: "this learning" },
    JSON_FLAG,
  ],
  run: ({ flags }, world) => {
    if (flags.text("id") !== "") return oneLearning(flags.text("id"), flags, world)
    const project = flags.text("project")
    if (project === "") throw refuse(`${PROJECT_REQUIRED} or use --id`)
    const [names, summary] = [flags.list("concept"), flags.has("summary")]
    const everything = names.length === 0 && flags.text("query") === ""
    if (everything && !summary) throw refuse("specify concepts (-c), query (-q), or use --summary for all")
    const store = world.store()
    const found = findLearnings(project, flags, store)
    return print(found, flags, () => {
      if (!summary) return learningDetails(found, world.nowMs())
      const about = new Map(readConcepts(store, project).map((concept) => [concept.name, concept.summary]))
      return everything ? groupedSummaries(found, about) : summariesUnderConcepts(found, names, about)
    })
  },
}

const editConcept = (
  context: CommandContext,
  project: string,
  name: string,
  summary: string,
  rename: string,
): string[] =>
  context.write((store) => {
    const changes = { ...(summary === "" ? {} : { summary }), ...(rename === "" ? {} : { name: rename }) }
    const found = withErrorPrefix(`failed to ${rename === "" ? "update" : "rename"} concept`, () =>
      store.update("concepts", { name, project }, { ...changes, last_updated: context.timestamp() }),
    )
    if (!found) throw refuse(`concept not found: ${name}`)
    return [...(summary === "" ? [] : [`Updated ${name}`]), ...(rename === "" ? [] : [`Renamed ${name} -> ${rename}`])]
  })

/** The highest count first. */
const CONCEPT_COUNTS = `
  SELECT c.name, COUNT(l.id) AS count, MIN(l.created_at) AS oldest FROM concepts c
  LEFT JOIN learning_concepts lc ON lc.concept_id = c.id
  LEFT JOIN learnings l ON l.id = lc.learning_id AND l.status = 'active'
  WHERE c.project = ? GROUP BY c.id ORDER BY count DESC, c.name`

const conceptsRelatedTo = (store: LedgerStore, id: string): ConceptRow[] => {
  const item = requireItem(store, id)
  return relatedConcepts(item, readConcepts(store, item.project))
}

const concepts: Command = {
  name: "concepts",
  operands: "[name]",
  summary: "List a project's concepts, or describe or rename one",
  usesFolderProject: true,
  flags: [
    { name: "recent", kind: "switch", about: "the last updated first, not the most used" },
    { name: "related", kind: "text", about: "only concepts that a task's title or description names" },
    { name: "summary", kind: "text", about: "describe the named concept" },
    { name: "rename", kind: "text", about: "rename the named concept" },
    { name: "stats", kind: "switch", about: "count learnings and show the age of the oldest" },
  ],
  run: ({ args: [name], flags }, context) => {
    const [project, summary, rename] = [flags.text("project"), flags.text("summary"), flags.text("rename")]
    const related = flags.text("related")
    const isEdit = name !== undefined && (summary !== "" || rename !== "")
    if (project === "" && (isEdit || flags.has("stats"))) throw refuse(PROJECT_REQUIRED)
    if (isEdit) return editConcept(context, project, name, summary, rename)
    if (flags.has("stats")) {
      const counts = context.store().all<ConceptCount>(CONCEPT_COUNTS, project)
      return counts.length === 0 ? ["No concepts"] : conceptCountTable(counts, context.nowMs())
    }
    if (related === "" && project === "") throw refuse(`${PROJECT_REQUIRED} or use --related <task-id>`)
    const store = context.store()
    const order = flags.has("recent") ? "last_updated" : "learning_count"
    const found = related === "" ? readConcepts(store, project, order) : conceptsRelatedTo(store, related)
    return found.length === 0 ? ["No concepts"] : conceptTable(found, context.nowMs())
  },
}

export const knowledgeCommands: readonly Command[] = [learn, context, concepts]
