/** `baton state`. Exits with 0, with 1 when the folder cannot be read, with 2 for a wrong command line. */
import { basename, resolve } from "node:path"
import { parseArgs } from "node:util"
import { chooseProject, complain, print, printJSON, runCommand } from "../host/cli.ts"
import { describeError } from "../host/log.ts"
import { isFolder } from "../host/project.ts"
import { listStates, pruneStates } from "./observe/state-files.ts"
import { renderState, toAgentView } from "./observe/view.ts"
import { liveFolder } from "./statefile.ts"

const FAILED_EXIT_CODE = 1

const parse = (args: readonly string[], here: string) => {
  const options = { json: { type: "boolean", default: false } } as const
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
  const [first = "list"] = positionals
  // A folder alone means `list`.
  const isAction = first === "list" || first === "prune" || !isFolder(resolve(here, first))
  const [action = "list", directory, ...rest] = isAction ? positionals : ["list", ...positionals]
  if (action !== "list" && action !== "prune") throw new Error(`expected list or prune, received '${action}'`)
  if (rest.length > 0) throw new Error(`expected one project folder, received ${rest.length + 1}`)
  return { action, json: values.json, root: chooseProject(directory, here) }
}

const run = async ({ action, json, root }: ReturnType<typeof parse>): Promise<number> => {
  const folder = liveFolder(root)
  const report = (problem: string): void => complain(`state: left out: ${problem}`)
  try {
    if (action === "prune") {
      const gone = await pruneStates(folder, report)
      if (json) printJSON(gone)
      else print(`${gone.length} removed`)
      return 0
    }
    const states = await listStates(folder, report)
    if (json) printJSON(states.map((found) => toAgentView(basename(root), found, undefined)))
    else print(states.length === 0 ? "No agents" : states.map(renderState).join("\n"))
    return 0
  } catch (error) {
    complain(`state: ${folder} cannot be read: ${describeError(error)}`)
    return FAILED_EXIT_CODE
  }
}

await runCommand({ name: "state", parse, projectsOf: ({ root }) => [root], run })
