/**
 * `baton learned`, started by the launcher. Exits with 0, with 1 when the ledger does not answer or the learning does not exist,
 * with 2 for a wrong command line.
 */

import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printJSON, runCommand } from "../host/cli.ts"
import { type Log, SILENT } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { isFolder } from "../host/project.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state.ts"
import { readSigner, type Sign } from "../host/state-mark.ts"
import { onOneLine } from "../host/text.ts"
import { createLedger } from "../ledger/client.ts"
import { type LearningDetail, parseDetail, planSteps } from "../ledger/learnings.ts"
import type { LedgerLearning } from "../ledger/ledger.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { isShown } from "./fitting.ts"
import { fromLedger, type KnownLearning } from "./known.ts"
import { findLearningProject, retireEntry } from "./learning.ts"
import { createSessionRecords, type LearningProject, type SessionRecord } from "./records.ts"
import { isLearningType, LEARNING_TYPES, type LearningType } from "./signals.ts"

type Request = { readonly root: string; readonly json: boolean } & (
  | { readonly action: "list" | "export"; readonly all: boolean }
  | { readonly action: "show"; readonly id: string }
  | { readonly action: "forget"; readonly id: string; readonly reason: string }
)

const ACTIONS: ReadonlySet<string> = new Set(["list", "show", "forget", "export"])

/** Parses `[list | show ID | forget ID | export] [DIR] [OPTIONS]`. @throws Error for anything else, in words for the user */
const parse = (args: readonly string[], here: string): Request => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      all: { type: "boolean", default: false },
      reason: { type: "string", default: "" },
    },
  })
  const { json, all, reason } = values
  const [first = "list", ...others] = positionals
  // A folder alone means `list`.
  const [action, ...rest] =
    ACTIONS.has(first) || !isFolder(resolve(here, first)) ? [first, ...others] : ["list", ...positionals]
  const rootIn = (words: readonly string[]): string => {
    if (words.length > 1) throw new Error(`expected one project folder, received ${words.length}`)
    return chooseProject(words[0], here)
  }
  if (action === "list" || action === "export") return { action, root: rootIn(rest), json, all }
  if (action !== "show" && action !== "forget")
    throw new Error(`expected list, show, forget or export, received '${action}'`)
  const [id, ...folders] = rest
  if (id === undefined) throw new Error(`${action} needs the id of a learning; baton learned lists them`)
  if (action === "show") return { action, id, root: rootIn(folders), json }
  if (reason.trim() === "") throw new Error("forget needs --reason: why it is wrong or no longer true")
  return { action, id, reason, root: rootIn(folders), json }
}

/** A learning as shown to the user and printed by `--json`. */
type ReportedLearning = Pick<KnownLearning, "by" | "type" | "sentence"> & {
  readonly id: string
  readonly status: "active" | "stale"
  /** It is a one-off remark, not recalled until the user says it again. */
  readonly isOnce: boolean
  readonly files: readonly string[]
  readonly concepts: readonly string[]
  /** Sources of a user's learning; an agent's has none. */
  readonly origin?: LearningDetail
  /** An agent's own words beside the sentence. */
  readonly detail?: string
  readonly createdAt: string
  /** The times it was given to a model, newest first; only of sessions that still exist. */
  readonly used: readonly { readonly at: string; readonly sessionID: string }[]
}

const reportLearnings = (
  learnings: readonly LedgerLearning[],
  records: readonly SessionRecord[],
  project: LearningProject,
  sign: Sign | undefined,
): ReportedLearning[] => {
  const uses = records.flatMap(({ sessionID, given }) => given.map(({ at, keys }) => ({ at, sessionID, keys })))
  return learnings.flatMap((learning): ReportedLearning[] => {
    const known = fromLedger(learning, project, sign)
    if (!known) return []
    const { id, files, concepts, detail, createdAt } = learning
    const { by, type, sentence, key } = known
    const used = uses
      .filter(({ keys }) => keys.includes(key))
      .map(({ at, sessionID }) => ({ at, sessionID }))
      .toSorted((one, other) => (one.at < other.at ? 1 : -1))
    const status = learning.status === "active" ? "active" : "stale"
    const origin = by === "user" ? parseDetail(detail) : undefined
    const from = origin ? { origin } : detail === "" ? {} : { detail }
    return [{ id, by, type, sentence, status, isOnce: !isShown(known), files, concepts, ...from, createdAt, used }]
  })
}

const day = (at: string | undefined): string => (at === undefined ? "never" : localMinute(at).slice(0, 10))
const kindOf = ({ by, type }: ReportedLearning): string => (by === "agent" ? by : type)
const since = ({ origin, createdAt }: ReportedLearning): string => day(origin ? origin.sources[0]?.at : createdAt)

const renderLine = (learning: ReportedLearning): string => {
  const { id, sentence, status, isOnce, origin, used } = learning
  const said = `${origin?.times ?? 1}× since ${since(learning)}`
  const mark = status === "stale" ? " [stale]" : isOnce ? " [told when said again]" : ""
  return `${id}  ${kindOf(learning).padEnd(12)}  ${said}, used ${used.length}×${mark}  ${sentence}`
}

const renderOrigin = ({ times, sources, answered, confirmed, forgotten, superseded }: LearningDetail): string[] => [
  ...line("Said", `${times}×`),
  ...sources.map(({ at, sessionID, taskID }) => `  ${localMinute(at)} in ${sessionID}${taskID ? ` on ${taskID}` : ""}`),
  ...line("Answered", answered),
  ...line("Confirmed", confirmed ? "yes: the agent changed its work, unopposed" : "no"),
  ...line("Forgotten", forgotten),
  ...line("Replaced", superseded),
]

const line = (name: string, value: string | undefined): string[] => (value ? [`${`${name}:`.padEnd(12)}${value}`] : [])

/** Keeps an agent's text from passing for a line of Baton's. */
const INDENTED = `\n${" ".repeat(12)}`

const renderWhole = (learning: ReportedLearning): string => {
  const { id, sentence, status, files, concepts, origin, detail, createdAt, used } = learning
  const stored = [
    ...line("Stored", `${localMinute(createdAt)}, with prog learn`),
    ...line("Detail", detail?.replaceAll("\n", INDENTED)),
  ]
  return [
    sentence,
    "",
    ...line("ID", id),
    ...line("Type", kindOf(learning)),
    ...line("Status", status),
    ...(origin ? renderOrigin(origin) : stored),
    ...line("Concepts", concepts.filter((concept) => !isLearningType(concept)).join(", ")),
    ...line("Files", files.join(", ")),
    ...line("Used", `${used.length}×`),
    ...used.map(({ at, sessionID }) => `  ${localMinute(at)} in ${sessionID}`),
  ].join("\n")
}

const TITLES: Record<LearningType, string> = {
  correction: "Corrections",
  decision: "Decisions",
  preference: "Preferences",
  anti_pattern: "What did not work",
  pattern: "How it is done here",
  insight: "Good to know",
}

/** Renders the active learnings as Markdown for people; no program reads it back. */
const renderExport = (learnings: readonly ReportedLearning[], { name }: LearningProject): string => {
  const section = (title: string, found: readonly ReportedLearning[]): string[] => {
    const items = found.map(({ sentence, origin, createdAt, id }) => {
      const text = onOneLine(sentence).replaceAll(/[<>[\]*_`\\]/g, (sign) => `\\${sign}`)
      return `- ${text} (${day(origin ? origin.sources.at(-1)?.at : createdAt)}, ${id})`
    })
    return items.length === 0 ? [] : [`## ${title}`, "", ...items, ""]
  }
  const active = learnings.filter(({ status }) => status === "active")
  const sections = [
    ...LEARNING_TYPES.flatMap((type) =>
      section(
        TITLES[type],
        active.filter((one) => one.by === "user" && one.type === type),
      ),
    ),
    ...section(
      "Stored by agents",
      active.filter(({ by }) => by === "agent"),
    ),
  ]
  const note = "Rendered by `baton learned export`; the ledger has the originals, and nothing reads this file."
  return [`# Learned in ${name}`, "", note, "", ...(sections.length > 0 ? sections : ["Nothing yet.", ""])].join("\n")
}

const FAILED_EXIT_CODE = 1
const READ_DEADLINE_MS = 10_000
const FLUSH_DEADLINE_MS = 10_000

const say = (message: string): void => complain(`learned: ${message}`)
const failed = (message: string): number => {
  say(message)
  return FAILED_EXIT_CODE
}
const report: Log["warn"] = (message, extra = {}) => say(`${message}: ${Object.values(extra).join(": ")}`)
const LOG: Log = { ...SILENT, warn: report, error: report }

const openProject = async (root: string) => {
  const state = createStateFolder(root)
  const run = createProcessRunner({ shell: undefined })
  const ledger = createLedger({ run, directory: root, log: LOG, state })
  const { learning } = await settingsOrDefaults(root, LOG)
  const project = await findLearningProject(root, learning.project)
  const outbox = createOutbox({ ledger, state, log: LOG })
  const records = createSessionRecords({ state, log: LOG, pid: process.pid })
  const read = async () => {
    await outbox.flush(FLUSH_DEADLINE_MS)
    return ledger.readLearnings(project.name, { deadlineMs: READ_DEADLINE_MS })
  }
  return { project, outbox, records, read }
}

type Listing = Exclude<Request, { action: "forget" }>

const show = (request: Listing, project: LearningProject, all: readonly ReportedLearning[]): number => {
  const answer = (value: unknown, text: string): number => {
    if (request.json) printJSON(value)
    else print(text.trimEnd())
    return 0
  }
  const active = all.filter(({ status }) => status === "active")
  switch (request.action) {
    case "list": {
      const chosen = request.all ? all : active
      return answer(chosen, chosen.length === 0 ? "Nothing learned" : chosen.map(renderLine).join("\n"))
    }
    case "export":
      return answer(active, renderExport(active, project))
    case "show": {
      const found = all.find(({ id }) => id === request.id)
      if (found) return answer(found, renderWhole(found))
      return failed(`there is no learning ${request.id} in ${project.name}; baton learned list --all shows their ids`)
    }
  }
}

const run = async (request: Request): Promise<number> => {
  const { root } = request
  const { project, outbox, records, read } = await openProject(root)
  const answer = await read()
  const sign = readSigner()
  if (answer.kind === "unavailable") return failed(answer.reason)
  if (request.action !== "forget")
    return show(request, project, reportLearnings(answer.learnings, await records.all(), project, sign))
  const { id, reason, json } = request
  const known = answer.learnings.map((learning) => fromLedger(learning, project, sign)).find((one) => one?.id === id)
  if (known?.status !== "active") return failed(`there is no active learning ${id} in ${project.name}`)
  const entry = retireEntry(known, project, { reason, by: "a person", at: new Date() })
  await outbox.add(entry)
  const after = await read()
  outbox.stop()
  const isDone = after.kind === "found" && sign !== undefined && planSteps(after.learnings, entry, sign).length === 0
  const said = isDone
    ? `Forgotten: ${known.sentence}`
    : `It will be forgotten when the ledger answers: ${known.sentence}`
  if (json) printJSON({ id, forgotten: isDone })
  else print(said)
  return 0
}

await runCommand({ name: "learned", parse, projectsOf: ({ root }) => [root], run })
