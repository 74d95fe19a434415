import { anyArguments, type Command, type CommandContext, itemNotFound, lines, refuse, step } from "../command.ts"
import { byLastUpdate, type ConceptCount, conceptCountTable, conceptTable, relatedConcepts } from "../concept-views.ts"
import { compareText } from "../go-text.ts"
import type { ConceptChanges, ConceptRow } from "../store.ts"

const PROJECT_REQUIRED = "project is required (-p)"

const editConcept = (context: CommandContext, project: string, name: string, summary: string, rename: string): string =>
  context.store().write(() => {
    const update = (what: string, changes: ConceptChanges): void => {
      const found = step(`failed to ${what} concept`, () => context.store().concepts.update(project, name, changes))
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

/** Active learnings by concept, the most first. */
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
      const counts = step("failed to list concept stats", () => countLearnings(context, project))
      return lines(counts.length === 0 ? ["No concepts"] : conceptCountTable(counts, context.nowMs()))
    }
    if (flags.text("related") === "" && project === "") throw refuse(`${PROJECT_REQUIRED} or use --related <task-id>`)
    const found = step("failed to list concepts", () =>
      flags.text("related") === "" ? context.store().concepts.of(project) : relatedTo(context, flags.text("related")),
    )
    const sorted = flags.has("recent") && flags.text("related") === "" ? found.toSorted(byLastUpdate) : found
    return lines(sorted.length === 0 ? ["No concepts"] : conceptTable(sorted, context.nowMs()))
  },
}

export const conceptCommands: readonly Command[] = [concepts]
