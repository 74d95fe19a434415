import { type ShownClaim, shownClaim } from "../claims.ts"
import {
  anyArguments,
  type Command,
  type CommandContext,
  exactly,
  itemNotFound,
  lines,
  refuse,
  withErrorPrefix,
} from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { compareText, goJson, minuteText, padRight, parseTimestamp, rfc3339 } from "../format.ts"
import {
  blockedIds,
  dependenciesByItem,
  hasLabels,
  isClosed,
  isStatus,
  type LabelledItem,
  readItems,
  readyItems,
  STATUSES,
  withDerivedStatus,
} from "../items.ts"
import type { ConceptRow, LogRow } from "../store.ts"
import { relatedConcepts } from "./knowledge.ts"

const JSON_FLAG: FlagSpec = { name: "json", kind: "switch", about: "print JSON" }
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
  JSON_FLAG,
]

const matchesText = (wanted: string, value: string | null): boolean => wanted === "" || wanted === value

const filterItems = (items: readonly LabelledItem[], flags: Flags, context: CommandContext): LabelledItem[] => {
  const store = context.store()
  const pairs = store.dependencies.all()
  const [blocking, blockedBy] = [flags.text("blocking"), flags.text("blocked-by")]
  const waitedFor = new Set(pairs.filter((pair) => pair.itemId === blocking).map((pair) => pair.dependsOn))
  const waiting = new Set(pairs.filter((pair) => pair.dependsOn === blockedBy).map((pair) => pair.itemId))
  const blocked = blockedIds(items, pairs)
  return items.filter(
    (item) =>
      matchesText(flags.text("project"), item.project) &&
      matchesText(flags.text("status"), item.status) &&
      matchesText(flags.text("parent"), item.parentId) &&
      matchesText(flags.text("type"), item.type) &&
      (blocking === "" || waitedFor.has(item.id)) &&
      (blockedBy === "" || waiting.has(item.id)) &&
      (!flags.has("has-blockers") || blocked.has(item.id)) &&
      (!flags.has("no-blockers") || !blocked.has(item.id)) &&
      hasLabels(item, flags.list("label")),
  )
}

const titleOf = (item: LabelledItem): string => [...item.labels.map((name) => `[${name}]`), item.title].join(" ")

const list: Command = {
  name: "list",
  operands: "",
  summary: "List tasks and epics",
  arguments: anyArguments,
  flags: LIST_FLAGS,
  run: ({ flags }, context) => {
    const [status, type] = [flags.text("status"), flags.text("type")]
    if (status !== "" && !isStatus(status)) {
      throw refuse(`invalid status: ${status} (valid: ${STATUSES.join(", ")})`)
    }
    if (type !== "" && type !== "task" && type !== "epic") throw refuse(`invalid type: ${type} (valid: task, epic)`)
    const items = withErrorPrefix("failed to query items", () =>
      filterItems(readItems(context.store()), flags, context),
    )
    if (flags.has("json")) {
      const dependencies = dependenciesByItem(context.store().dependencies.all())
      return lines([goJson(items.map((item) => listEntry(item, dependencies.get(item.id) ?? [])))])
    }
    if (items.length === 0) return lines(["No items"])
    const row = (id: string, state: string, priority: string, title: string): string =>
      `${padRight(id, 12)} ${padRight(state, 12)} ${padRight(priority, 4)} ${title}`
    const head = row("ID", "STATUS", "PRI", "TITLE")
    return lines([head, ...items.map((item) => row(item.id, item.status, String(item.priority), titleOf(item)))])
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
  parent: item.parentId,
  description: item.description,
  definition_of_done: item.definitionOfDone,
  labels: item.labels,
  dependencies,
})

const ready: Command = {
  name: "ready",
  operands: "",
  summary: "List open tasks that wait for nothing",
  arguments: anyArguments,
  flags: [LABEL_FILTER, JSON_FLAG],
  run: ({ flags }, context) => {
    const items = withErrorPrefix("failed to query items", () =>
      readyItems(context.store(), flags.text("project"), flags.list("label")),
    )
    if (flags.has("json")) {
      const entries = items.map(({ id, title, priority, type, parentId }) => ({
        id,
        title,
        priority,
        type,
        parent: parentId,
      }))
      return lines([goJson(entries)])
    }
    if (items.length === 0) return lines(["No ready tasks"])
    const row = (id: string, priority: string, title: string): string =>
      `${padRight(id, 12)} ${padRight(priority, 4)} ${title}`
    const marked = (item: LabelledItem): string => `${item.definitionOfDone ? "[DoD] " : ""}${titleOf(item)}`
    return lines([row("ID", "PRI", "TITLE"), ...items.map((item) => row(item.id, String(item.priority), marked(item)))])
  },
}

type Details = {
  readonly item: LabelledItem
  readonly logs: readonly LogRow[]
  readonly dependencies: readonly string[]
  readonly concepts: readonly ConceptRow[]
} & ShownClaim

const readDetails = (context: CommandContext, id: string): Details => {
  const store = context.store()
  const row = withErrorPrefix("failed to get item", () => store.items.find(id))
  if (row === undefined) throw itemNotFound(id)
  const labels = withErrorPrefix("failed to get item labels", () => store.labels.namesByItem().get(id) ?? [])
  return {
    item: { ...withDerivedStatus(row, store.items.childStatuses(id)), labels },
    logs: withErrorPrefix("failed to get logs", () => store.logs.of(id)),
    dependencies: dependenciesByItem(store.dependencies.all()).get(id) ?? [],
    concepts: relatedConcepts(row, store.concepts.of(row.project)),
    ...(isClosed(row.status) ? {} : shownClaim(() => store.claims.find(id), context.nowMs())),
  }
}

const fieldLines = ({ item, claimed }: Details): string[] => [
  `ID:          ${item.id}`,
  `Type:        ${item.type}`,
  `Project:     ${item.project}`,
  `Title:       ${item.title}`,
  `Status:      ${item.status}`,
  `Priority:    ${item.priority}`,
  ...(item.parentId === null ? [] : [`Parent:      ${item.parentId}`]),
  ...(item.labels.length === 0 ? [] : [`Labels:      ${item.labels.join(", ")}`]),
  ...(claimed === undefined ? [] : [`Claimed:     ${claimed}`]),
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
    const details = readDetails(context, id)
    const { item, logs, dependencies, concepts, claim } = details
    if (flags.has("json")) {
      const entries = logs.map(({ message, createdAt }) => ({
        message,
        created_at: rfc3339(parseTimestamp(createdAt)),
      }))
      return lines([goJson({ ...listEntry(item, dependencies), logs: entries, ...(claim ? { claim } : {}) })])
    }
    return lines([
      ...fieldLines(details),
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
    const names = withErrorPrefix("failed to query projects", () => context.store().projects.names())
    return lines(names.length === 0 ? ["No projects"] : names)
  },
}

const graph: Command = {
  name: "graph",
  operands: "",
  summary: "Show which tasks wait for which",
  arguments: anyArguments,
  flags: [],
  run: ({ flags }, context) => {
    const store = context.store()
    const items = new Map(readItems(store).map((item) => [item.id, item]))
    const title = (id: string): string => `${id} [${items.get(id)?.status ?? ""}] ${items.get(id)?.title ?? ""}`
    const waiting = dependenciesByItem(store.dependencies.all())
    const shown = [...items.values()]
      .filter((item) => waiting.has(item.id) && (flags.text("project") || item.project) === item.project)
      .toSorted((left, right) => left.priority - right.priority || compareText(left.id, right.id))
    if (shown.length === 0) return lines(["No dependencies"])
    const branches = (id: string): string[] => {
      const others = waiting.get(id) ?? []
      return others.map((other, at) => `  ${at === others.length - 1 ? "└──" : "├──"} ${title(other)}`)
    }
    return lines(shown.flatMap(({ id }) => [title(id), ...branches(id)]))
  },
}

export const readCommands: readonly Command[] = [list, ready, show, projects, graph]
