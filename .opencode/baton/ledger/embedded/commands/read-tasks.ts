import { shownClaim } from "../claims.ts"
import { ALL_FLAG, type Command, type CommandContext, JSON_FLAG, refuse } from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, minuteText, padRight, parseTimestamp, rfc3339 } from "../format.ts"
import {
  blockedIds,
  dependenciesByItem,
  hasLabels,
  isStatus,
  type LabelledItem,
  labelsByItem,
  readDependencies,
  readItem,
  readItems,
  readyItems,
  STATUSES,
} from "../items.ts"
import type { ConceptRow, LogRow } from "../store.ts"
import { readConcepts, relatedConcepts } from "./knowledge.ts"

export const LABEL_FILTER: FlagSpec = { name: "label", short: "l", kind: "list", about: "only items with every label" }

const LIST_FLAGS: readonly FlagSpec[] = [
  { name: "status", kind: "text", about: `only this status (draft, ${STATUSES.join(", ")})` },
  { name: "parent", kind: "text", about: "only children of this epic" },
  { name: "type", kind: "text", about: "only this type (task, epic)" },
  { name: "blocking", kind: "text", about: "only what the given task waits for" },
  { name: "blocked-by", kind: "text", about: "only what waits for the given task" },
  { name: "has-blockers", kind: "switch", about: "only items that wait for something unresolved" },
  { name: "no-blockers", kind: "switch", about: "only items that wait for nothing" },
  LABEL_FILTER,
  ALL_FLAG,
  JSON_FLAG,
]

const matchesText = (wanted: string, value: string | null): boolean => wanted === "" || wanted === value

const findItems = (flags: Flags, context: CommandContext): LabelledItem[] => {
  const items = readItems(context.store())
  const pairs = readDependencies(context.store())
  const [blocking, blockedBy] = [flags.text("blocking"), flags.text("blocked-by")]
  const waitedFor = new Set(pairs.filter((pair) => pair.item_id === blocking).map((pair) => pair.depends_on))
  const waiting = new Set(pairs.filter((pair) => pair.depends_on === blockedBy).map((pair) => pair.item_id))
  const blocked = blockedIds(items, pairs)
  return items.filter(
    (item) =>
      matchesText(flags.text("project"), item.project) &&
      matchesText(flags.text("status"), item.status) &&
      matchesText(flags.text("parent"), item.parent_id) &&
      matchesText(flags.text("type"), item.type) &&
      (blocking === "" || waitedFor.has(item.id)) &&
      (blockedBy === "" || waiting.has(item.id)) &&
      (!flags.has("has-blockers") || blocked.has(item.id)) &&
      (!flags.has("no-blockers") || !blocked.has(item.id)) &&
      hasLabels(item, flags.list("label")),
  )
}

const titleOf = (item: LabelledItem): string => [...item.labels.map((name) => `[${name}]`), item.title].join(" ")

/** @param folderProject "" for every project @returns a table of its items, and a line about the others */
const tableOf = (
  items: readonly LabelledItem[],
  folderProject: string,
  { command, none, table }: { command: string; none: string; table: (items: readonly LabelledItem[]) => string[] },
): string[] => {
  const own = folderProject === "" ? items : items.filter(({ project }) => project === folderProject)
  const others = items.length - own.length
  const more = others === 0 ? [] : [`(${others} more in other projects: prog ${command} --all)`]
  if (own.length > 0) return [...table(own), ...more]
  return [folderProject === "" ? none : `${none} in ${folderProject}`, ...more]
}

const list: Command = {
  name: "list",
  summary: "List tasks and epics",
  flags: LIST_FLAGS,
  showsFolderProject: true,
  run: ({ flags }, context, folderProject) => {
    const [status, type] = [flags.text("status"), flags.text("type")]
    if (status !== "" && !isStatus(status)) {
      throw refuse(`invalid status: ${status} (valid: ${STATUSES.join(", ")})`)
    }
    if (type !== "" && type !== "task" && type !== "epic") throw refuse(`invalid type: ${type} (valid: task, epic)`)
    const items = findItems(flags, context)
    if (flags.has("json")) {
      const dependencies = dependenciesByItem(readDependencies(context.store()))
      return [goJson(items.map((item) => listEntry(item, dependencies.get(item.id) ?? [])))]
    }
    const row = (id: string, state: string, priority: string, title: string): string =>
      `${padRight(id, 12)} ${padRight(state, 12)} ${padRight(priority, 4)} ${title}`
    const toRow = (item: LabelledItem) => row(item.id, item.status, String(item.priority), titleOf(item))
    const table = (shown: readonly LabelledItem[]) => [row("ID", "STATUS", "PRI", "TITLE"), ...shown.map(toRow)]
    return tableOf(items, folderProject, { command: "list", none: "No items", table })
  },
}

/** An item in `list --json`; `show --json` adds the log. The keys are in prog's order. */
const listEntry = (item: LabelledItem, dependencies: readonly string[]) => ({
  id: item.id,
  title: item.title,
  type: item.type,
  status: item.status,
  priority: item.priority,
  project: item.project,
  parent: item.parent_id,
  description: item.description,
  definition_of_done: item.definition_of_done,
  labels: item.labels,
  dependencies,
})

const ready: Command = {
  name: "ready",
  summary: "List open tasks that wait for nothing",
  flags: [LABEL_FILTER, ALL_FLAG, JSON_FLAG],
  showsFolderProject: true,
  run: ({ flags }, context, folderProject) => {
    const items = readyItems(context.store(), flags.text("project"), flags.list("label"))
    if (flags.has("json")) {
      const entry = ({ id, title, priority, type, parent_id: parent }: LabelledItem) => ({
        ...{ id, title, priority, type, parent },
      })
      return [goJson(items.map(entry))]
    }
    const row = (id: string, priority: string, title: string): string =>
      `${padRight(id, 12)} ${padRight(priority, 4)} ${title}`
    const marked = (item: LabelledItem): string => `${item.definition_of_done ? "[DoD] " : ""}${titleOf(item)}`
    const toRow = (item: LabelledItem) => row(item.id, String(item.priority), marked(item))
    const table = (shown: readonly LabelledItem[]) => [row("ID", "PRI", "TITLE"), ...shown.map(toRow)]
    return tableOf(items, folderProject, { command: "ready", none: "No ready tasks", table })
  },
}

const LOGS = "SELECT message, created_at FROM logs WHERE item_id = ? ORDER BY created_at, id"

const readDetails = (context: CommandContext, id: string) => {
  const store = context.store()
  const item = readItem(store, id)
  return {
    item: { ...item, labels: labelsByItem(store).get(id) ?? [] },
    logs: store.all<LogRow>(LOGS, id),
    dependencies: dependenciesByItem(readDependencies(store)).get(id) ?? [],
    concepts: relatedConcepts(item, readConcepts(store, item.project)),
    ...shownClaim(store, item, context.nowMs()),
  }
}

const fieldLines = ({ item, claimed }: ReturnType<typeof readDetails>): string[] => [
  `ID:          ${item.id}`,
  `Type:        ${item.type}`,
  `Project:     ${item.project}`,
  `Title:       ${item.title}`,
  `Status:      ${item.status}`,
  `Priority:    ${item.priority}`,
  ...(item.parent_id === null ? [] : [`Parent:      ${item.parent_id}`]),
  ...(item.labels.length === 0 ? [] : [`Labels:      ${item.labels.join(", ")}`]),
  ...(claimed === undefined ? [] : [`Claimed:     ${claimed}`]),
]

const titledLines = (heading: string, body: readonly string[]): string[] =>
  body.length === 0 ? [] : ["", heading, ...body]

const conceptLines = (item: LabelledItem, concepts: readonly ConceptRow[]): string[] => {
  if (concepts.length === 0) return []
  const about = concepts.map(
    ({ name, learning_count, summary }) => `  ${name} (${learning_count}) - ${summary || "(no summary)"}`,
  )
  const flags = concepts.map(({ name }) => `-c ${name}`).join(" ")
  return [...about, "", `Load with: prog context ${flags} -p ${item.project} --summary`]
}

const show: Command = {
  name: "show",
  operands: "<id>",
  summary: "Show one task: fields, description, definition of done, dependencies, log",
  arguments: { least: 1, most: 1 },
  flags: [JSON_FLAG],
  run: ({ args: [id = ""], flags }, context) => {
    const details = readDetails(context, id)
    const { item, logs, dependencies, concepts, claim } = details
    if (flags.has("json")) {
      const entries = logs.map(({ message, created_at }) => ({
        message,
        created_at: rfc3339(parseTimestamp(created_at)),
      }))
      return [goJson({ ...listEntry(item, dependencies), logs: entries, ...(claim ? { claim } : {}) })]
    }
    return [
      ...fieldLines(details),
      ...titledLines("Description:", item.description ? [item.description] : []),
      ...titledLines("Definition of Done:", item.definition_of_done ? [item.definition_of_done] : []),
      ...titledLines(
        "Dependencies:",
        dependencies.map((dependency) => `  - ${dependency}`),
      ),
      ...titledLines(
        "Logs:",
        logs.map((log) => `  [${minuteText(parseTimestamp(log.created_at))}] ${log.message}`),
      ),
      ...titledLines("Suggested context:", conceptLines(item, concepts)),
    ]
  },
}

const projects: Command = {
  name: "projects",
  summary: "List the projects that have tasks",
  run: (_invocation, context) => {
    const projects = context.store().all<{ name: string }>("SELECT name FROM projects ORDER BY name")
    return projects.length === 0 ? ["No projects"] : projects.map(({ name }) => name)
  },
}

const graph: Command = {
  name: "graph",
  summary: "Show which tasks wait for which",
  run: ({ flags }, context) => {
    const store = context.store()
    const items = new Map(readItems(store).map((item) => [item.id, item]))
    const title = (id: string): string => `${id} [${items.get(id)?.status ?? ""}] ${items.get(id)?.title ?? ""}`
    const waiting = dependenciesByItem(readDependencies(store))
    const shown = [...items.values()]
      .filter((item) => waiting.has(item.id) && (flags.text("project") || item.project) === item.project)
      .toSorted((left, right) => left.priority - right.priority || (left.id < right.id ? -1 : 1))
    if (shown.length === 0) return ["No dependencies"]
    const branches = (id: string): string[] => {
      const others = waiting.get(id) ?? []
      return others.map((other, at) => `  ${at === others.length - 1 ? "└──" : "├──"} ${title(other)}`)
    }
    return shown.flatMap(({ id }) => [title(id), ...branches(id)])
  },
}

export const readCommands: readonly Command[] = [list, ready, show, projects, graph]
