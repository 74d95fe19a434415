/** `baton handoffs`. Exits with 0 when the handoffs could be read, 1 when not, 2 for a wrong command line. */

import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printJSON, runCommand } from "../host/cli.ts"
import { SILENT } from "../host/log.ts"
import { createStateFolder } from "../host/state.ts"
import { onOneLine } from "../host/text.ts"
import { createHandoffRecords, findChain, type HandoffRecord } from "./records.ts"

const FAILED_EXIT_CODE = 1

/** Renders a handoff in one line: time, id, from and to, task, goal. */
const renderHandoff = ({ id, createdAt, from, arrivals, taskID, goal }: HandoffRecord): string => {
  const to = arrivals.length === 0 ? "(not sent yet)" : arrivals.map(({ sessionID }) => sessionID).join(", ")
  const task = taskID === undefined ? [] : [taskID]
  return [localMinute(createdAt), id, `${from} → ${to}`, ...task, onOneLine(goal)].join("  ")
}

const parse = (args: readonly string[], here: string) => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { json: { type: "boolean", default: false }, session: { type: "string" }, draft: { type: "string" } },
  })
  const [directory, ...rest] = positionals
  if (rest.length > 0) throw new Error(`expected one project folder, received ${positionals.length}`)
  return { ...values, root: chooseProject(directory, here) }
}

const run = async ({ root, json, session, draft }: ReturnType<typeof parse>): Promise<number> => {
  let isWhole = true
  const warn = (message: string, extra: Record<string, unknown> = {}): void => {
    isWhole = false
    complain(`handoffs: ${message}: ${Object.values(extra).join(": ")}`)
  }
  const all = await createHandoffRecords({ state: createStateFolder(root), log: { ...SILENT, warn } }).list()
  if (draft !== undefined) {
    const found = all.find(({ id }) => id === draft)
    if (found) print(found.draft)
    else complain(`handoffs: there is no handoff ${draft}; baton handoffs lists their ids`)
    return found ? 0 : FAILED_EXIT_CODE
  }
  const chosen = session === undefined ? all : findChain(all, session)
  if (json) printJSON(chosen)
  else print(chosen.length === 0 ? "No handoffs" : chosen.map(renderHandoff).join("\n"))
  return isWhole ? 0 : FAILED_EXIT_CODE
}

await runCommand({ name: "handoffs", parse, projectsOf: ({ root }) => [root], run })
