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
import { inForm } from "../../support/model/retention-2.ts"
import { compactsOnDemand, lastTurn } from "../sessions.ts"

/** Invented, and put together here so that no file of the repository holds one. */
const SECRETS = [`sk-live-${"0123456789abcdef"}`, `AKIA${"A2B3C4D5E6F7G2H3"}`]
const FAILING = `curl -H "Authorization: Bearer ${SECRETS[0]}" "http://127.0.0.1:9/?api_key=${SECRETS[1]}"; exit 22`
const SHOWN = 'curl -H "Authorization: Bearer [redacted]" "http://127.0.0.1:9/?api_key=[redacted]"; exit 22'

/** The prompt of a compaction, without the conversation that the newest OpenCode puts behind it as it was. */
const promptOf = (request: ModelRequest): string =>
  newestWords(request).split("The following is the conversation history:")[0] ?? ""

/** The text of each file in the project's state. */
const stateTexts = ({ project }: SharedTask): string[] => {
  const state = join(project.directory, ".opencode/state")
  const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true
  const paths = listTree(state).map((path) => join(state, path))
  return paths.filter(isFile).map((path) => readFileSync(path, "utf8"))
}

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
    const files = stateTexts(task)
    expect(files.some((text) => text.includes("[redacted]"))).toBe(true)
    const all = [...prompts, lastTurn(task), description, JSON.stringify(logs), ...files]
    for (const secret of SECRETS) expect(all.filter((text) => text.includes(secret))).toEqual([])
  })

  test(
    promised("words.A5c", "a key that the user types reaches the model, and no file, record or later note"),
    async () => {
      const summary = "- The client has the key"
      const task = await openSharedTask(binary, (request) =>
        request.kind === "compaction"
          ? { text: inForm(request, `${summary} ${SECRETS[0]}.`) }
          : compactsOnDemand(request),
      )
      task.project.write(".opencode/baton.json", JSON.stringify({ autoTask: true }))
      const session = await task.say(`Build the client with the key ${SECRETS[0]}, and test it.`)
      expect(lastTurn(task)).toContain(SECRETS[0])
      const tasks: { id: string; title: string }[] = JSON.parse(await task.ledger.prog("list", "--json"))
      const { id = "" } = tasks.find(({ title }) => title.includes("client")) ?? {}
      await task.say(`Rather with ${SECRETS[1]}.\nCOMPACT-NOW`, session)
      await task.records(1, id)
      await task.say("Go on.", session)
      const { description } = await task.ledger.show(id)
      for (const text of [description, lastTurn(task)]) {
        expect(text).toContain("with the key [redacted], and test it.")
        expect(text).toContain("Rather with [redacted].")
      }
      expect(description).toContain(`${summary} [redacted].`)
      const all = [await task.ledger.prog("show", id), ...stateTexts(task)]
      for (const secret of SECRETS) expect(all.filter((text) => text.includes(secret))).toEqual([])
    },
  )

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
