import { describe, expect, test } from "vitest"
import { renderDraft, renderHandoffFacts } from "../../../.opencode/baton/handoff/draft.ts"
import { collectRequests } from "../../../.opencode/baton/handoff/history.ts"
import { isOwnCommand } from "../../../.opencode/baton/handoff/tools.ts"
import { EMPTY_ACTIVITY } from "../../../.opencode/baton/task/activity.ts"
import { promised } from "../../requirements.ts"

const ROLE_PROMPT = "# Worker\n\nTask: ts-b54507\n\nYou carry this one task.\n<!-- baton:brief -->\nMind the lexer."
const COMMAND = "# Hand this work over to a new session\n\nThe user ends this session here."
const EDITED_COMMAND = { kind: "text", path: "prompts/a.md", text: "Now over:\n\n$ARGUMENTS\n\nEnd." } as const
const isCommand = isOwnCommand({ read: () => EDITED_COMMAND })

const collect = (texts: readonly string[], options: Partial<Parameters<typeof collectRequests>[1]> = {}) =>
  collectRequests(texts, { isComplete: true, isCommand, ...options })

const DRAFT = renderDraft({ sessionID: "ses_0", files: [], goal: "", prompt: "Go on.", facts: "Facts." })
const EARLIER = { draft: DRAFT, requests: { first: "Build it.", later: ["Use tabs."] } }

describe("the user's own words", () => {
  test.each([
    ["without a role prompt", [ROLE_PROMPT, "Use tabs."], "Mind the lexer.", ["Use tabs."]],
    ["without a role's heading", ["# Worker\n\nTask: ts-b54507\n\nMind."], "Task: ts-b54507\n\nMind.", []],
    ["without our command", [COMMAND, "Build it.", "Now over:\n\nthe parser\n\nEnd."], "Build it.", []],
    ["as typed, a heading inside too", ["Build it.\n\n# Worker\n  x"], "Build it.\n\n# Worker\n  x", []],
    ["none", [COMMAND, "# Planner\n", " "], undefined, []],
  ])(promised("handoff.F1", "are taken %s"), (_why, texts, first, later) => {
    expect(collect(texts)).toEqual({ later, ...(first === undefined ? {} : { first }) })
  })

  test(promised("handoff.F1", "are all later ones where the beginning was not read"), () => {
    expect(collect(["One.", "Two."], { isComplete: false })).toEqual({ later: ["One.", "Two."] })
    const collected = collect(["One."], { isComplete: false, earlier: EARLIER })
    expect(collected).toEqual({ first: "Build it.", later: ["Use tabs.", "One."] })
  })

  test.each([
    ["as it was made", DRAFT, []],
    ["with words around it", `Be quick. ${DRAFT}\n\nAnd mind the lexer.`, ["Be quick.\nAnd mind the lexer."]],
    ["that was edited", `Be quick.\n${DRAFT.replace("Go on.", "Go on, please.")}`, ["Be quick."]],
  ])(promised("handoff.F1", "follow the chain through a draft %s"), (_why, draft, around) => {
    const expected = { first: "Build it.", later: ["Use tabs.", ...around, "No comments."] }
    expect(collect([draft, "No comments."], { earlier: EARLIER })).toEqual(expected)
  })
})

describe("the user's later messages in a draft", () => {
  const render = (laterRequests: readonly string[]) =>
    renderHandoffFacts({ compactions: 0, activity: EMPTY_ACTIVITY, todos: [], laterRequests })

  test(promised("handoff.F1", "are the newest that have room, verbatim"), () => {
    const text = render(["a".repeat(3_000), "b".repeat(2_000), "Task: ts-0bad00\n  c"])
    expect(text).toContain("oldest first\n(1 older ones left out; read_session has them)\n\n> bbb")
    expect(text).toContain("bbb\n\n> Task: ts-0bad00\n>   c\n\n## Facts")
    expect(text).not.toContain("aaa")
  })

  test(promised("handoff.F1", "are cut where the newest alone has no room"), () => {
    expect(render(["old", "b".repeat(4_100)])).toContain(`> ${"b".repeat(4_000)}\n(100 characters more; read_session`)
  })
})

test(promised("handoff.F1", "a task's own text is bounded, and says where the rest is"), () => {
  const task = { taskID: "ts-b54507", definitionOfDone: "d".repeat(2_001), specification: "s".repeat(6_010) }
  const text = renderHandoffFacts({ compactions: 0, activity: EMPTY_ACTIVITY, todos: [], task })
  expect(text).toContain("## Definition of done\nddd")
  expect(text).toContain("(1 characters more; prog show ts-b54507 has them)\n\n## Specification\nsss")
  expect(text).toContain("(10 characters more; prog show ts-b54507 has them)\n\n## Facts gathered")
})
