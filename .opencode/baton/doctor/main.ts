/** `baton doctor`. Exits with 0 if nothing is broken, 1 if something is, 2 for a wrong command line. */

import { mkdtemp, realpath, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { printJSON, runCommand } from "../host/cli.ts"
import { createProcessRunner } from "../host/process.ts"
import { isFolder, nearestProject } from "../host/project.ts"
import { CHECKS } from "./checks.ts"
import { type Context, createReport, type DoctorRequest, parseArguments, renderText } from "./report.ts"

const parse = (args: readonly string[], here: string): DoctorRequest & { root: string } => {
  const request = parseArguments(args)
  const { directory } = request
  if (directory === undefined) return { ...request, root: nearestProject(here) }
  const root = resolve(here, directory)
  if (!isFolder(root)) throw new Error(`expected a project folder, received '${directory}', which is not a folder`)
  return { ...request, root }
}

const diagnose = async ({ directory, root, json }: ReturnType<typeof parse>): Promise<number> => {
  const scratch = await mkdtemp(join(tmpdir(), "baton-doctor-"))
  try {
    const run = createProcessRunner({ shell: undefined })
    const place = directory === undefined ? root : await realpath(root)
    const context: Context = { root: place, home: homedir(), environment: process.env, scratch, run }
    const report = await createReport(context, CHECKS)
    const color = process.stdout.isTTY === true && !process.env.NO_COLOR
    if (json) printJSON(report)
    else process.stdout.write(renderText(report, { color }))
    return report.summary.broken > 0 ? 1 : 0
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

await runCommand({ name: "doctor", parse, run: diagnose })
