import { join } from "node:path"
import { splitHandoff } from "../../.opencode/baton/ledger/description.ts"
import { runChild } from "./child-process.ts"
import type { DemoOptions } from "./options.ts"
import type { Workspace } from "./workspace.ts"

export type LedgerTask = {
  id: string
  status: string
  description: string
  logs: readonly { message: string; created_at: string }[]
}

/** The ledger as somebody outside sees it: only through the prog command. */
export type LedgerView = {
  add(task: { title: string; specification: string; definitionOfDone: string }): Promise<string>
  /** `prog show ID`, the text. */
  show(id: string): Promise<string>
  /** `prog show ID --json`. */
  read(id: string): Promise<LedgerTask>
}

export const createLedgerView = (options: DemoOptions, workspace: Workspace, signal: AbortSignal): LedgerView => {
  const launcher = join(options.repository, ".opencode", "baton", "bin", "prog")
  const prog = async (...args: string[]): Promise<string> => {
    const result = await runChild([launcher, ...args], {
      cwd: workspace.directory,
      environment: workspace.isolated,
      signal,
    })
    if (result.exitCode !== 0) throw new Error(`prog ${args[0]} exited ${result.exitCode}: ${result.stderr.trim()}`)
    return result.stdout.trimEnd()
  }
  return {
    add: ({ title, specification, definitionOfDone }) =>
      prog("add", title, "-p", "slugs", "--dod", definitionOfDone, "--desc", specification),
    show: (id) => prog("show", id),
    read: async (id) => JSON.parse(await prog("show", id, "--json")),
  }
}

export type RecordedCompaction = { number: number; at: string; line: string }

/** The compactions in a task's log, oldest first. `at` is RFC 3339 as prog gives it. */
export const recordedCompactions = (task: LedgerTask): RecordedCompaction[] =>
  task.logs.flatMap(({ message, created_at }) => {
    const found = /^Compaction (\d+): (.*)/s.exec(message)
    return found ? [{ number: Number(found[1]), at: created_at, line: found[2] ?? "" }] : []
  })

/** The specification and the handoff of a description. */
export const descriptionParts = splitHandoff
