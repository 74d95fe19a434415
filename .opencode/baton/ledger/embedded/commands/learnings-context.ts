import { anyArguments, type Command, type CommandContext, lines, refuse, step } from "../command.ts"
import type { Flags } from "../flags.ts"
import {
  groupedSummaries,
  type LearningView,
  learningDetails,
  learningsJson,
  summariesUnderConcepts,
} from "../learning-views.ts"
import type { LearningRow } from "../store.ts"

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
    ? step("failed to search learnings", () => learnings.search(project, query))
    : step("failed to query learnings", () => learnings.of(project))
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

export const learningContextCommands: readonly Command[] = [context]
