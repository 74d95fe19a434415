import { describe, expect, test } from "vitest"
import { parseAgentEvent } from "../../../scripts/demonstration/agent-run.ts"
import {
  answerTurn,
  FINISHED,
  isCrashPoint,
  LOST,
  SUMMARIES,
  UNTOLD,
} from "../../../scripts/demonstration/scripted-agent.ts"
import { CONSTRAINT, pastedMessage, TASK, workerMessage } from "../../../scripts/demonstration/slug-project.ts"
import { promised } from "../../requirements.ts"

const ID = "ts-1a2b3c"
const COMMANDS = ["show", "log", "done"].map((command) => `prog ${command} ${ID}`)
/** A request with everything that the work needs. */
const TOLD = `[user] Task: ${ID}\n${[TASK.specification, TASK.definitionOfDone, ...COMMANDS].join("\n")}\n`
const COMPACTED = "[user] What did we do so far?\n"
const CODE = "export function slugify(title) {}\n"

const command = (seen: string): unknown => {
  const reply = answerTurn(seen)
  return "tool" in reply ? (reply.input.command ?? `${reply.tool} ${String(reply.input.filePath)}`) : reply
}

describe("the demo's scripted agent", () => {
  test(promised(["install.E3", "start.A6"], "knows its task only from the request"), () => {
    expect(answerTurn(`${COMPACTED}[assistant] Some work was done and it went fine.`)).toEqual({ text: LOST })
    expect(command(TOLD)).toBe("read slugify.js")
    expect(command(`[user] ${pastedMessage(ID)}`)).toBe("read slugify.js")
    expect(command(COMPACTED + TOLD)).toBe(`prog show ${ID} && cat slugify.js`)
  })

  test(promised("start.A6", "does not act on a task's name alone, nor when any part of the task is missing"), () => {
    expect(answerTurn(`[user] ${workerMessage(ID)}`)).toEqual({ text: UNTOLD })
    for (const part of [TASK.specification, TASK.definitionOfDone, ...COMMANDS]) {
      expect(answerTurn(TOLD.replace(part, "")), part).toEqual({ text: UNTOLD })
    }
  })

  test(promised(["install.E3", "start.A6"], "goes on where the log ends, not where a summary leaves it"), () => {
    const next = (log: string) => command(`${TOLD}${CODE}${log}`)
    expect(next("")).toBe("node --test")
    expect(next("# fail 4")).toMatch(`prog log ${ID} 'Loop: node --test`)
    expect(next("Loop: node --test, 4 of 5 fail")).toBe("edit slugify.js")
    expect(next("Tried: normalize NFD alone")).toBe("edit slugify.js")
    expect(next('Tried: normalize NFD alone; replaceAll("ß"')).toBe("node --test")
    expect(next("Checkpoint: node --test passes")).toMatch(/^node --test && prog log .*Verified/)
    const done = "Verified: the definition of done holds"
    expect(next(done)).toBe(`prog done ${ID}`)
    expect(answerTurn(`${TOLD}${CODE}${done}\nCompleted ${ID}`)).toEqual({ text: FINISHED })
  })

  test(promised("start.A6", "is killed when it has been compacted and the work is about to be verified"), () => {
    const at = (conversation: string, kind: "turn" | "compaction" = "turn") => isCrashPoint({ kind, conversation })
    const checkpoint = `${TOLD}${CODE}Checkpoint: node --test passes, 5 of 5`
    expect(at(COMPACTED + checkpoint)).toBe(true)
    expect(at(COMPACTED + checkpoint, "compaction")).toBe(false)
    expect(at(COMPACTED + TOLD)).toBe(false)
    expect(at(checkpoint), "the new session is not killed again").toBe(false)
  })

  test(promised("install.E3", "summarises what it is shown and no more, then carelessly, emptily, in Spanish"), () => {
    const write = (seen: string) => SUMMARIES.map((summary) => summary.write(seen))
    const [full = "", ...careless] = write(`${pastedMessage(ID)} Loop: node --test, 4 of 5 fail'`)
    const facts = [ID, CONSTRAINT, TASK.specification, TASK.definitionOfDone, ...COMMANDS]
    for (const fact of [...facts, "- Loop: node --test, 4 of 5 fail\n"]) expect(full).toContain(fact)
    expect(command(`${COMPACTED}${full}`), "it is enough to go on with").toContain(`prog show ${ID}`)
    expect(write("hello")[0]).not.toMatch(/ts-|frozen/)
    expect(careless.filter((text) => text.includes(ID))).toEqual([])
    expect(careless).toContain("")
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
    expect(bash(text, metadata)).toMatchObject({ kind: "tool", text: label })
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
