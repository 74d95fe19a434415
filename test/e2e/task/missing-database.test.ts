import { existsSync, renameSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  bash,
  COMPACTING_PROMPT_TOKENS,
  eventually,
  LEDGER_WAIT_MS,
  linesOf,
  newestOrder,
  offers,
  openTaskProject,
  type Script,
  TASK,
} from "../../support/index.ts"
import { openServer, speak } from "../../support/opencode/model-project.ts"
import { endInstance } from "../../support/opencode/opencode-server.ts"
import { collectToasts, compactionsOf, createSession, lastTurn, recordsOf, turnsOf } from "../sessions.ts"

/** Asks prog for the task on LOOK, after which the context is full. */
const look: Script = (request) => {
  if (request.kind === "compaction") return { text: "A summary." }
  const words = newestOrder(request)
  const [, taskID] = /Task: (\S+)\nLOOK/.exec(words) ?? []
  if (taskID === undefined || words.includes("[tool]")) return { text: "Noted." }
  return bash(`prog show ${taskID}`, COMPACTING_PROMPT_TOKENS)
}

describe.each(linesOf(1))("OpenCode $version", (binary) => {
  test(
    promised("task.C2", "a ledger whose database is gone is no new one: note and toast say so, and records wait"),
    async () => {
      const task = await openTaskProject(binary, look)
      const path = task.project.environment.PROG_DB ?? ""
      renameSync(path, `${path}.away`)
      await using server = await openServer(task)
      const hasNotices = offers(binary, "notices")
      const toasts = hasNotices ? await collectToasts(server) : []
      const say = async (text: string): Promise<string> => {
        const id = await createSession(server)
        await speak(server, id, text)
        return id
      }
      await say(`Task: ${task.taskID}\nLOOK`)
      const session = await say(`Work on ${task.taskID}`)
      expect(lastTurn(task)).toContain("The ledger's database is missing")
      const [first] = turnsOf(task)
      expect(first).toContain(`The ledger's database is missing: there is no ledger at ${path}`)
      expect(first).not.toContain(TASK.specification)
      const refusal = `failed to open database ${path}: no ledger is there`
      expect(compactionsOf(task)[0], "the agent's own prog").toContain(refusal)
      const isTold = () => toasts.some((toast) => toast.includes("the ledger's database is missing")) || undefined
      if (hasNotices) await eventually("the toast", isTold)

      await endInstance(server.client)
      expect(existsSync(path)).toBe(false)
      renameSync(`${path}.away`, path)
      await speak(server, session, "Go on.")
      expect(lastTurn(task)).toContain(TASK.specification)
      const recorded = async () => (await recordsOf(task)).find((message) => message.includes("A summary."))
      await eventually("the record of the compaction", recorded, ...LEDGER_WAIT_MS)
    },
  )
})
