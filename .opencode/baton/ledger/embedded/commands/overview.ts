import type { Command, CommandContext } from "../command.ts"
import { hasLabels, type LabelledItem, readItems, readyItems } from "../items.ts"
import { type ItemRow, LedgerError } from "../store.ts"
import { LABEL_FILTER } from "./read-tasks.ts"

const READY_SHOWN = 10
const RECENT_CANDIDATES = 10
const RECENT_SHOWN = 3

const CLOSED = "SELECT id FROM items WHERE status IN ('done', 'canceled') ORDER BY updated_at DESC"

/** The newest items with a stored closed status. An epic that is only derived as done is left out, as in prog. */
const recentlyDone = (items: readonly LabelledItem[], closed: readonly Pick<ItemRow, "id">[]): LabelledItem[] => {
  const byId = new Map(items.map((item) => [item.id, item]))
  return closed
    .flatMap(({ id }) => byId.get(id) ?? [])
    .slice(0, RECENT_CANDIDATES)
    .filter(({ status }) => status === "done")
    .slice(0, RECENT_SHOWN)
}

/** @param project "" for all projects */
const readOverview = (context: CommandContext, project: string, labels: readonly string[]) => {
  const store = context.store()
  const items = readItems(store).filter(
    (item) => (project === "" || item.project === project) && hasLabels(item, labels),
  )
  return {
    recent: recentlyDone(items, store.all(CLOSED)),
    ready: readyItems(store, project, labels),
    withStatus: (status: string) => items.filter((item) => item.status === status),
  }
}

type Overview = ReturnType<typeof readOverview>

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
  summary: "Show where a project stands: counts, current work, what is ready",
  flags: [{ name: "all", kind: "switch", about: `show more than ${READY_SHOWN} ready tasks` }, LABEL_FILTER],
  run: ({ flags }, context) => {
    const project = flags.text("project")
    const overview = readOverview(context, project, flags.list("label"))
    const describe = (item: LabelledItem): string => statusLine(item, project === "")
    const shown = flags.has("all") ? overview.ready : overview.ready.slice(0, READY_SHOWN)
    const more = overview.ready.length - shown.length
    const ready = shown.map((item) => `  ${describe(item)} (pri ${item.priority})`)
    return [
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
    ]
  },
}

const WORKFLOW = `# prog in short

prog keeps tasks, their logs and what was learned between sessions. 'prog status' shows where things stand.

## Taking up a task

1. prog ready                       # what can be begun
2. prog show <id>                   # the brief, the definition of done, the log
3. prog start <id>                  # say that you are on it
4. prog context -c <concept> -p <project> --summary   # what is known already

## While working

- prog log <id> "what happened"     # often: after each step, decision and failure
- prog append <id> "text"           # add to the description; prog desc replaces all of it
- prog add "title" -p <project>     # work that turns up; --blocks <id>, --parent <epic>, -l <label>
- prog blocks <id> <other>          # the second waits for the first

## Before you stop

1. Check each point of the definition of done, and run what it names.
2. prog log <id> "where it stands, and what is next"
3. prog done <id>, or prog review <id> when a merge is awaited, or leave it in progress.
4. prog learn "one line" -c <concept> -p <project> --detail "why, with an example"
   Keep what the next reader could not see in the code; what merely happened belongs in the log.`

const statusSection = (heading: string, overview: Overview, status: string): string[] => {
  const items = overview.withStatus(status)
  return items.length === 0 ? [] : ["", heading, ...items.map(({ id, title }) => `  [${id}] ${title}`)]
}

const currentState = (context: CommandContext): string[] => {
  try {
    const overview = readOverview(context, "", [])
    return [
      ...statusSection("In progress:", overview, "in_progress"),
      ...statusSection("Reviewing:", overview, "reviewing"),
      ...statusSection("Blocked:", overview, "blocked"),
      "",
      "Run 'prog ready [-p project]' to find unblocked work.",
    ]
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error
    return ["", `(No database connection - run 'prog init' if needed: ${error.message})`]
  }
}

const prime: Command = {
  name: "prime",
  summary: "Print how to work with prog, and the current state; succeeds without a database too",
  run: (_invocation, context) => [WORKFLOW, "", "## Current State", ...currentState(context)],
}

export const overviewCommands: readonly Command[] = [status, prime]
