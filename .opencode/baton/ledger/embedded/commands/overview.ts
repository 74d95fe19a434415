import { anyArguments, type Command, type CommandContext, lines, step } from "../command.ts"
import { compareText } from "../go-text.ts"
import { dependenciesByItem, hasLabels, type LabelledItem, readItems } from "../item-views.ts"
import { LABEL_FILTER, readyItems } from "./task-lists.ts"

const READY_SHOWN = 10
const RECENT_CANDIDATES = 10
const RECENT_SHOWN = 3

export type Overview = {
  readonly items: readonly LabelledItem[]
  readonly recent: readonly LabelledItem[]
  readonly ready: readonly LabelledItem[]
  readonly withStatus: (status: string) => LabelledItem[]
}

/** The newest closed items by what is stored: an epic that is only derived as done is not among them, as in prog. */
const recentlyDone = (items: readonly LabelledItem[], storedStatus: ReadonlyMap<string, string>): LabelledItem[] =>
  items
    .filter(({ id }) => storedStatus.get(id) === "done" || storedStatus.get(id) === "canceled")
    .toSorted((left, right) => compareText(right.updatedAt, left.updatedAt))
    .slice(0, RECENT_CANDIDATES)
    .filter(({ status }) => status === "done")
    .slice(0, RECENT_SHOWN)

/** @param project "" for all projects */
export const readOverview = (context: CommandContext, project: string, labels: readonly string[]): Overview => {
  const store = context.store()
  const items = readItems(store).filter(
    (item) => (project === "" || item.project === project) && hasLabels(item, labels),
  )
  const storedStatus = new Map(store.items.all().map((row) => [row.id, row.status]))
  return {
    items,
    recent: recentlyDone(items, storedStatus),
    ready: readyItems(context, project, labels),
    withStatus: (status) => items.filter((item) => item.status === status),
  }
}

const statusLine = (item: LabelledItem, showProject: boolean): string =>
  [
    `[${item.id}]`,
    ...(showProject && item.project !== "" ? [`(${item.project})`] : []),
    ...item.labels.map((name) => `[${name}]`),
    item.title,
  ].join(" ")

const indentedSection = (heading: string, entries: readonly string[]): string[] =>
  entries.length === 0 ? [] : [heading, ...entries.map((entry) => `  ${entry}`), ""]

const countLine = ({ withStatus, ready }: Overview): string => {
  const count = (status: string): string => `${withStatus(status).length} ${status.replace("_", " ")}`
  const counts = ["open", "in_progress", "blocked", "reviewing", "done", "canceled"].map(count)
  return `Summary: ${counts.join(", ")} (${ready.length} ready)`
}

const status: Command = {
  name: "status",
  operands: "",
  summary: "Show where a project stands: counts, current work, what is ready",
  arguments: anyArguments,
  flags: [{ name: "all", kind: "switch", about: `show more than ${READY_SHOWN} ready tasks` }, LABEL_FILTER],
  run: ({ flags }, context) => {
    const project = flags.text("project")
    const overview = step("failed to query items", () => readOverview(context, project, flags.list("label")))
    const describe = (item: LabelledItem): string => statusLine(item, project === "")
    const shown = flags.has("all") ? overview.ready : overview.ready.slice(0, READY_SHOWN)
    const more = overview.ready.length - shown.length
    const ready = shown.map((item) => `  ${describe(item)} (pri ${item.priority})`)
    return lines([
      `Project: ${project === "" ? "(all)" : project}`,
      "",
      countLine(overview),
      "",
      ...indentedSection("Recently completed:", overview.recent.map(describe)),
      ...indentedSection("In progress:", overview.withStatus("in_progress").map(describe)),
      ...indentedSection("Reviewing:", overview.withStatus("reviewing").map(describe)),
      ...indentedSection("Blocked:", overview.withStatus("blocked").map(describe)),
      ...(ready.length === 0 ? [] : ["Ready for work:", ...ready]),
      ...(more > 0 ? [`  (+${more} more, use --all to see all)`] : []),
    ])
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

export const overviewCommands: readonly Command[] = [status, graph]
