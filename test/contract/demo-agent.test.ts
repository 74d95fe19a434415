import { describe, expect, test } from "vitest"
import { parseAgentEvent } from "../../scripts/demonstration/agent-events.ts"
import { answerTurn, FINISHED, LOST, SUMMARIES, scriptedAgent } from "../../scripts/demonstration/scripted-agent.ts"
import { CONSTRAINT, TASK, workerMessage } from "../../scripts/demonstration/slug-project.ts"
import { promised } from "../requirements.ts"

const ID = "ts-1a2b3c"
const SHOWN = `[tool] ID:          ${ID}\nTitle:       ${TASK.title}\n`

const command = (seen: string): unknown => {
  const reply = answerTurn(seen)
  return "tool" in reply ? (reply.input.command ?? `${reply.tool} ${String(reply.input.filePath)}`) : reply
}

describe("the demo's scripted agent", () => {
  test(promised("install.E3", "knows its task only from the request"), () => {
    expect(answerTurn("[user] What did we do so far?\n\n[assistant] Some work was done and it went fine.")).toEqual({
      text: LOST,
    })
    expect(command(`[user] ${workerMessage(ID)}`)).toBe(`prog show ${ID}`)
    expect(command(`[user] What did we do so far?\n- Task: ${ID}`)).toBe(`prog show ${ID} && cat slugify.js`)
  })

  test(promised("install.E3", "goes on where the ledger's log ends, not where a summary leaves it"), () => {
    const next = (log: string) => command(`[user] Task: ${ID}\n\n${SHOWN}${log}`)
    expect(next("")).toBe(`prog start ${ID} && prog log ${ID} 'State: orient'`)
    expect(next("State: orient\nLoop: node --test, 4 of 5 fail")).toBe("edit slugify.js")
    expect(next("State: orient\nLoop: node --test\nTried: normalize NFD alone\nCheckpoint: node --test passes")).toBe(
      "edit slugify.js",
    )
    const done =
      'State: orient\nLoop: node --test\nTried: normalize NFD alone; replaceAll("ß"\nCheckpoint: node --test passes\nVerified: the definition of done holds'
    expect(next(done)).toBe(`prog done ${ID}`)
    expect(answerTurn(`[user] Task: ${ID}\n\n${SHOWN}${done}\nCompleted ${ID}`)).toEqual({ text: FINISHED })
  })

  test(promised("install.E3", "summarises faithfully what it is shown, and nothing it is not"), () => {
    const faithful = SUMMARIES[0]
    const full = faithful?.write(`${workerMessage(ID)}${TASK.definitionOfDone} Loop: node --test, 4 of 5 fail'`)
    for (const fact of [ID, CONSTRAINT, TASK.definitionOfDone, "- Loop: node --test, 4 of 5 fail\n"]) {
      expect(full).toContain(fact)
    }
    const blank = faithful?.write("hello")
    expect(blank).not.toContain(CONSTRAINT)
    expect(blank).not.toContain("ts-")
  })

  test(promised("install.E3", "summarises in turn faithfully, carelessly, emptily and in another language"), () => {
    const seen = workerMessage(ID)
    const texts = SUMMARIES.map(({ write }) => write(seen))
    expect(texts.map((text) => text.includes(ID))).toEqual([true, false, false, false, true])
    expect(texts[2]).toBe("")
    expect(new Set(texts).size).toBe(4)
  })

  test(promised("install.E3", "ends when it goes in circles"), async () => {
    const body = { model: "model", messages: [] }
    const shown = { messages: [], tools: [], system: "", conversation: workerMessage(ID) }
    const request = { kind: "turn", body, ...shown } as const
    expect(await scriptedAgent({ ...request, index: 3 })).toHaveProperty("tool")
    expect(await scriptedAgent({ ...request, index: 60 })).toHaveProperty("text")
  })
})

describe("the agent's events", () => {
  const event = (type: string, part: unknown) => parseAgentEvent(JSON.stringify({ type, sessionID: "ses_1", part }))
  const bash = (command: string, metadata: unknown) =>
    event("tool_use", { tool: "bash", state: { status: "completed", input: { command }, metadata } })

  test.each([
    [`prog start ${ID} && prog log ${ID} 'State: orient'`, { exit: 0 }, "prog start, prog log"],
    ["node --test", { exit: 1, output: "# tests 5\n# fail 4" }, "node --test ✗ 4 of 5 fail"],
    ["node --test && echo ok", { exit: 0, output: "ℹ tests 5\nℹ fail 0" }, "node --test ✓ 5 pass, echo ok"],
    ["false", { exit: 3 }, "false ✗ exit 3"],
  ])(promised("install.E3", "%s reads short, with its outcome"), (text, metadata, label) => {
    expect(bash(text, metadata)).toMatchObject({ kind: "tool", label })
  })

  test(promised("install.E3", "a compaction, a text and an error are told apart, noise is left aside"), () => {
    expect(event("text", { text: "Continue", metadata: { compaction_continue: true } })?.kind).toBe("compacted")
    expect(event("text", { text: "Finished." })).toEqual({ kind: "text", sessionID: "ses_1", text: "Finished." })
    const failed = { type: "error", sessionID: "ses_1", error: { name: "ApiError", data: { message: "no key" } } }
    expect(parseAgentEvent(JSON.stringify(failed))).toMatchObject({ kind: "error", text: "no key" })
    for (const line of ["", "Performing one time migration", '{"half', '{"type":"step_start"}']) {
      expect(parseAgentEvent(line)).toBeUndefined()
    }
  })
})
