import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { cachePackage, PACKAGE_ENTRY, removePackage } from "../../support/files/packed-package.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  eventually,
  LEDGER_WAIT_MS,
  newestOrder,
  openTaskProject,
  type Script,
  TASK,
} from "../../support/index.ts"
import { PACKAGE_FILES } from "../../support/opencode/isolated-opencode.ts"
import { liveFiles } from "../../support/opencode/live-stream.ts"
import { openServer, speak } from "../../support/opencode/model-project.ts"
import { compactionsOf, createSession, handOver, lastTurn, messagesOf, recordsOf, turnsOf } from "../sessions.ts"

removePackage()

const CORRECTION = "No, use tabs instead of spaces in the formatter."

/** Is compacted on demand, hands over when the command asks, and reports otherwise. */
const script =
  (taskID: () => string): Script =>
  (request) => {
    if (request.kind === "compaction") return { text: "A summary." }
    const words = newestOrder(request)
    if (words.includes("[tool]")) return { text: "Done." }
    if (words.includes("COMPACT-NOW")) return bash(`prog log ${taskID()} "By the agent"`, COMPACTING_PROMPT_TOKENS)
    if (words.includes("Hand this work over"))
      return { tool: "handoff_session", input: { prompt: "Go on with the parser.", files: [] } }
    return { text: "I formatted it with spaces." }
  }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("package.D1", "an entry in opencode.json gives all five features, and no file of Baton"), async () => {
    const task = await openTaskProject(
      binary,
      script(() => task.taskID),
      { bundle: "none", config: { plugin: [PACKAGE_ENTRY] } },
    )
    cachePackage(task.project)
    const { directory } = task.project

    await using server = await openServer(task)
    const say = async (text: string): Promise<string> => {
      const id = await createSession(server)
      await speak(server, id, text)
      return id
    }
    const id = await say(`${task.message}\nCOMPACT-NOW`)
    expect(turnsOf(task)[0], "the task, and the prompt of its role").toContain(TASK.specification)
    expect(compactionsOf(task)[0]).toContain(`## Task ${task.taskID}`)
    expect(lastTurn(task)).toContain("(compaction 1 of this session)")
    const tools = task.model.received("turn")[0]?.tools
    expect(tools).toContain("pass_over")
    await eventually("the live state", () => liveFiles(directory)[0])
    expect(liveFiles(directory)).toHaveLength(1)
    const both = async () => {
      const records = await recordsOf(task)
      return records.length > 1 ? records : undefined
    }
    const records = await eventually("both records", both, ...LEDGER_WAIT_MS)
    expect(records).toEqual(["By the agent", "Compaction 1: A summary."])

    await say(CORRECTION)
    await eventually("the correction in a request", async () => {
      await say("Make the formatter ready for CSS.")
      return lastTurn(task).includes(JSON.stringify(CORRECTION)) || undefined
    })

    const [draft] = await messagesOf(server, await handOver({ client: server.client, model: task.model }, id))
    expect(JSON.stringify(draft)).toContain("Go on with the parser.")
    expect(task.project.batonLog().filter((line) => /unusable|built-in/.test(line))).toEqual([])
    expect(existsSync(join(directory, "prompts"))).toBe(false)
    const openCodes: readonly string[] = PACKAGE_FILES
    const added = readdirSync(join(directory, ".opencode")).filter((name) => !openCodes.includes(name))
    expect(added).toEqual(["state"])
  })
})
