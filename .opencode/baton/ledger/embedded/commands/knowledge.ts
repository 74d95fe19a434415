import {
  anyArguments,
  atLeast,
  type Command,
  type CommandContext,
  exactly,
  itemNotFound,
  lines,
  refuse,
  withErrorPrefix,
} from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import {
  compareText,
  goJson,
  padLeft,
  padRight,
  parseTimestamp,
  rfc3339,
  shortAge,
  tableSummary,
  timeAgo,
} from "../format.ts"
import type { ConceptChanges, ConceptRow, ItemRow, LearningChanges, LearningRow } from "../store.ts"

type LearningView = LearningRow & { readonly concepts: readonly string[] }

const staleMark = ({ status }: LearningView): string => (status === "stale" ? " [stale]" : "")

const learningsJson = (learnings: readonly LearningView[]): string =>
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

const learningDetails = (learnings: readonly LearningView[], nowMs: number): string[] =>
  learnings.flatMap((learning, at) => [...(at === 0 ? [] : [""]), ...detailLines(learning, nowMs)])

const summaryLine = (learning: LearningView): string => `  ${learning.id}: ${learning.summary}${staleMark(learning)}`

const conceptLine = (name: string, about: ReadonlyMap<string, string>): string =>
  `${name}: ${about.get(name) || "(no summary)"}`

/** The requested concepts first, then one line per learning. */
const summariesUnderConcepts = (
  learnings: readonly LearningView[],
  names: readonly string[],
  about: ReadonlyMap<string, string>,
): string[] => [
  ...names.map((name) => conceptLine(name, about)),
  ...(names.length === 0 ? [] : [""]),
  ...learnings.map(summaryLine),
]

/** Each concept in the order of its first learning, with one line per learning. */
const groupedSummaries = (learnings: readonly LearningView[], about: ReadonlyMap<string, string>): string[] => {
  const names = [...new Set(learnings.flatMap(({ concepts }) => concepts))]
  return names.flatMap((name, at) => [
    ...(at === 0 ? [] : [""]),
    conceptLine(name, about),
    ...learnings.filter(({ concepts }) => concepts.includes(name)).map(summaryLine),
  ])
}

/** Concepts with at least one learning whose name occurs in the item's title or description, in any case. */
export const relatedConcepts = (item: ItemRow, concepts: readonly ConceptRow[]): ConceptRow[] => {
  const text = `${item.title} ${item.description}`.toLowerCase()
  return concepts.filter(({ name, learningCount }) => learningCount > 0 && text.includes(name.toLowerCase()))
}

const byLastUpdate = (left: ConceptRow, right: ConceptRow): number =>
  compareText(right.lastUpdated, left.lastUpdated) || compareText(left.name, right.name)

const conceptTable = (concepts: readonly ConceptRow[], nowMs: number): string[] => {
  const row = (name: string, count: string, updated: string, summary: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 10)}  ${padRight(updated, 12)}  ${summary}`
  return [
    row("NAME", "LEARNINGS", "LAST UPDATED", "SUMMARY"),
    ...concepts.map(({ name, learningCount, lastUpdated, summary }) =>
      row(name, String(learningCount), timeAgo(parseTimestamp(lastUpdated), nowMs), tableSummary(summary)),
    ),
  ]
}

/** Number of a concept's active learnings, and the creation text of the oldest. */
type ConceptCount = { readonly name: string; readonly count: number; readonly oldest: string | undefined }

const conceptCountTable = (counts: readonly ConceptCount[], nowMs: number): string[] => {
  const row = (name: string, count: string, oldest: string): string =>
    `${padRight(name, 20)} ${padLeft(count, 6)}  ${oldest}`
  const age = (oldest: string | undefined): string =>
    oldest === undefined ? "-" : shortAge(nowMs - parseTimestamp(oldest).epochMs)
  return [
    row("CONCEPT", "COUNT", "OLDEST"),
    ...counts.map(({ name, count, oldest }) => row(name, String(count), age(oldest))),
  ]
}

const DETAIL_FLAG: FlagSpec = { name: "detail", kind: "text", about: "the full explanation; '-' reads standard input" }

const readDetail = (given: string, context: CommandContext): string =>
  given === "-" ? context.readStdin().trim() : given

/** The project's item in progress with the latest update. */
const currentTask = (context: CommandContext, project: string): ItemRow | undefined =>
  context
    .store()
    .items.all()
    .filter((item) => item.status === "in_progress" && item.project === project)
    .toSorted((left, right) => compareText(right.updatedAt, left.updatedAt))[0]

const tagLearning = (context: CommandContext, learningId: string, project: string, name: string, at: string): void => {
  const { concepts, learnings } = context.store()
  const known = concepts.of(project).find((concept) => concept.name === name)
  const id = known?.id ?? context.newId("con")
  if (known === undefined) {
    withErrorPrefix(`failed to create concept "${name}"`, () => concepts.insert({ id, name, project, lastUpdated: at }))
  } else
    withErrorPrefix(`failed to update concept "${name}"`, () => concepts.update(project, name, { lastUpdated: at }))
  withErrorPrefix("failed to create concept association", () => learnings.tag(learningId, id))
}

const updateLearning = (context: CommandContext, what: string, id: string, changes: LearningChanges): void => {
  const found = withErrorPrefix(`failed to update learning${what}`, () => context.store().learnings.update(id, changes))
  if (!found) throw refuse(`learning not found: ${id}`)
}

const edit: Command = {
  name: "edit",
  operands: "<learning-id>",
  summary: "Change a learning's summary or detail",
  arguments: exactly(1),
  flags: [{ name: "summary", kind: "text", about: "the new summary" }, DETAIL_FLAG],
  run: ({ args: [id = ""], flags }, context) => {
    const [summary, given] = [flags.text("summary"), flags.text("detail")]
    if (summary === "" && given === "") throw refuse("--summary or --detail is required")
    const detail = readDetail(given, context)
    return context.store().write(() => {
      if (summary !== "") updateLearning(context, "", id, { summary, updatedAt: context.timestamp() })
      if (given !== "") updateLearning(context, " detail", id, { detail, updatedAt: context.timestamp() })
      return lines([`Updated ${id}`])
    })
  },
}

const stale: Command = {
  name: "stale",
  operands: "<learning-id> [learning-id...]",
  summary: "Mark learnings as out of date",
  arguments: atLeast(1),
  flags: [{ name: "reason", kind: "text", about: "why; shown once, not kept" }],
  run: ({ args, flags }, context) =>
    context.store().write(() => {
      for (const id of args) {
        updateLearning(context, " status", id, { status: "stale", updatedAt: context.timestamp() })
      }
      const what = args.length === 1 ? args.join("") : `${args.length} learnings`
      const reason = flags.text("reason") === "" ? "" : `: ${flags.text("reason")}`
      return lines([`Marked ${what} as stale${reason}`])
    }),
}

const rm: Command = {
  name: "rm",
  operands: "<learning-id>",
  summary: "Delete a learning",
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      const found = withErrorPrefix("failed to delete learning", () => context.store().learnings.remove(id))
      if (!found) throw refuse(`learning not found: ${id}`)
      return lines([`Deleted ${id}`])
    }),
}

const learn: Command = {
  name: "learn",
  operands: "<summary>",
  summary: "Keep something worth knowing, under one or more concepts; prints its id",
  arguments: atLeast(1),
  usesFolderProject: true,
  flags: [
    { name: "concept", short: "c", kind: "list", about: "a concept it belongs to; may be given again" },
    { name: "file", short: "f", kind: "list", about: "a file it is about; may be given again" },
    DETAIL_FLAG,
  ],
  children: [edit, stale, rm],
  run: ({ args, flags }, context) => {
    const [project, names] = [flags.text("project"), flags.list("concept")]
    if (project === "") throw refuse("project is required (-p)")
    if (names.length === 0) throw refuse("at least one concept is required (-c)")
    const detail = readDetail(flags.text("detail"), context)
    return context.store("create").write(() => {
      const [id, at, task] = [context.newId("lrn"), context.timestamp(), currentTask(context, project)]
      const row = {
        id,
        project,
        createdAt: at,
        updatedAt: at,
        taskId: task?.id ?? null,
        summary: args.join(" "),
        detail,
        files: flags.list("file"),
        status: "active",
      }
      withErrorPrefix("failed to insert learning", () => context.store().learnings.insert(row))
      for (const name of names) tagLearning(context, id, project, name, at)
      return lines([task === undefined ? id : `${id} (linked to ${task.id})`])
    })
  },
}

const withConcepts = (context: CommandContext, row: LearningRow): LearningView => ({
  ...row,
  concepts: context.store().learnings.conceptNames(row.id),
})

const print = (found: readonly LearningView[], flags: Flags, text: () => string[]): string => {
  if (flags.has("json")) return lines([learningsJson(found)])
  return lines(found.length === 0 ? ["No learnings found"] : text())
}

const oneLearning = (id: string, flags: Flags, context: CommandContext): string => {
  const row = context.store().learnings.find(id)
  if (row === undefined) throw refuse(`learning not found: ${id}`)
  const found = [withConcepts(context, row)]
  return print(found, flags, () => learningDetails(found, context.nowMs()))
}

const findLearnings = (project: string, flags: Flags, context: CommandContext): LearningView[] => {
  const { learnings } = context.store()
  const [names, query] = [flags.list("concept"), flags.text("query")]
  const bySearch = names.length === 0 && query !== ""
  const rows = bySearch
    ? withErrorPrefix("failed to search learnings", () => learnings.search(project, query))
    : withErrorPrefix("failed to query learnings", () => learnings.of(project))
  return rows
    .filter(({ status }) => status === "active" || (flags.has("include-stale") && status === "stale"))
    .map((row) => withConcepts(context, row))
    .filter(({ concepts }) => names.length === 0 || names.some((name) => concepts.includes(name)))
}

const conceptSummaries = (project: string, context: CommandContext): Map<string, string> =>
  new Map(
    context
      .store()
      .concepts.of(project)
      .map(({ name, summary }) => [name, summary]),
  )

const context: Command = {
  name: "context",
  operands: "",
  summary: "Show learnings by concept, by full-text search, or by id",
  arguments: anyArguments,
  usesFolderProject: true,
  flags: [
    { name: "concept", short: "c", kind: "list", about: "learnings of this concept; may be given again" },
    { name: "query", short: "q", kind: "text", about: "learnings that match this FTS5 query" },
    { name: "include-stale", kind: "switch", about: "stale learnings too" },
    { name: "summary", kind: "switch", about: "one line for each" },
    { name: "id", kind: "text", about: "this learning" },
    { name: "json", kind: "switch", about: "print JSON" },
  ],
  run: ({ flags }, world) => {
    if (flags.text("id") !== "") return oneLearning(flags.text("id"), flags, world)
    const project = flags.text("project")
    if (project === "") throw refuse("project is required (-p) or use --id")
    const [names, summary] = [flags.list("concept"), flags.has("summary")]
    const everything = names.length === 0 && flags.text("query") === ""
    if (everything && !summary) throw refuse("specify concepts (-c), query (-q), or use --summary for all")
    const found = findLearnings(project, flags, world)
    return print(found, flags, () => {
      if (!summary) return learningDetails(found, world.nowMs())
      const about = conceptSummaries(project, world)
      return everything ? groupedSummaries(found, about) : summariesUnderConcepts(found, names, about)
    })
  },
}

const PROJECT_REQUIRED = "project is required (-p)"

const editConcept = (context: CommandContext, project: string, name: string, summary: string, rename: string): string =>
  context.store().write(() => {
    const update = (what: string, changes: ConceptChanges): void => {
      const found = withErrorPrefix(`failed to ${what} concept`, () =>
        context.store().concepts.update(project, name, changes),
      )
      if (!found) throw refuse(`concept not found: ${name}`)
    }
    const said: string[] = []
    if (summary !== "") {
      update("update", { summary, lastUpdated: context.timestamp() })
      said.push(`Updated ${name}`)
    }
    if (rename !== "") {
      update("rename", { name: rename, lastUpdated: context.timestamp() })
      said.push(`Renamed ${name} -> ${rename}`)
    }
    return lines(said)
  })

/** Counts active learnings by concept, the highest count first. */
const countLearnings = (context: CommandContext, project: string): ConceptCount[] => {
  const { concepts, learnings } = context.store()
  const active = learnings
    .of(project)
    .filter(({ status }) => status === "active")
    .map(({ id, createdAt }) => ({ createdAt, names: learnings.conceptNames(id) }))
  return concepts
    .of(project)
    .map(({ name }) => {
      const created = active.filter(({ names }) => names.includes(name)).map(({ createdAt }) => createdAt)
      return { name, count: created.length, oldest: created.toSorted(compareText)[0] }
    })
    .toSorted((left, right) => right.count - left.count || compareText(left.name, right.name))
}

const relatedTo = (context: CommandContext, id: string): ConceptRow[] => {
  const item = context.store().items.find(id)
  if (item === undefined) throw itemNotFound(id)
  return relatedConcepts(item, context.store().concepts.of(item.project))
}

const concepts: Command = {
  name: "concepts",
  operands: "[name]",
  summary: "List a project's concepts, or describe or rename one",
  arguments: anyArguments,
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
    if (name !== undefined && (summary !== "" || rename !== "")) {
      if (project === "") throw refuse(PROJECT_REQUIRED)
      return editConcept(context, project, name, summary, rename)
    }
    if (flags.has("stats")) {
      if (project === "") throw refuse(PROJECT_REQUIRED)
      const counts = withErrorPrefix("failed to list concept stats", () => countLearnings(context, project))
      return lines(counts.length === 0 ? ["No concepts"] : conceptCountTable(counts, context.nowMs()))
    }
    if (flags.text("related") === "" && project === "") throw refuse(`${PROJECT_REQUIRED} or use --related <task-id>`)
    const found = withErrorPrefix("failed to list concepts", () =>
      flags.text("related") === "" ? context.store().concepts.of(project) : relatedTo(context, flags.text("related")),
    )
    const sorted = flags.has("recent") && flags.text("related") === "" ? found.toSorted(byLastUpdate) : found
    return lines(sorted.length === 0 ? ["No concepts"] : conceptTable(sorted, context.nowMs()))
  },
}

export const knowledgeCommands: readonly Command[] = [learn, context, concepts]
