/** `baton passes`. Exits with 0 when all could be read (or restored), 1 when not, 2 for a wrong command line. */

import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printJSON, runCommand } from "../../host/cli.ts"
import { type LogExtra, SILENT } from "../../host/log.ts"
import { counted, shorten } from "../../host/text.ts"
import { createPersonsPasses, type Decision } from "./person.ts"
import { type AuditedPass, type AuditFilter, queryAudit } from "./query.ts"

/** Actions on one pass. */
const ACTIONS = ["show", "diff", "apply", "reject", "restore"] as const

type PassesRequest =
  | {
      readonly kind: "list"
      readonly directory: string | undefined
      readonly filter: AuditFilter
      readonly json: boolean
    }
  | {
      readonly kind: (typeof ACTIONS)[number]
      readonly directory: string | undefined
      readonly passID: string
      readonly decision: Decision
      readonly json: boolean
    }

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const AGO = /^(\d{1,6})([mhd])$/
const DATE = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?$/

/** @returns epoch ms. @throws Error with what was expected */
const parseSince = (text: string, now: number): number => {
  const [, count, unit] = AGO.exec(text) ?? []
  if (count !== undefined && (unit === "m" || unit === "h" || unit === "d")) return now - Number(count) * UNITS_MS[unit]
  const time = DATE.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) {
    throw new Error(`expected --since to be a date such as 2026-01-31, or 30m, 12h or 7d, received '${text}'`)
  }
  return time
}

/**
 * Parses `[DIR] [--session ID] [--agent NAME] [--since WHEN] [--json]` or `ACTION ID [DIR] [--file PATH …] [--json]`.
 *
 * @param now epoch ms
 * @throws Error with what was expected and received
 */
const parsePassesArguments = (args: readonly string[], now: number): PassesRequest => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      session: { type: "string" },
      agent: { type: "string" },
      since: { type: "string" },
      file: { type: "string", multiple: true },
      partly: { type: "boolean", default: false },
    },
  })
  const { json, session, agent, since, file: files, partly } = values
  const action = ACTIONS.find((each) => each === positionals[0])
  const [directory, ...more] = action === undefined ? positionals : positionals.slice(2)
  if (more.length > 0) throw new Error(`expected one project folder, received ${more.length + 1}`)
  if (files !== undefined && action !== "apply" && action !== "reject")
    throw new Error("expected --file with apply or reject alone")
  if (partly && action !== "apply") throw new Error("expected --partly with apply alone")
  if (action === undefined) {
    const filter = { session, agent, since: since === undefined ? undefined : parseSince(since, now) }
    return { kind: "list", directory, filter, json }
  }
  const [, passID] = positionals
  if (passID === undefined) throw new Error(`expected a pass to ${action}: baton passes ${action} ID`)
  if (session !== undefined || agent !== undefined || since !== undefined) {
    throw new Error(`expected no --session, --agent or --since with ${action}`)
  }
  return { kind: action, directory, passID, decision: { files, partly }, json }
}

const REASON_CHARACTERS = 60

const duration = ({ started_at, completed_at }: AuditedPass): string[] => {
  const ms = completed_at === null ? Number.NaN : Date.parse(completed_at) - Date.parse(started_at)
  return Number.isNaN(ms) ? [] : [`${(ms / 1000).toFixed(1)} s`]
}

const outcome = ({ state, status, is_late }: AuditedPass): string =>
  [
    state.replaceAll("_", " "),
    ...(status === null || status === "completed" ? [] : [status]),
    ...(is_late ? ["late"] : []),
  ].join(", ")

/** Renders a pass in one line: time, id, agents, outcome, duration, reason, error. */
const renderPass = (pass: AuditedPass): string => {
  const { started_at, pass_over_id, originating_agent, subagent, artifacts_count, attempts, task_id, error } = pass
  return [
    localMinute(started_at),
    pass_over_id,
    `${originating_agent} → ${subagent}`,
    outcome(pass),
    ...(artifacts_count === 0 ? [] : [counted(artifacts_count, "artifact")]),
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...duration(pass),
    ...(task_id === null ? [] : [task_id]),
    shorten(pass.reason, REASON_CHARACTERS),
    ...(error ? [`${error.code}: ${error.message}`] : []),
  ].join("  ")
}

/** A pass as `--json` prints it: with names as those of the other commands, not of the audit's lines. */
const toReported = ({ pass_over_id: id, ...pass }: AuditedPass): Record<string, unknown> => {
  const named = (key: string): string =>
    key.replace(/_id$/, "ID").replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  return { id, ...Object.fromEntries(Object.entries(pass).map(([key, value]) => [named(key), value])) }
}

const FAILED_EXIT_CODE = 1

const say = (text: string): void => complain(`passes: ${text}`)

const list = async (root: string, { filter, json }: Extract<PassesRequest, { kind: "list" }>): Promise<boolean> => {
  const { passes, unreadable } = await queryAudit(root, filter)
  if (json) printJSON(passes.map(toReported))
  else print(passes.length === 0 ? "No passes" : passes.map(renderPass).join("\n"))
  for (const { path, lines } of unreadable) say(`${counted(lines, "line")} of ${path} could not be read`)
  return unreadable.length === 0
}

const warn = (message: string, extra: LogExtra = {}): void => say([message, ...Object.values(extra)].join(": "))

type Restored = Awaited<ReturnType<ReturnType<typeof createPersonsPasses>["restore"]>>

const renderRestored = (passID: string, restored: Restored, json: boolean): boolean => {
  if (json) printJSON(restored)
  else if (restored.kind === "refused") say(`${restored.reason} ${restored.fix}`)
  else {
    const left = restored.leftAlone.map(({ path, reason }) => `${path} was left alone: ${reason}`)
    const held = `${counted(restored.held, "changed file")} pending: baton passes apply ${passID}, or reject`
    print([...restored.did, ...left, held].join("\n"))
  }
  return restored.kind === "restored"
}

type OnePass = Exclude<PassesRequest, { kind: "list" }>

const act = async (root: string, { kind, passID, decision, json }: OnePass): Promise<boolean> => {
  const passes = createPersonsPasses(root, { ...SILENT, warn })
  if (kind === "restore") return renderRestored(passID, await passes.restore(passID), json)
  const { isDone, text } = await passes[kind](passID, decision)
  if (json) printJSON({ isDone, text })
  else if (isDone) print(text)
  else say(text)
  return isDone
}

const parse = (args: readonly string[], here: string) => {
  const request = parsePassesArguments(args, Date.now())
  return { request, root: chooseProject(request.directory, here) }
}

const run = async ({ request, root }: ReturnType<typeof parse>): Promise<number> => {
  try {
    const isWhole = request.kind === "list" ? await list(root, request) : await act(root, request)
    return isWhole ? 0 : FAILED_EXIT_CODE
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    return FAILED_EXIT_CODE
  }
}

await runCommand({ name: "passes", parse, projectsOf: ({ root }) => [root], run })
