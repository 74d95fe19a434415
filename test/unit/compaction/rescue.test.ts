import { expect, test } from "vitest"
import { planWithoutTask, renderRescue } from "../../../.opencode/baton/compaction/rescue.ts"
import { judgeBeside } from "../../../.opencode/baton/compaction/summary.ts"
import { handoffBody, renderProgressSection } from "../../../.opencode/baton/compaction/texts.ts"
import { EMPTY_ACTIVITY, type Facts } from "../../../.opencode/baton/task/activity.ts"
import { promised } from "../../requirements.ts"
import { taskWords, temporaryFolder, userSays } from "../../support/unit.ts"

const FACTS: Facts = { compactions: 2, activity: EMPTY_ACTIVITY, todos: [] }
const SAID = taskWords("Never touch the lexer.")
const count = (text: string, part: string): number => text.split(part).length - 1
const REFUSAL = "I'm sorry, but I can't help with that."

test(
  promised("v2.B3", "what stands in for a summary has facts and the user's words once, and the handoff before it"),
  () => {
    const work = { at: new Date(0), said: SAID, facts: FACTS, lastAnswer: "CRLF is next." }
    const earlier = handoffBody(renderProgressSection("ses_1", work))
    const rescue = renderRescue({ answer: "Some work.", said: SAID, facts: FACTS, earlier })
    for (const part of ["CRLF is next.", "Never touch the lexer.", "## Facts gathered by program", "Some work."])
      expect(count(rescue, part), part).toBe(1)
    expect(renderRescue({ answer: "", said: SAID, facts: FACTS, earlier: undefined })).toContain("wrote no summary")
  },
)

test(promised("v2.B3", "a summary is compared with the last handoff, and with no work in progress"), () => {
  const text = "## Done\n- The lexer.\n\n## Next\n- The parser."
  const judged = (last: { summaryID: string; text: string } | undefined, summaryID?: string) =>
    judgeBeside(last, { summary: "Some work.", ...(summaryID === undefined ? {} : { summaryID }) }, "## Done").saysLess
  expect(judged({ summaryID: "msg_1", text })).toBe(true)
  expect(judged({ summaryID: "msg_1", text }, "msg_2")).toBe(true)
  expect([judged({ summaryID: "msg_1", text }, "msg_1"), judged({ summaryID: "", text }), judged(undefined)]).toEqual([
    false,
    false,
    false,
  ])
})

const plan = (summary: string, isUsers = true) => {
  const messages = [userSays("Never touch the lexer."), userSays("Added by a plugin", "msg_2", { synthetic: true })]
  return planWithoutTask(temporaryFolder(), { messages, summary, isUsers })
}

test.each([
  ["", 0],
  ["Some work was done.", 1],
  [REFUSAL, 0],
])(
  promised("v2.B7", "%j is no summary: the user's words, the facts and the one before it stand in"),
  async (answer, isShown) => {
    const rescued = (await plan("## Objective\n- CRLF.")).rescue(answer) ?? ""
    for (const part of ["Never touch the lexer.", "## Facts gathered by program", "- CRLF."])
      expect(count(rescued, part), part).toBe(1)
    if (answer !== "") expect(count(rescued, answer)).toBe(isShown)
    expect(rescued).not.toContain("Added by a plugin")
  },
)

test(promised("v2.B7", "a summary with headings is good, by the prompt's names or others"), async () => {
  const { rescue, prompt } = await plan("")
  expect(rescue("## Objective\n- CRLF.")).toBeUndefined()
  expect(rescue("## Ziel\n- CRLF.\n\n## Als Nächstes\n- Testen.")).toBeUndefined()
  expect(prompt).toMatch(/^# Write the handoff\n/)
})

test(promised("v2.B7", "an agent's order to its subagent is not called the user's words"), async () => {
  const rescued = (await plan("", false)).rescue("") ?? ""
  expect(rescued).toContain("Never touch the lexer.")
  expect(rescued).not.toContain("The user's own words")
})

test(promised("v2.B7", "a chain of rescued summaries does not grow, and keeps its beginning"), async () => {
  let summary = `The first order.\n${"x".repeat(20_000)}`
  for (let round = 0; round < 10; round++) summary = (await plan(summary)).rescue("") ?? ""
  expect(summary.length).toBeLessThan(20_000)
  expect(summary).toContain("Never touch the lexer.")
})
