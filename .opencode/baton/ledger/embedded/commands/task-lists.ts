import { anyArguments, type Command, type CommandContext, lines, refuse, step } from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, padRight } from "../go-text.ts"
import { dependenciesByItem, hasLabels, type LabelledItem, readItems } from "../item-views.ts"
import { blockedIds, isStatus, STATUSES } from "../status-rules.ts"

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
    const items = step("failed to query items", () => filterItems(readItems(context.store()), flags, context))
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

/** What `list --json` shows of an item; `show --json` adds the log. Keys stand in prog's order. */
export const listEntry = (item: LabelledItem, dependencies: readonly string[]) => ({
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

/** Open tasks whose dependencies are all resolved, in the order of `list`. */
export const readyItems = (context: CommandContext, project: string, labels: readonly string[]): LabelledItem[] => {
  const store = context.store()
  const items = readItems(store)
  const blocked = blockedIds(items, store.dependencies.all())
  return items.filter(
    (item) =>
      item.type === "task" &&
      item.status === "open" &&
      !blocked.has(item.id) &&
      matchesText(project, item.project) &&
      hasLabels(item, labels),
  )
}

const ready: Command = {
  name: "ready",
  operands: "",
  summary: "List open tasks that wait for nothing",
  arguments: anyArguments,
  flags: [LABEL_FILTER, JSON_FLAG],
  run: ({ flags }, context) => {
    const items = step("failed to query items", () => readyItems(context, flags.text("project"), flags.list("label")))
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

export const taskListCommands: readonly Command[] = [list, ready]
