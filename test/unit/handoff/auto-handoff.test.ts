import { describe, expect, test } from "vitest"
import { findFilled } from "../../../.opencode/baton/handoff/auto-handoff.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, textPart, userMessage } from "../../support/opencode/stored-messages.ts"

const LIMITS = { providerID: "p", modelID: "m", context: 200_000, output: 64_000 }

const answer = (id: string, input: number, extra: Parameters<typeof assistantMessage>[1] = {}) => {
  const tokens = { input, output: 1_000, reasoning: 0, cache: { read: 9_000, write: 0 } }
  return assistantMessage("An answer.", { providerID: "p", modelID: "m", tokens, ...extra }, { id })
}

const USER = userMessage([textPart("Begin.")], "msg_0")
const find = (messages: Parameters<typeof findFilled>[0], at = 0.8, models = [LIMITS]) =>
  findFilled(messages, models, at)

describe("the answer that filled the context", () => {
  test(promised("handoff.F3", "is the first that reaches the share, whatever follows"), () => {
    const messages = [USER, answer("msg_1", 149_500), answer("msg_2", 150_000), answer("msg_3", 190_000)]
    expect(find(messages)).toEqual({ index: 2, share: 0.8 })
    expect(find(messages.slice(0, 2))).toBeUndefined()
    expect(find(messages, 0.5)).toMatchObject({ index: 1 })
  })

  test(promised("handoff.F3", "comes before OpenCode compacts, also where an answer may be long"), () => {
    // It compacts at 168,000: the share of 0.95 is never reached.
    expect(find([USER, answer("msg_1", 149_500)], 0.95)).toBeUndefined()
    expect(find([USER, answer("msg_1", 149_600)], 0.95)).toMatchObject({ index: 1 })
  })

  test(promised("handoff.F3", "comes before OpenCode compacts, where a model's input is limited"), () => {
    const models = [{ ...LIMITS, input: 150_000 }]
    expect(find([USER, answer("msg_1", 113_400)], 0.8, models)).toBeUndefined()
    expect(find([USER, answer("msg_1", 113_600)], 0.8, models)).toMatchObject({ index: 1 })
  })

  test(promised("handoff.F3", "is none of those before the newest compaction"), () => {
    const summary = answer("msg_5", 190_000, { summary: true, finish: "stop" })
    expect(find([USER, summary, answer("msg_3", 160_000), answer("msg_6", 20_000)])).toBeUndefined()
    expect(find([USER, summary, answer("msg_3", 160_000), answer("msg_6", 160_000)])).toMatchObject({ index: 3 })
  })

  test(promised("handoff.F3", "is not known where OpenCode does not know the model's limit"), () => {
    expect(find([USER, answer("msg_1", 190_000)], 0.8, [])).toBeUndefined()
    const { context: _, ...unknown } = LIMITS
    expect(findFilled([USER, answer("msg_1", 190_000)], [unknown], 0.8)).toBeUndefined()
  })
})
