/**
 * `baton doctor`, started by the launcher: argument 1 is the folder the user is in, the user's own arguments follow.
 * Exits 0 when nothing is broken, 1 when something is, 2 for a wrong command line.
 */
import { existsSync, statSync } from "node:fs"
import { mkdtemp, realpath, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { createProcessRunner } from "../host/process.ts"
import { parseArguments } from "./arguments.ts"
import { CHECKS } from "./checks.ts"
import type { Subject } from "./finding.ts"
import { renderJSON, renderText } from "./render.ts"
import { createReport } from "./report.ts"

const USAGE_EXIT_CODE = 2

const finish = (stream: NodeJS.WriteStream, text: string, exitCode: number): void => {
  // A reader that went away (`| head`) is no fault of the project.
  stream.on("error", () => process.exit(exitCode))
  stream.write(text, () => process.exit(exitCode))
}

const refuse = (message: string): void =>
  finish(process.stderr, `doctor: ${message}\nTry: doctor --help\n`, USAGE_EXIT_CODE)

/** The nearest folder upwards with Baton in it, as from a sub-folder of a project; else the folder itself. */
const nearestProject = (start: string): string => {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".opencode", "baton"))) return folder
    if (dirname(folder) === folder) return start
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

const main = async (here: string, args: readonly string[]): Promise<void> => {
  const parsed = parseArguments(args)
  if (parsed.kind === "misuse") return refuse(parsed.message)
  const { directory, json } = parsed.request
  if (directory !== undefined && !isFolder(resolve(here, directory))) {
    return refuse(`expected a project folder, received '${directory}', which is not a folder`)
  }
  const root = directory === undefined ? nearestProject(here) : await realpath(resolve(here, directory))
  const scratch = await mkdtemp(join(tmpdir(), "baton-doctor-"))
  try {
    const run = createProcessRunner({ shell: undefined })
    const subject: Subject = { root, home: homedir(), environment: process.env, scratch, run }
    const report = await createReport(subject, CHECKS)
    const color = process.stdout.isTTY === true && !process.env.NO_COLOR
    const text = json ? renderJSON(report) : renderText(report, { color })
    await rm(scratch, { recursive: true, force: true })
    finish(process.stdout, text, report.summary.broken > 0 ? 1 : 0)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

const [, , here = process.cwd(), ...args] = process.argv
await main(here, args)
