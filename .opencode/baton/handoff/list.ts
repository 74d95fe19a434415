/**
 * `baton handoffs`, started by the launcher: argument 1 is the folder the user is in, the user's own arguments follow.
 * Exits 0 when the handoffs could be read, 1 when not, 2 for a wrong command line.
 */
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { findNearestProject } from "../host/project-root.ts"
import { createStateFolder } from "../host/state-folder.ts"
import { findChain, renderHandoffLine } from "./handoff-chain.ts"
import { createHandoffRecords } from "./handoff-record.ts"

const FAILED_EXIT_CODE = 1
const USAGE_EXIT_CODE = 2

const readArguments = (args: readonly string[]) => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { json: { type: "boolean", default: false }, session: { type: "string" }, draft: { type: "string" } },
  })
  if (positionals.length > 1) throw new Error(`expected one project folder, received ${positionals.length}`)
  return { ...values, directory: positionals[0] }
}

const main = async (here: string, args: readonly string[]): Promise<void> => {
  let request: ReturnType<typeof readArguments>
  try {
    request = readArguments(args)
  } catch (error) {
    process.stderr.write(
      `handoffs: ${error instanceof Error ? error.message : String(error)}\nTry: baton handoffs --help\n`,
    )
    process.exitCode = USAGE_EXIT_CODE
    return
  }
  const { directory, json, session, draft } = request
  const root = directory === undefined ? findNearestProject(here) : resolve(here, directory)
  let isWhole = true
  const warn = (message: string, extra: Record<string, unknown> = {}): void => {
    isWhole = false
    process.stderr.write(`handoffs: ${message}: ${Object.values(extra).join(": ")}\n`)
  }
  const all = await createHandoffRecords({ state: createStateFolder(root), log: { warn } }).list()
  const chosen = session === undefined ? all : findChain(all, session)
  if (draft !== undefined) {
    const found = all.find(({ id }) => id === draft)
    if (found) process.stdout.write(`${found.draft}\n`)
    else process.stderr.write(`handoffs: there is no handoff ${draft}; baton handoffs --json lists their ids\n`)
    if (!found) process.exitCode = FAILED_EXIT_CODE
    return
  }
  const text = chosen.length === 0 ? "No handoffs" : chosen.map(renderHandoffLine).join("\n")
  process.stdout.write(json ? `${JSON.stringify(chosen, null, 2)}\n` : `${text}\n`)
  if (!isWhole) process.exitCode = FAILED_EXIT_CODE
}

const [, , here = process.cwd(), ...args] = process.argv
await main(here, args)
