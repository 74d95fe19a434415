import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BRIEF, eventually, LEDGER_WAIT_MS, type ModelReply, type Script, TASK } from "../../support/index.ts"
import { FULL_TOKENS, openServer2, openTask2, type Task2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"
import { awaitRecords } from "../../support/opencode/task-project.ts"
import { afterDelivery } from "../sessions.ts"

/** Answers each turn; the first fills the context, so that the next message compacts. */
const FULL = { text: "Half of it is done.", promptTokens: FULL_TOKENS } as const

const SUMMARY = "## Done\n\n- The lexer was left alone.\n\n## Next\n\n1. Write the test."

/** The ledger has the whole record: log line and handoff. */
const recordsOf = (task: Task2) => task.ledger.messages(task.taskID)

const expectKnown = (task: Task2, conversation: string): void => {
  for (const part of [task.taskID, "Role: worker", TASK.title, TASK.definitionOfDone, BRIEF])
    expect(conversation).toContain(part)
}

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(
    promised("v2.B2", "Baton's prompt makes the summary, it is recorded once, and later requests hold the note"),
    async () => {
      const script: Script = ({ kind, index }) =>
        kind === "compaction" ? { text: SUMMARY } : index === 0 ? FULL : { text: "Going on." }
      const task: Task2 = await openTask2(afterDelivery(() => task, script))
      await task.runWell(task.message)
      await task.runWell("go on", "-c")
      await task.runWell("and on", "-c")
      const [asked, ...more] = task.model.received("compaction")
      expect(more).toEqual([])
      expect(asked?.conversation).toContain("# Write the handoff")
      expect(asked?.conversation).toContain(TASK.specification)
      const [, second, third] = task.model.received("turn")
      for (const turn of [second, third]) {
        expectKnown(task, turn?.conversation ?? "")
        expect(turn?.conversation).toContain("The lexer was left alone.")
        expect(turn?.conversation).toContain("compaction 1")
      }
      expect(await recordsOf(task)).toEqual(["Compaction 1: The lexer was left alone."])
      const { description } = await task.ledger.show(task.taskID)
      expect(description.startsWith(TASK.specification)).toBe(true)
      expect(description.match(/Handoff after compaction \d/g)).toEqual(["Handoff after compaction 1"])
    },
  )

  test(
    promised("v2.B2", "each compaction by hand is recorded once, before any turn, and carries on the one before it"),
    async () => {
      const task = await openTask2(({ kind, index }) =>
        kind === "compaction" ? { text: `${SUMMARY}\n2. Summary ${index + 1}.` } : { text: "Going on." },
      )
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      for (let row = 1; row <= 2; row++) {
        await server.api("POST", `/session/${id}/compact`, {})
        const written = async () => ((await recordsOf(task)).length === row ? true : undefined)
        await eventually(`record ${row}`, written, ...LEDGER_WAIT_MS)
        // Without it there is nothing to compact.
        await server.say("go on", id)
      }
      expect(task.model.received("compaction").at(-1)?.conversation).toContain("Summary 1.")
      expectKnown(task, task.model.received("turn").at(-1)?.conversation ?? "")
      expect(await recordsOf(task)).toEqual([1, 2].map((row) => `Compaction ${row}: The lexer was left alone.`))
    },
  )

  test(
    promised(
      ["v2.B1", "v2.B2"],
      "a compaction that had nothing to sum up takes neither note nor task out of later requests",
    ),
    async () => {
      const task = await openTask2(({ kind }) => (kind === "compaction" ? { text: SUMMARY } : { text: "Going on." }))
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      const compacts = () => server.api("POST", `/session/${id}/compact`, {})
      const settled = () => server.api("POST", `/experimental/session/${id}/wait`)
      await compacts()
      await settled()
      await server.say("go on", id)
      const noted = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(noted).toContain("(compaction 1 of this session)")
      await server.say("and on", id)
      await compacts()
      await compacts()
      await settled()
      await server.say("go on again", id)
      const last = task.model.received("turn").at(-1)?.conversation ?? ""
      expectKnown(task, last)
      expect(last).toContain("of this session)")
    },
  )

  const REFUSAL = "I'm sorry, but I can't help with that."
  const NOTHING = /^Compaction 2: the summary was empty; known by program/
  const BAD: [string, ModelReply, RegExp][] = [
    ["fails", { status: 400, message: "refused by the provider" }, NOTHING],
    ["is empty", { text: "" }, NOTHING],
    ["refuses", { text: REFUSAL }, /^Compaction 2: I'm sorry, .* \[The summary of this compaction has none/],
  ]
  test.each(BAD)(promised("v2.B3", "a summary that %s is rescued, and the session goes on"), async (_how, bad, row) => {
    const task = await openTask2(({ kind, index }) => {
      if (kind === "compaction") return index === 0 ? { text: SUMMARY } : bad
      return index < 2 ? FULL : { text: "Going on." }
    })
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    await server.say("go on", id)
    await server.say("and on", id)
    await server.say("to the end", id)
    const turns = task.model.received("turn")
    expect(turns).toHaveLength(4)
    const last = turns.at(-1)?.conversation ?? ""
    expectKnown(task, last)
    expect(last).toContain("The lexer was left alone.")
    expect(last).toContain("to the end")
    expect(await awaitRecords(task, 2)).toEqual(["Compaction 1: The lexer was left alone.", expect.stringMatching(row)])
  })
})
