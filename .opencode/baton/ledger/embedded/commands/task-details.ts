import { anyArguments, type Command, type CommandContext, exactly, itemNotFound, lines, step } from "../command.ts"
import { relatedConcepts } from "../concept-views.ts"
import { goJson } from "../go-text.ts"
import { dependenciesByItem, type LabelledItem } from "../item-views.ts"
import { withDerivedStatus } from "../status-rules.ts"
import type { ConceptRow, LogRow } from "../store.ts"
import { minuteText, parseTimestamp, rfc3339 } from "../timestamps.ts"
import { listEntry } from "./task-lists.ts"

type Details = {
  readonly item: LabelledItem
  readonly logs: readonly LogRow[]
  readonly dependencies: readonly string[]
  readonly concepts: readonly ConceptRow[]
}

const readDetails = (context: CommandContext, id: string): Details => {
  const store = context.store()
  const row = step("failed to get item", () => store.items.find(id))
  if (row === undefined) throw itemNotFound(id)
  const labels = step("failed to get item labels", () => store.labels.namesByItem().get(id) ?? [])
  return {
    item: { ...withDerivedStatus(row, store.items.childStatuses(id)), labels },
    logs: step("failed to get logs", () => store.logs.of(id)),
    dependencies: dependenciesByItem(store.dependencies.all()).get(id) ?? [],
    concepts: relatedConcepts(row, store.concepts.of(row.project)),
  }
}

const fieldLines = (item: LabelledItem): string[] => [
  `ID:          ${item.id}`,
  `Type:        ${item.type}`,
  `Project:     ${item.project}`,
  `Title:       ${item.title}`,
  `Status:      ${item.status}`,
  `Priority:    ${item.priority}`,
  ...(item.parentId === null ? [] : [`Parent:      ${item.parentId}`]),
  ...(item.labels.length === 0 ? [] : [`Labels:      ${item.labels.join(", ")}`]),
]

const titledLines = (heading: string, body: readonly string[]): string[] =>
  body.length === 0 ? [] : ["", heading, ...body]

const conceptLines = (item: LabelledItem, concepts: readonly ConceptRow[]): string[] => {
  if (concepts.length === 0) return []
  const about = concepts.map(
    ({ name, learningCount, summary }) => `  ${name} (${learningCount}) - ${summary || "(no summary)"}`,
  )
  const flags = concepts.map(({ name }) => `-c ${name}`).join(" ")
  return [...about, "", `Load with: prog context ${flags} -p ${item.project} --summary`]
}

const show: Command = {
  name: "show",
  operands: "<id>",
  summary: "Show one task: fields, description, definition of done, dependencies, log",
  arguments: exactly(1),
  flags: [{ name: "json", kind: "switch", about: "print JSON" }],
  run: ({ args: [id = ""], flags }, context) => {
    const { item, logs, dependencies, concepts } = readDetails(context, id)
    if (flags.has("json")) {
      const entries = logs.map(({ message, createdAt }) => ({
        message,
        created_at: rfc3339(parseTimestamp(createdAt)),
      }))
      return lines([goJson({ ...listEntry(item, dependencies), logs: entries })])
    }
    return lines([
      ...fieldLines(item),
      ...titledLines("Description:", item.description === "" ? [] : [item.description]),
      ...titledLines("Definition of Done:", item.definitionOfDone ? [item.definitionOfDone] : []),
      ...titledLines(
        "Dependencies:",
        dependencies.map((dependency) => `  - ${dependency}`),
      ),
      ...titledLines(
        "Logs:",
        logs.map((log) => `  [${minuteText(parseTimestamp(log.createdAt))}] ${log.message}`),
      ),
      ...titledLines("Suggested context:", conceptLines(item, concepts)),
    ])
  },
}

const projects: Command = {
  name: "projects",
  operands: "",
  summary: "List the projects that have tasks",
  arguments: anyArguments,
  flags: [],
  run: (_invocation, context) => {
    const names = step("failed to query projects", () => context.store().projects.names())
    return lines(names.length === 0 ? ["No projects"] : names)
  },
}

export const taskDetailCommands: readonly Command[] = [show, projects]
