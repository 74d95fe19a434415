/** `baton doctor`. Exits 0 when nothing is broken, 1 when something is, 2 for a wrong command line. */

import { statSync } from "node:fs"
import { mkdtemp, realpath, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { runCommand } from "../host/cli.ts"
import { createProcessRunner } from "../host/process.ts"
import { nearestProject } from "../host/project.ts"
import { handoffsCheck, learningCheck, liveStateCheck, passesCheck } from "./checks/features.ts"
import { filesCheck, promptsCheck, settingsCheck } from "./checks/files.ts"
import { copiesCheck, dependenciesCheck, openCodeCheck, pluginsCheck, switchesCheck } from "./checks/opencode.ts"
import { databaseCheck, ledgerCheck, outboxCheck, stateCheck } from "./checks/records.ts"
import { type Check, createReport, renderJSON, renderText, type Subject } from "./report.ts"

/** In the order a person reads them: the host, the bundle, what the model reads, the records. */
export const CHECKS: readonly Check[] = [
  openCodeCheck,
  switchesCheck,
  filesCheck,
  pluginsCheck,
  copiesCheck,
  dependenciesCheck,
  promptsCheck,
  settingsCheck,
  ledgerCheck,
  databaseCheck,
  outboxCheck,
  handoffsCheck,
  liveStateCheck,
  learningCheck,
  passesCheck,
  stateCheck,
]

export type DoctorRequest = { readonly directory: string | undefined; readonly json: boolean }

/**
 * `[DIR] [--json]`; what follows `--` is a folder even when it starts with a dash. The launcher answers `--help`.
 *
 * @throws an Error that says what was expected and what was received
 */
export const parseArguments = (args: readonly string[]): DoctorRequest => {
  const end = args.indexOf("--")
  const flags = end < 0 ? args : args.slice(0, end)
  const unknown = flags.find((argument) => argument.startsWith("-") && argument !== "--json")
  if (unknown !== undefined) throw new Error(`unknown option: ${unknown}`)
  const folders = [...flags.filter((argument) => !argument.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))]
  if (folders.length > 1) {
    const received = folders.map((folder) => `'${folder}'`).join(" and ")
    throw new Error(`expected one project folder, received ${folders.length}: ${received}`)
  }
  if (folders[0] === "") throw new Error("expected a project folder, received an empty name")
  return { directory: folders[0], json: flags.includes("--json") }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

const parse = (args: readonly string[], here: string): DoctorRequest & { root: string } => {
  const request = parseArguments(args)
  const { directory } = request
  if (directory === undefined) return { ...request, root: nearestProject(here) }
  const root = resolve(here, directory)
  if (!isFolder(root)) throw new Error(`expected a project folder, received '${directory}', which is not a folder`)
  return { ...request, root }
}

const examine = async ({ directory, root, json }: ReturnType<typeof parse>): Promise<number> => {
  const scratch = await mkdtemp(join(tmpdir(), "baton-doctor-"))
  try {
    const run = createProcessRunner({ shell: undefined })
    const place = directory === undefined ? root : await realpath(root)
    const subject: Subject = { root: place, home: homedir(), environment: process.env, scratch, run }
    const report = await createReport(subject, CHECKS)
    const color = process.stdout.isTTY === true && !process.env.NO_COLOR
    process.stdout.write(json ? renderJSON(report) : renderText(report, { color }))
    return report.summary.broken > 0 ? 1 : 0
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

await runCommand({ name: "doctor", parse, run: examine })
