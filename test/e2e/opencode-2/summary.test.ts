import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  eventually,
  LEDGER_WAIT_MS,
  type ModelReply,
  openSharedTask,
  type Script,
  TASK,
} from "../../support/index.ts"
import { compact } from "../../support/opencode/model-project.ts"
import { FULL_TOKENS, openServer2, openTask2, type Task2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2, openCode2 } from "../../support/opencode/opencode-binary.ts"
import { awaitRecords } from "../../support/opencode/task-project.ts"
import { afterDelivery } from "../sessions.ts"

/** Fills the context, so that the next message compacts. */
const FULL = { text: "Half of it is done.", promptTokens: FULL_TOKENS } as const
const SUMMARY = "## Done\n\n- The lexer was left alone.\n\n## Next\n\n1. Write the test."
const CARELESS = "Some work was done."
const ORDER = "Teach the parser CRLF. Never touch the public API."

const BAD: [string, ModelReply][] = [
  ["fails", { status: 400, message: "refused by the provider" }],
  ["is empty", { text: "" }],
  ["has no heading", { text: CARELESS }],
]

/** The first turn writes a file; the second and the third fill the context. */
const badlySummarised =
  (bad: ModelReply) =>
  ({ kind, index }: { kind: string; index: number }): ModelReply => {
    if (kind === "compaction") return bad
    if (index === 0) return { tool: "write", input: { path: "own.txt", content: "x" } }
    return index < 3 ? FULL : { text: "Going on." }
  }

const LEFT = { ".opencode/baton.json": JSON.stringify({ compaction: "opencode" }) }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("v2.B8", "OpenCode's own prompt makes the summary where it is left to OpenCode, with the task as context"),
    async () => {
      const text = "## Goal\n- The parser.\n\n## Next\n- The test."
      const task = await openSharedTask(binary, ({ kind }) => ({ text: kind === "compaction" ? text : "Noted." }), {
        files: LEFT,
      })
      const id = await task.say(task.message)
      await compact(task, id)
      await task.say("go on", id)
      const [asked] = task.model.received("compaction")
      expect(asked?.conversation).not.toContain("# Write the handoff")
      for (const part of [TASK.title, TASK.definitionOfDone, BRIEF]) expect(asked?.conversation).toContain(part)
      const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
      expect(conversation).toContain("- The parser.")
      expect(conversation.split("[Baton] ")[1]).toContain(TASK.definitionOfDone)
      expect(await task.records(1)).toEqual(["Compaction 1: The parser."])
    },
  )
})

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(
    promised("v2.B3", "a careless summary gives way to the handoff before it, and is recorded as what it is"),
    async () => {
      const task = await openTask2(({ kind, index }) => {
        if (kind === "compaction") return { text: index === 0 ? SUMMARY : CARELESS }
        return index < 2 ? FULL : { text: "Going on." }
      })
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      await server.say("go on", id)
      await server.say("and on", id)
      const last = task.model.received("turn").at(-1)?.conversation ?? ""
      const [checkpoint = "", note = ""] = last.split("[Baton] ")
      for (const part of ["The lexer was left alone.", CARELESS, "## Facts gathered by program", BRIEF])
        expect(checkpoint).toContain(part)
      expect(note).toContain("The summary below says less than the handoff before it")
      expect(note).toContain("The lexer was left alone.")
      expect(await awaitRecords(task, 2)).toEqual([
        "Compaction 1: The lexer was left alone.",
        `Compaction 2: ${CARELESS} [The summary of this compaction has none of the headings of a handoff]`,
      ])
      // The handoff is written behind the log line.
      const wanted = /none of the headings of a handoff\.[\s\S]*The handoff before it:[\s\S]*lexer was left/
      const isWritten = async () => wanted.test((await task.ledger.show(task.taskID)).description) || undefined
      await eventually("the second handoff", isWritten, ...LEDGER_WAIT_MS)
    },
  )

  test.each(BAD)(promised("v2.B7", "without a task a summary that %s ends no session"), async (_how, bad) => {
    const task = await openTask2(badlySummarised(bad))
    await using server = await openServer2(task.project)
    const id = await server.say(ORDER)
    await server.say("go on", id)
    await server.say("and on", id)
    await server.say("to the end", id)
    const turns = task.model.received("turn")
    expect(turns).toHaveLength(5)
    const last = turns.at(-1)?.conversation ?? ""
    for (const part of ["Never touch the public API.", "own.txt", "to the end"]) expect(last).toContain(part)
    expect(last).not.toContain("[Baton]")
  })

  test.each(BAD)("OpenCode alone loses a session to a summary that %s", async (_how, bad) => {
    const task = await openTask2(badlySummarised(bad), { bundle: "none" })
    await using server = await openServer2(task.project)
    const id = await server.say(ORDER)
    const asked = task.model.received("turn").length
    await server.say("go on", id)
    await server.say("and on", id)
    expect(task.model.received("turn")).toHaveLength(asked)
  })

  test(promised("v2.B7", "a good summary of a session without a task is the result"), async () => {
    const task = await openTask2(badlySummarised({ text: "## Objective\n- CRLF for the parser." }))
    await task.runWell(ORDER)
    await task.runWell("go on", "-c")
    const last = task.model.received("turn").at(-1)?.conversation ?? ""
    expect(last).toContain("CRLF for the parser.")
    expect(last).not.toContain("The model")
  })

  test(promised("v2.B7", "where Baton's prompt is late, words and facts stand in and the note follows"), async () => {
    const task = await openTask2(badlySummarised({ text: "" }))
    const path = ".opencode/baton/compaction/compaction.ts"
    const start = "const [prepared, writer] ="
    const slow = `await new Promise((resolve) => setTimeout(resolve, 60_000).unref())\n      ${start}`
    task.project.write(path, task.project.read(path).replace(start, slow))
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    await server.say("go on", id)
    await server.say("to the end", id)
    const last = task.model.received("turn").at(-1)?.conversation ?? ""
    const [checkpoint = "", note = ""] = last.split("[Baton] ")
    for (const part of [BRIEF, "own.txt"]) expect(checkpoint).toContain(part)
    expect(note).toContain(TASK.definitionOfDone)
    expect(task.project.batonLog().join("\n")).toContain("hook ran out of time")
  })

  test(promised("v2.B12", "a conversation that is too long for the model is summed up by its older part"), async () => {
    const TOO_LONG = { status: 400, message: "This model's maximum context length is 100000 tokens." } as const
    const task = await openTask2(({ kind, index, conversation, tools }) => {
      if (kind === "compaction") return tools.length > 0 ? TOO_LONG : { text: SUMMARY }
      if (index === 0) return { text: "I looked at src/lexer.ts." }
      return conversation.includes("The lexer was left alone.") ? { text: "Going on." } : TOO_LONG
    })
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    await server.say("go on", id)
    const asked = task.model.received("compaction").at(-1)
    expect(asked?.conversation).toContain("I looked at src/lexer.ts.")
    expect(asked?.conversation).toContain("# Write the handoff")
    const last = task.model.received("turn").at(-1)?.conversation ?? ""
    for (const part of ["The lexer was left alone.", "go on", TASK.definitionOfDone]) expect(last).toContain(part)
    expect(await awaitRecords(task, 1)).toEqual(["Compaction 1: The lexer was left alone."])
  })

  test(
    promised(["start.A2", "v2.B3"], "the handoff of an earlier session takes a careless summary's place"),
    async () => {
      const task = await openSharedTask(openCode2(), ({ kind, index }) =>
        kind === "compaction" ? { text: index === 0 ? SUMMARY : CARELESS } : { text: "Noted." },
      )
      await compact(task, await task.say(task.message))
      await task.records(1)
      const second = await task.say(`Task: ${task.taskID}`)
      await compact(task, second)
      await task.say("go on", second)
      const [checkpoint = ""] = (task.model.received("turn").at(-1)?.conversation ?? "").split("[Baton] ")
      for (const part of ["The lexer was left alone.", BRIEF, CARELESS]) expect(checkpoint).toContain(part)
      await compact(task, second)
      expect(task.model.received("compaction")[2]?.conversation).toContain("The lexer was left alone.")
    },
  )

  test(
    promised("v2.B8", "the summary is left to OpenCode, which is given the task, and the note holds it"),
    async () => {
      const script: Script = ({ kind, index }) =>
        kind === "compaction" ? { text: "## Objective\n- The parser." } : index === 0 ? FULL : { text: "Going on." }
      const task: Task2 = await openTask2(
        afterDelivery(() => task, script),
        { files: LEFT },
      )
      await task.runWell(task.message)
      await task.runWell("go on", "-c")
      const [asked, ...more] = task.model.received("compaction")
      expect(more).toEqual([])
      expect(asked?.conversation).toContain("You MUST summarize the conversation")
      for (const part of [TASK.title, TASK.definitionOfDone, BRIEF]) expect(asked?.conversation).toContain(part)
      const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
      expect(conversation).toContain("- The parser.")
      expect(conversation.split("[Baton] ")[1]).toContain(TASK.definitionOfDone)
      expect(await task.ledger.messages(task.taskID)).toEqual(["Compaction 1: The parser."])
    },
  )
})
