/**
 * `baton learned`, started by the launcher. Exits 0, or 1 when the ledger does not answer or there is no such learning, or 2
 * for a wrong command line.
 */
import { resolve } from "node:path"
import { runCommand } from "../host/cli.ts"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { nearestProject } from "../host/project.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state.ts"
import { createLedger } from "../ledger/client.ts"
import { planDelivery } from "../ledger/learning-record.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { type Request, readArguments } from "./command-line.ts"
import { retirement } from "./forgetting.ts"
import { fromLedger } from "./known-learning.ts"
import { findLearningProject, type LearningProject } from "./project.ts"
import { type ReportedLearning, renderExport, renderLine, renderWhole, reportLearnings } from "./report.ts"
import { createSessionRecords } from "./session-records.ts"

const FAILED_EXIT_CODE = 1
const READ_DEADLINE_MS = 10_000
const FLUSH_DEADLINE_MS = 10_000

const complain = (message: string): void => {
  process.stderr.write(`learned: ${message}\n`)
}
const failed = (message: string): number => {
  complain(message)
  return FAILED_EXIT_CODE
}
const LOG: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, extra = {}) => complain(`${message}: ${Object.values(extra).join(": ")}`),
  error: (message, extra = {}) => complain(`${message}: ${Object.values(extra).join(": ")}`),
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
  const print = (value: unknown, text: string): number => {
    process.stdout.write(request.json ? `${JSON.stringify(value, null, 2)}\n` : `${text.trimEnd()}\n`)
    return 0
  }
  const active = all.filter(({ status }) => status === "active")
  switch (request.action) {
    case "list": {
      const chosen = request.all ? all : active
      return print(chosen, chosen.length === 0 ? "Nothing learned" : chosen.map(renderLine).join("\n"))
    }
    case "export":
      return print(active, renderExport(active, project))
    case "show": {
      const found = all.find(({ id }) => id === request.id)
      if (found) return print(found, renderWhole(found))
      return failed(`there is no learning ${request.id} in ${project.name}; baton learned list --all shows their ids`)
    }
  }
}

const run = async (request: Request & { here: string }): Promise<number> => {
  const { here, directory } = request
  const root = directory === undefined ? nearestProject(here) : resolve(here, directory)
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
  const entry = retirement(known, project, { reason, by: "a person", at: new Date() })
  await outbox.add(entry)
  const after = await read()
  outbox.stop()
  const isDone = after.kind === "found" && planDelivery(after.learnings, entry).length === 0
  const said = isDone
    ? `Forgotten: ${known.sentence}`
    : `It will be forgotten when the ledger answers: ${known.sentence}`
  process.stdout.write(json ? `${JSON.stringify({ id, forgotten: isDone })}\n` : `${said}\n`)
  return 0
}

await runCommand({ name: "learned", parse: (args, here) => ({ ...readArguments(args), here }), run })
