/**
 * `baton state`, started by the launcher: argument 1 is the folder the user is in, the user's own arguments follow.
 * Exits 0, or 1 when the folder cannot be read, or 2 for a wrong command line.
 */
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { findNearestProject } from "../host/project-root.ts"
import { listStates, pruneStates, renderState } from "./statefiles.ts"

const USAGE_EXIT_CODE = 2

const readArguments = (args: readonly string[]) => {
  const options = { json: { type: "boolean", default: false } } as const
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
  const [action = "list", directory, ...rest] = positionals
  if (action !== "list" && action !== "prune") throw new Error(`expected list or prune, received '${action}'`)
  if (rest.length > 0) throw new Error(`expected one project folder, received ${rest.length + 1}`)
  return { action, directory, json: values.json }
}

const main = async (here: string, args: readonly string[]): Promise<void> => {
  let request: ReturnType<typeof readArguments>
  try {
    request = readArguments(args)
  } catch (error) {
    process.stderr.write(`state: ${error instanceof Error ? error.message : String(error)}\nTry: baton state --help\n`)
    process.exitCode = USAGE_EXIT_CODE
    return
  }
  const root = request.directory === undefined ? findNearestProject(here) : resolve(here, request.directory)
  const folder = join(root, ".opencode", "state", "live")
  if (request.action === "prune") {
    const gone = await pruneStates(folder)
    process.stdout.write(request.json ? `${JSON.stringify(gone)}\n` : `${gone.length} removed\n`)
    return
  }
  const states = await listStates(folder)
  const text = states.length === 0 ? "No agents" : states.map(renderState).join("\n")
  process.stdout.write(request.json ? `${JSON.stringify(states, null, 2)}\n` : `${text}\n`)
}

const [, , here = process.cwd(), ...args] = process.argv
await main(here, args)
