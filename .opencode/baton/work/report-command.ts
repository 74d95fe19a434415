/** `baton report`. Exits with 0, with 1 when the ledger does not answer, with 2 for a wrong command line. */
import { parseArgs } from "node:util"
import { complain, print, printJSON, runCommand } from "../host/cli.ts"
import { nearestProject } from "../host/project.ts"
import { readWorkNote, removeWorkNote } from "../host/work-note.ts"
import { findFolderProject } from "../ledger/embedded/folder-project.ts"
import { readBranches } from "./branches-command.ts"
import { openWorkLedger } from "./ledger.ts"
import { lastClock } from "./options.ts"
import { renderReport, toReport } from "./report.ts"

type Request = {
  readonly directory: string
  readonly project: string | undefined
  /** Milliseconds since 1970; undefined for the begin of the last work, or a day. */
  readonly since: number | undefined
  readonly json: boolean
}

const parse = (args: readonly string[], here: string): Request => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      since: { type: "string" },
      project: { type: "string", short: "p" },
      json: { type: "boolean", default: false },
    },
  })
  return {
    directory: nearestProject(here),
    project: values.project,
    since: values.since === undefined ? undefined : lastClock(values.since, Date.now()),
    json: values.json,
  }
}

const DAY_MS = 24 * 60 * 60_000

const run = async ({ directory, since, json, ...request }: Request): Promise<number> => {
  const note = readWorkNote(directory)
  const project = request.project ?? note?.project ?? (await findFolderProject(directory))
  const from =
    since === undefined ? (note?.since ?? new Date(Date.now() - DAY_MS).toISOString()) : new Date(since).toISOString()
  const ledger = openWorkLedger(directory)
  try {
    const [runs, queue, branches] = await Promise.all([
      ledger.runs(project, from),
      ledger.queue(project),
      readBranches(directory),
    ])
    const report = toReport(
      runs.filter(({ worker }) => worker !== ""),
      queue,
      branches,
      from,
    )
    if (json) printJSON({ project, ...report })
    else print(renderReport(report))
    removeWorkNote(directory)
    return 0
  } catch (error) {
    complain(`report: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

await runCommand({ name: "report", parse, run })
