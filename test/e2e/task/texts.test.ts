import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { listTree } from "../../support/files/folder-tree.ts"
import {
  ALL_LINES,
  bash,
  COMPACTING_PROMPT_TOKENS,
  type ModelRequest,
  newestOrder,
  newestWords,
  openSharedTask,
  type SharedTask,
  testsOnce,
} from "../../support/index.ts"
import { compactsOnDemand, lastTurn } from "../sessions.ts"

/** Invented, and put together here so that no file of the repository holds one. */
const SECRETS = [`sk-live-${"0123456789abcdef"}`, `AKIA${"A2B3C4D5E6F7G2H3"}`]
const FAILING = `curl -H "Authorization: Bearer ${SECRETS[0]}" "http://127.0.0.1:9/?api_key=${SECRETS[1]}"; exit 22`
const SHOWN = 'curl -H "Authorization: Bearer [redacted]" "http://127.0.0.1:9/?api_key=[redacted]"; exit 22'

/** The prompt of a compaction, without the conversation that the newest OpenCode puts behind it as it was. */
const promptOf = (request: ModelRequest): string =>
  newestWords(request).split("The following is the conversation history:")[0] ?? ""

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)

  test(promised("words.A5b", "what a failing command holds of secrets is in no request, record or file"), async () => {
    const task: SharedTask = await openSharedTask(binary, (request) => {
      if (request.kind === "compaction") return { text: "A summary." }
      const words = newestOrder(request)
      return words.includes("WORK") && !words.includes("[tool]")
        ? bash(FAILING, COMPACTING_PROMPT_TOKENS)
        : { text: "Noted." }
    })
    await task.say(`${task.message}\nWORK`)
    await task.records(1)
    await task.say(task.message)
    const prompts = task.model.received("compaction").map(promptOf)
    const { description, logs } = await task.ledger.show(task.taskID)
    for (const [where, text] of Object.entries({ prompt: prompts[0] ?? "", turn: lastTurn(task), description }))
      expect(text, where).toContain(`Failed when last run: \`${SHOWN}\``)
    const state = join(task.project.directory, ".opencode/state")
    const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true
    const paths = listTree(state).map((path) => join(state, path))
    const files = paths.filter(isFile).map((path) => readFileSync(path, "utf8"))
    expect(files.some((text) => text.includes("[redacted]"))).toBe(true)
    const all = [...prompts, lastTurn(task), description, JSON.stringify(logs), ...files]
    for (const secret of SECRETS) expect(all.filter((text) => text.includes(secret))).toEqual([])
  })

  once(promised("words.A5a", "a message of emoji reaches the model whole or cut between two of them"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    await task.say(`${task.message}\nx${"🚀".repeat(task.context / 5)}\nCOMPACT-NOW`)
    await task.records(1)
    const [prompt = ""] = task.model.received("compaction").map(newestWords)
    expect(prompt).toMatch(/🚀\n\[cut to \d+ of \d+ characters\]/u)
    expect(task.model.requests.map(({ conversation }) => conversation).filter((text) => !text.isWellFormed())).toEqual(
      [],
    )
  })
})
