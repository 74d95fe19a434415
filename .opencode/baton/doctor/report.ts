import { join, relative } from "node:path"
import { withDeadline } from "../host/async.ts"
import { printableLine } from "../host/cli.ts"
import { describeError } from "../host/log.ts"
import { findForeign } from "../host/state-mark.ts"
import { counted, shellWord } from "../host/text.ts"
import type { Context } from "./context.ts"
import { findServing, type Serving } from "./serving.ts"

type Status = "ok" | "warning" | "broken"

/** A result of a check. `fix` tells the user what to do about it; an `ok` needs none. */
export type Observation =
  | { readonly status: "ok"; readonly message: string }
  | { readonly status: "warning" | "broken"; readonly message: string; readonly fix: string }

/** An observation with the id of its check; the ids are listed in docs/doctor.md. */
type Finding = { readonly id: string; readonly status: Status; readonly message: string; readonly fix?: string }

/** A context with the copy of Baton that serves the project, which is sought once. */
export type Served = Context & { readonly serving: Serving }

export type Check = {
  readonly id: string
  /** Skipped for a project that no copy of Baton serves. */
  readonly needsBundle?: true
  /** Skipped where the state is foreign, which the check `state` reports. */
  readonly readsState?: true
  /** May throw: the report turns the error into a finding. */
  readonly run: (context: Served) => Promise<readonly Observation[]>
}

/** A program of the copy that serves, as it is typed in the user's folder. */
export const launcherOf = (name: "prog" | "baton", { root, here = root, serving }: Served): string => {
  if (name === "baton" && serving.entry !== undefined) return `npx ${shellWord(serving.entry)}`
  const launcher = join(serving.folder, "baton", "bin", name)
  return shellWord(serving.folder === join(root, ".opencode") ? relative(here, launcher) : launcher)
}

export const INSTALL_HERE = "Run scripts/install with this folder from a checkout, or npx baton-opencode init here."

export const ok = (message: string): Observation => ({ status: "ok", message })

export const warning = (message: string, fix: string): Observation => ({ status: "warning", message, fix })

export const broken = (message: string, fix: string): Observation => ({ status: "broken", message, fix })

/** The output of `--json`, as described in docs/doctor.md. */
export type Report = {
  /** Version of this shape, raised when a field changes its meaning. */
  readonly version: 1
  readonly directory: string
  readonly findings: readonly Finding[]
  readonly summary: Readonly<Record<Status, number>>
}

const CHECK_DEADLINE_MS = 30_000

/** Turns an error or a timeout of a check into a finding, so that the other checks still report. */
const runCheck = async (check: Check, context: Served, deadlineMs: number): Promise<readonly Observation[]> => {
  const fix = "Report it with this message; the other findings stand."
  const ran = await withDeadline(check.run(context), deadlineMs)
  if (ran.kind === "done") return ran.value
  if (ran.kind === "late") return [broken(`this check gave no answer within ${deadlineMs} ms`, fix)]
  return [broken(`this check failed: ${describeError(ran.error)}`, fix)]
}

export const createReport = async (
  context: Context,
  checks: readonly Check[],
  deadlineMs = CHECK_DEADLINE_MS,
): Promise<Report> => {
  const serving = await findServing(context)
  const isForeign = findForeign(context.root) !== undefined
  const perCheck = await Promise.all(
    checks
      .filter((check) => (serving.kind !== "none" || !check.needsBundle) && !(isForeign && check.readsState))
      .map(async (check) => {
        const observations = await runCheck(check, { ...context, serving }, deadlineMs)
        return observations.map((observation): Finding => ({ id: check.id, ...observation }))
      }),
  )
  const findings = perCheck.flat()
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const summary = { ok: count("ok"), warning: count("warning"), broken: count("broken") }
  return { version: 1, directory: context.root, findings, summary }
}

const COLORS: Record<Status, number> = { ok: 32, warning: 33, broken: 31 }

/** One line per finding, its fix below it, a count at the end. */
export const renderText = (report: Report, options: { color: boolean }): string => {
  const idWidth = Math.max(0, ...report.findings.map((finding) => finding.id.length))
  const paint = (status: Status, text: string) => (options.color ? `\u001b[${COLORS[status]}m${text}\u001b[0m` : text)
  const lines = report.findings.flatMap(({ id, status, message, fix }) => {
    const head = `  ${paint(status, status.padEnd("warning".length))}  ${id.padEnd(idWidth)}  `
    const indent = " ".repeat("  warning  ".length + idWidth + 2)
    const found = `${head}${printableLine(message)}`
    return fix === undefined ? [found] : [found, `${indent}fix: ${printableLine(fix)}`]
  })
  const { ok, warning, broken } = report.summary
  const verdict = `${broken} broken, ${counted(warning, "warning")}, ${ok} ok`
  return [`Baton in ${printableLine(report.directory)}`, "", ...lines, "", verdict, ""].join("\n")
}
