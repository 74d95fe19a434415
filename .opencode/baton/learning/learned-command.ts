/**
 * `baton learned`, started by the launcher. Exits with 0, with 1 when the ledger does not answer or the learning does not exist,
 * with 2 for a wrong command line.
 */

import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printJSON, runCommand } from "../host/cli.ts"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { isFolder } from "../host/project.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state.ts"
import { createLedger } from "../ledger/client.ts"
import { type LearningDetail, parseDetail, planSteps } from "../ledger/learnings.ts"
import type { LedgerLearning } from "../ledger/ledger.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { fromLedger, isLearningType, LEARNING_TYPES, type LearningType } from "./known.ts"
import { findLearningProject, type LearningProject, retireEntry } from "./learning.ts"
import { createSessionRecords, type SessionRecord } from "./records.ts"

type Request =
  | {
      readonly action: "list" | "export"
      readonly directory: string | undefined
      readonly json: boolean
      readonly all: boolean
    }
  | { readonly action: "show"; readonly id: string; readonly directory: string | undefined; readonly json: boolean }
  | {
      readonly action: "forget"
      readonly id: string
      readonly reason: string
      readonly directory: string | undefined
      readonly json: boolean
    }

const ACTIONS: ReadonlySet<string> = new Set(["list", "show", "forget", "export"])

/** Parses `[list | show ID | forget ID | export] [DIR] [OPTIONS]`. @throws Error for anything else, in words for the user */
const readArguments = (args: readonly string[], here: string): Request => {
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
  const checked = (words: readonly string[]): string | undefined => {
    if (words.length > 1) throw new Error(`expected one project folder, received ${words.length}`)
    return words[0]
  }
  if (action === "list" || action === "export") return { action, directory: checked(rest), json, all }
  if (action !== "show" && action !== "forget")
    throw new Error(`expected list, show, forget or export, received '${action}'`)
  const [id, ...folders] = rest
  if (id === undefined) throw new Error(`${action} needs the id of a learning; baton learned lists them`)
  const directory = checked(folders)
  if (action === "show") return { action, id, directory, json }
  if (reason.trim() === "") throw new Error("forget needs --reason: why it is wrong or no longer true")
  return { action, id, reason, directory, json }
}

/** A learning as shown to the user and printed by `--json`. */
type ReportedLearning = {
  readonly id: string
  readonly type: LearningType
  readonly sentence: string
  readonly status: "active" | "stale"
  readonly files: readonly string[]
  readonly concepts: readonly string[]
  readonly origin: LearningDetail
  /** The times it was given to a model, newest first; only of sessions that still exist. */
  readonly used: readonly { readonly at: string; readonly sessionID: string }[]
}

const reportLearnings = (
  learnings: readonly LedgerLearning[],
  records: readonly SessionRecord[],
  { onlyFolder }: LearningProject,
): ReportedLearning[] => {
  const uses = records.flatMap(({ sessionID, given }) => given.map(({ at, keys }) => ({ at, sessionID, keys })))
  return learnings.flatMap((learning): ReportedLearning[] => {
    const origin = parseDetail(learning.detail)
    const type = learning.concepts.find(isLearningType)
    if (!origin || !type || (onlyFolder !== undefined && origin.folder !== onlyFolder)) return []
    const { id, summary: sentence, files, concepts } = learning
    const used = uses
      .filter(({ keys }) => keys.includes(origin.key))
      .map(({ at, sessionID }) => ({ at, sessionID }))
      .toSorted((one, other) => (one.at < other.at ? 1 : -1))
    const status = learning.status === "active" ? "active" : "stale"
    return [{ id, type, sentence, status, files, concepts, origin, used }]
  })
}

const day = (at: string | undefined): string => (at === undefined ? "never" : localMinute(at).slice(0, 10))

const renderLine = ({ id, type, sentence, status, origin, used }: ReportedLearning): string => {
  const said = `${origin.times}× since ${day(origin.sources[0]?.at)}`
  const mark = status === "stale" ? " [stale]" : ""
  return `${id}  ${type.padEnd(12)}  ${said}, used ${used.length}×${mark}  ${sentence}`
}

const renderWhole = (learning: ReportedLearning): string => {
  const { id, type, sentence, status, files, origin, used } = learning
  const line = (name: string, value: string | undefined): string[] =>
    value ? [`${`${name}:`.padEnd(12)}${value}`] : []
  return [
    sentence,
    "",
    ...line("ID", id),
    ...line("Type", type),
    ...line("Status", status),
    ...line("Said", `${origin.times}×`),
    ...origin.sources.map(
      ({ at, sessionID, taskID }) => `  ${localMinute(at)} in ${sessionID}${taskID ? ` on ${taskID}` : ""}`,
    ),
    ...line("Answered", origin.answered),
    ...line("Confirmed", origin.confirmed ? "yes: the agent changed its work, unopposed" : "no"),
    ...line("Files", files.join(", ")),
    ...line("Forgotten", origin.forgotten),
    ...line("Replaced", origin.superseded),
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
  const sections = LEARNING_TYPES.flatMap((type) => {
    const found = learnings.filter((one) => one.type === type && one.status === "active")
    if (found.length === 0) return []
    const items = found.map(({ sentence, origin, id }) => {
      const text = sentence.replaceAll(/\s+/g, " ").replaceAll(/[<>[\]*_`\\]/g, (sign) => `\\${sign}`)
      return `- ${text} (${day(origin.sources.at(-1)?.at)}, ${id})`
    })
    return [`## ${TITLES[type]}`, "", ...items, ""]
  })
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
const LOG: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, extra = {}) => say(`${message}: ${Object.values(extra).join(": ")}`),
  error: (message, extra = {}) => say(`${message}: ${Object.values(extra).join(": ")}`),
}

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
    return await ledger.readLearnings(project.name, { deadlineMs: READ_DEADLINE_MS })
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

const parse = (args: readonly string[], here: string): Request & { root: string } => {
  const request = readArguments(args, here)
  return { ...request, root: chooseProject(request.directory, here) }
}

const run = async (request: ReturnType<typeof parse>): Promise<number> => {
  const { root } = request
  const { project, outbox, records, read } = await openProject(root)
  const answer = await read()
  if (answer.kind === "unavailable") return failed(answer.reason)
  if (request.action !== "forget")
    return show(request, project, reportLearnings(answer.learnings, await records.all(), project))
  const { id, reason, json } = request
  const known = answer.learnings
    .map((learning) => fromLedger(learning, project.onlyFolder))
    .find((one) => one?.id === id)
  if (known?.status !== "active") return failed(`there is no active learning ${id} in ${project.name}`)
  const entry = retireEntry(known, project, { reason, by: "a person", at: new Date() })
  await outbox.add(entry)
  const after = await read()
  outbox.stop()
  const isDone = after.kind === "found" && planSteps(after.learnings, entry).length === 0
  const said = isDone
    ? `Forgotten: ${known.sentence}`
    : `It will be forgotten when the ledger answers: ${known.sentence}`
  if (json) printJSON({ id, forgotten: isDone })
  else print(said)
  return 0
}

await runCommand({ name: "learned", parse, projectOf: ({ root }) => root, run })
