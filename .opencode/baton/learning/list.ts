/**
 * `baton learned`, started by the launcher: argument 1 is the folder the user is in, the user's own arguments follow.
 * Exits 0, or 1 when the ledger does not answer or there is no such learning, or 2 for a wrong command line.
 */
import { resolve } from "node:path"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { nearestProject } from "../host/project-root.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state-folder.ts"
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
const USAGE_EXIT_CODE = 2
const READ_DEADLINE_MS = 10_000
const FLUSH_DEADLINE_MS = 10_000

const complain = (message: string): void => {
  process.stderr.write(`learned: ${message}\n`)
}
const failed = (message: string): void => {
  complain(message)
  process.exitCode = FAILED_EXIT_CODE
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
  return { project, outbox, records, read, ledger }
}

const show = (request: Request, project: LearningProject, all: readonly ReportedLearning[]): void => {
  const print = (value: unknown, text: string) =>
    process.stdout.write(request.json ? `${JSON.stringify(value, null, 2)}\n` : `${text.trimEnd()}\n`)
  if (request.action === "list") {
    const chosen = all.filter(({ status }) => request.all || status === "active")
    print(chosen, chosen.length === 0 ? "Nothing learned" : chosen.map(renderLine).join("\n"))
  } else if (request.action === "export") {
    print(
      all.filter(({ status }) => status === "active"),
      renderExport(all, project),
    )
  } else if (request.action === "show") {
    const found = all.find(({ id }) => id === request.id)
    if (found) print(found, renderWhole(found))
    else failed(`there is no learning ${request.id} in ${project.name}; baton learned list --all shows their ids`)
  }
}

const main = async (here: string, args: readonly string[]): Promise<void> => {
  let request: Request
  try {
    request = readArguments(args)
  } catch (error) {
    complain(`${error instanceof Error ? error.message : String(error)}\nTry: baton learned --help`)
    process.exitCode = USAGE_EXIT_CODE
    return
  }
  const root = request.directory === undefined ? nearestProject(here) : resolve(here, request.directory)
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
  const isDone = after.kind === "found" && planDelivery(after.learnings, entry).length === 0
  const said = isDone
    ? `Forgotten: ${known.sentence}`
    : `It will be forgotten when the ledger answers: ${known.sentence}`
  process.stdout.write(json ? `${JSON.stringify({ id, forgotten: isDone })}\n` : `${said}\n`)
}

const [, , here = process.cwd(), ...args] = process.argv
await main(here, args)
process.exit()
