/** `baton passes`. Exits 0 when all could be read (or restored), 1 when not, 2 for a wrong command line. */
import { resolve } from "node:path"
import { runCommand } from "../host/cli.ts"
import type { LogExtra } from "../host/log.ts"
import { nearestProject } from "../host/project.ts"
import { queryAudit } from "./audit-query.ts"
import { type PassesRequest, parsePassesArguments } from "./passes-arguments.ts"
import { renderPass } from "./render-pass.ts"
import { restoreFiles } from "./restore-files.ts"

const FAILED_EXIT_CODE = 1

const say = (text: string): void => void process.stderr.write(`passes: ${text}\n`)
const print = (text: string): void => void process.stdout.write(`${text}\n`)

const list = async (root: string, { filter, json }: Extract<PassesRequest, { kind: "list" }>): Promise<boolean> => {
  const { passes, unreadable } = await queryAudit(root, filter)
  if (json) print(JSON.stringify(passes, null, 2))
  else print(passes.length === 0 ? "No passes" : passes.map(renderPass).join("\n"))
  for (const { path, lines } of unreadable) say(`${lines} line${lines === 1 ? "" : "s"} of ${path} could not be read`)
  return unreadable.length === 0
}

const restore = async (
  root: string,
  { passID, json }: Extract<PassesRequest, { kind: "restore" }>,
): Promise<boolean> => {
  const warn = (message: string, extra: LogExtra = {}): void => say([message, ...Object.values(extra)].join(": "))
  const restored = await restoreFiles(root, passID, { debug: () => {}, warn })
  if (json) print(JSON.stringify(restored, null, 2))
  else if (restored.kind === "refused") say(`${restored.reason} ${restored.fix}`)
  else {
    const left = restored.leftAlone.map(({ path, reason }) => `${path} was left alone: ${reason}`)
    const held = `${restored.held} changed file${restored.held === 1 ? "" : "s"} held; apply or reject in OpenCode`
    print([...restored.did, ...left, held].join("\n"))
  }
  return restored.kind === "restored"
}

const parse = (args: readonly string[], here: string) => {
  const request = parsePassesArguments(args, Date.now())
  const { directory } = request
  return { request, root: directory === undefined ? nearestProject(here) : resolve(here, directory) }
}

const run = async ({ request, root }: ReturnType<typeof parse>): Promise<number> => {
  try {
    const isWhole = request.kind === "list" ? await list(root, request) : await restore(root, request)
    return isWhole ? 0 : FAILED_EXIT_CODE
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    return FAILED_EXIT_CODE
  }
}

await runCommand({ name: "passes", parse, run })
