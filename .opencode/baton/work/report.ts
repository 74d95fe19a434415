import { localMinute } from "../host/cli.ts"
import { counted } from "../host/text.ts"
import { isEndKind, ruleOf } from "../ledger/embedded/run-ends.ts"
import type { Queue, ReportedRun } from "./ledger.ts"

// What the morning needs to know, from runs, queue and branches. Pure.

type Branch = {
  readonly task: string
  readonly branch: string
  readonly title: string
  readonly status: string
  readonly ahead: number
  readonly isMerged: boolean
  readonly mergesClean: boolean | undefined
  readonly uncommitted: number
}

type Named = { readonly task: string; readonly title: string }

export type Report = {
  /** ISO 8601, of the first run to the end of the last. */
  readonly from: string
  readonly to: string
  readonly tasks: number
  readonly done: number
  readonly reviewing: number
  readonly blocked: number
  readonly openAgain: number
  readonly atWork: number
  /** Blocked tasks, with the reason. */
  readonly needsYou: readonly (Named & { readonly reason: string })[]
  readonly toMerge: readonly Branch[]
  /** Said to be done, red in their check, and open again. */
  readonly red: readonly (Named & { readonly detail: string })[]
  /** The times in which the provider failed. */
  readonly provider: readonly {
    readonly from: string
    readonly to: string
    readonly detail: string
    readonly runs: number
  }[]
  readonly runs: number
  readonly tokens: number
  readonly cost: number
  /** Of it, in runs after which the task was to be begun or gone on with again. */
  readonly inVain: {
    readonly runs: number
    readonly tokens: number
    readonly tasks: readonly (Named & { readonly kinds: readonly string[]; readonly tokens: number })[]
  }
  readonly slowest: (Named & { readonly ms: number }) | undefined
}

const sum = (runs: readonly ReportedRun[], what: "tokens" | "cost"): number =>
  runs.reduce((total, run) => total + run[what], 0)

const isVain = ({ kind }: ReportedRun): boolean =>
  kind === "provider" || kind === "stopped" || (isEndKind(kind) && ruleOf(kind).counts)

/** Runs of the provider's failures that follow one another are one time. */
const outages = (runs: readonly ReportedRun[]): Report["provider"] => {
  const inOrder = runs.filter(({ ended }) => ended !== "").toSorted((a, b) => (a.ended < b.ended ? -1 : 1))
  const found: { from: string; to: string; detail: string; runs: number }[] = []
  let open: (typeof found)[number] | undefined
  for (const run of inOrder) {
    if (run.kind !== "provider") {
      open = undefined
      continue
    }
    if (open) Object.assign(open, { to: run.ended, detail: run.detail, runs: open.runs + 1 })
    else {
      open = { from: run.started, to: run.ended, detail: run.detail, runs: 1 }
      found.push(open)
    }
  }
  return found
}

/** Sums a night up. @param runs of workers, that ended or go on since its begin */
export const toReport = (
  runs: readonly ReportedRun[],
  queue: Queue,
  branches: readonly Branch[],
  since: string,
): Report => {
  const newest = new Map(runs.map((run) => [run.task_id, run]))
  const last = [...newest.values()]
  const count = (isSo: (run: ReportedRun) => boolean): number => last.filter(isSo).length
  const vain = runs.filter(isVain)
  const vainTasks = [...new Set(vain.map(({ task_id }) => task_id))].map((task) => {
    const own = vain.filter(({ task_id }) => task_id === task)
    return { task, title: own[0]?.title ?? "", kinds: own.map(({ kind }) => kind), tokens: sum(own, "tokens") }
  })
  const lasted = runs
    .filter(({ ended }) => ended !== "")
    .map((run) => ({ task: run.task_id, title: run.title, ms: Date.parse(run.ended) - Date.parse(run.started) }))
  return {
    from: runs[0]?.started ?? since,
    to:
      runs
        .map(({ ended }) => ended)
        .toSorted()
        .at(-1) || since,
    tasks: last.length,
    done: count(({ status }) => status === "done"),
    reviewing: count(({ status }) => status === "reviewing"),
    blocked: count(({ status }) => status === "blocked"),
    openAgain: count(({ status }) => status === "open"),
    atWork: count(({ ended }) => ended === ""),
    needsYou: queue.blocked,
    toMerge: branches.filter(
      ({ isMerged, uncommitted, status }) =>
        (!isMerged || uncommitted > 0) && status !== "open" && status !== "in_progress",
    ),
    red: last
      .filter(({ kind, status }) => kind === "check red" && status !== "done")
      .map(({ task_id, title, detail }) => ({ task: task_id, title, detail })),
    provider: outages(runs),
    runs: runs.length,
    tokens: sum(runs, "tokens"),
    cost: sum(runs, "cost"),
    inVain: { runs: vain.length, tokens: sum(vain, "tokens"), tasks: vainTasks },
    slowest: lasted.toSorted((a, b) => b.ms - a.ms)[0],
  }
}

const tokensText = (tokens: number): string => {
  if (tokens >= 1_000_000) return `${(tokens / 1_000_000).toFixed(1)} M tokens`
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)} k tokens` : `${tokens} tokens`
}

const clock = (iso: string): string => localMinute(iso).split(" ")[1] ?? iso

const timeText = (ms: number): string => {
  const minutes = Math.round(ms / 60_000)
  return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes} min`
}

const HEAD = 14

const section = (head: string, lines: readonly string[]): string[] =>
  lines.map((line, at) => `${(at === 0 ? head : "").padEnd(HEAD)}${line}`)

const mergeLine = ({ task, title, ahead, mergesClean, uncommitted }: Branch): string => {
  const how = mergesClean === undefined ? "" : mergesClean ? ", merges clean" : ", conflicts"
  const rest = uncommitted > 0 ? `, ${uncommitted} not committed` : ""
  return `baton/${task}  ${counted(ahead, "commit")}${how}${rest}  ${title}`
}

/** The report for a person: what needs them first. */
export const renderReport = (report: Report): string => {
  if (report.runs === 0) return `No worker has run since ${localMinute(report.from)}.`
  const { done, reviewing, blocked, openAgain, atWork, inVain, slowest } = report
  const counts = [
    `${done} done`,
    ...(reviewing > 0 ? [`${reviewing} in review`] : []),
    ...(blocked > 0 ? [`${blocked} blocked`] : []),
    ...(openAgain > 0 ? [`${openAgain} open again`] : []),
    ...(atWork > 0 ? [`${atWork} at work`] : []),
  ]
  const cost = report.cost > 0 ? `, $${report.cost.toFixed(2)}` : ""
  return [
    `${localMinute(report.from)} to ${clock(report.to)}: ${report.tasks} tasks, ${counts.join(", ")}`,
    "",
    ...section(
      "Needs you",
      report.needsYou.map(
        ({ task, title, reason }) =>
          `${task}  ${title}: ${reason || "blocked"}\n${" ".repeat(HEAD)}  prog unblock ${task} "answer"`,
      ),
    ),
    ...section("To merge", report.toMerge.map(mergeLine)),
    ...section(
      "Check red",
      report.red.map(({ task, title, detail }) => `${task}  ${title}: ${detail}; open again`),
    ),
    ...section(
      "Provider",
      report.provider.map(
        ({ from, to, detail, runs }) => `failed ${clock(from)} to ${clock(to)} (${runs} runs): ${detail}`,
      ),
    ),
    ...section("Spent", [
      `${tokensText(report.tokens)}${cost} in ${report.runs} runs${inVain.runs > 0 ? `, of it ${tokensText(inVain.tokens)} in ${inVain.runs} that led to nothing` : ""}`,
      ...inVain.tasks.map(
        ({ task, title, kinds, tokens }) => `${task}  ${title}: ${kinds.join(", ")} (${tokensText(tokens)})`,
      ),
      ...(slowest ? [`the longest: ${slowest.task}  ${slowest.title}, ${timeText(slowest.ms)}`] : []),
    ]),
  ].join("\n")
}
