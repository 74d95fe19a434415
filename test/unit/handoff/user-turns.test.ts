import { describe, expect, test } from "vitest"
import { createUserTurns } from "../../../.opencode/baton/handoff/hooks.ts"
import { promised } from "../../requirements.ts"

describe("what belongs to one user message", () => {
  test(promised("handoff.A1", "a goal is there for the command's own message, and gone with the next"), () => {
    const turns = createUserTurns()
    turns.onMessage("ses_1")
    turns.onCommand("ses_1", "finish it")
    turns.onMessage("ses_1")
    expect([turns.goalOf("ses_1"), turns.goalOf("ses_2")]).toEqual(["finish it", ""])
    turns.onMessage("ses_1")
    expect(turns.goalOf("ses_1")).toBe("")
  })

  test(promised("handoff.B2", "a second call makes no second handoff, also while the first is at work"), async () => {
    const turns = createUserTurns()
    let made = 0
    const handOver = async () => `handoff ${++made}`
    const [first, second] = await Promise.all([
      turns.oncePerTurn("ses_1", handOver),
      turns.oncePerTurn("ses_1", handOver),
    ])
    expect([first, second]).toEqual(["handoff 1", "This was handed over before, and not a second time.\n\nhandoff 1"])
    turns.onMessage("ses_1")
    expect(await turns.oncePerTurn("ses_1", handOver)).toBe("handoff 2")
  })

  test(promised("handoff.B2", "one that failed may be tried again in the same turn"), async () => {
    const turns = createUserTurns()
    await expect(turns.oncePerTurn("ses_1", () => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk")
    expect(await turns.oncePerTurn("ses_1", async () => "made")).toBe("made")
  })
})
