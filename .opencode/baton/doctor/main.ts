/** `baton doctor`. Exits with 0 if nothing is broken, 1 if something is, 2 for a wrong command line. */

import { realpathSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { printJSON, runCommand } from "../host/cli.ts"
import { createProcessRunner } from "../host/process.ts"
import { isFolder, nearestProject } from "../host/project.ts"
import { CHECKS } from "./checks.ts"
import type { Context } from "./context.ts"
import { createReport, renderText } from "./report.ts"

/**
 * Parses `[DIR] [--json]`; an argument after `--` is a folder even if it starts with a dash.
 *
 * @throws an Error that says what was expected and what was received
 */
const parse = (args: readonly string[], here: string) => {
  const options = { json: { type: "boolean", default: false } } as const
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
  const [directory, ...rest] = positionals
  if (rest.length > 0) throw new Error(`expected one project folder, received ${positionals.length}`)
  if (directory === "") throw new Error("expected a project folder, received an empty name")
  if (directory === undefined) return { ...values, root: nearestProject(here), here }
  const root = resolve(here, directory)
  if (!isFolder(root)) throw new Error(`expected a project folder, received '${directory}', which is not a folder`)
  return { ...values, root: realpathSync(root), here: undefined }
}

const diagnose = async ({ root, here, json }: ReturnType<typeof parse>): Promise<number> => {
  const scratch = await mkdtemp(join(tmpdir(), "baton-doctor-"))
  try {
    const run = createProcessRunner({ shell: undefined })
    const context: Context = { root, here, home: homedir(), environment: process.env, scratch, run }
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
