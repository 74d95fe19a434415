import type { Part } from "@opencode-ai/sdk"
import { describe, expect, test } from "vitest"
import { collectUserText, extractBrief, parseTask } from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"

describe("the user's text", () => {
  test(promised("task.B1", "is every text part that a person wrote, each from the start of a line"), () => {
    const text = collectUserText([
      { type: "text", text: "Look here" },
      { type: "file" },
      { type: "text", text: "Task: ts-b54507" },
    ])
    expect(text).toBe("Look here\nTask: ts-b54507")
  })

  test(promised("task.B1", "leaves out synthetic, ignored and other parts"), () => {
    const parts = [
      { type: "text", text: "Task: ts-aaaa11", synthetic: true },
      { type: "text", text: "Task: ts-bbbb22", ignored: true },
      { type: "reasoning", text: "Task: ts-cccc33" },
      { type: "tool", text: "Task: ts-dddd44" },
      { type: "text" },
    ]
    expect(parseTask(collectUserText(parts))).toBeUndefined()
    expect(collectUserText([])).toBe("")
  })

  test(promised("task.B1", "is read from OpenCode's own parts"), () => {
    const part: Part = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "text", text: "hello" }
    expect(collectUserText([part])).toBe("hello")
  })
})

const ROLE_PROMPT = '# Worker\n\n```\nTask: ts-b54507\n```\n\nSay "hi".\n\n<!-- baton:brief -->'

/** The form in which OpenCode 1.2.15 and 1.18.33 send an argument that contains a blank. */
const inRunQuotes = (argument: string): string => `"${argument.replaceAll('"', '\\"')}"`

describe("the user's brief", () => {
  test.each([
    ["what follows the role prompt", `${ROLE_PROMPT}\n\nMake it fast.\n\nAnd small.\n`, "Make it fast.\n\nAnd small."],
    ["what precedes it", `Make it fast.\n${ROLE_PROMPT}\n`, "Make it fast."],
    ["both", `Make it fast.\n${ROLE_PROMPT}\nAnd small.`, "Make it fast.\n\nAnd small."],
    ["nothing for the bare role prompt", `${ROLE_PROMPT}\n`, ""],
    ["nothing for the role prompt in the quotes of opencode run", inRunQuotes(ROLE_PROMPT), ""],
    ["what the user typed inside these quotes", inRunQuotes(`${ROLE_PROMPT}\nSay "hi".`), 'Say "hi".'],
    ["what the user typed in these quotes, without a role prompt", `${inRunQuotes('Say "hi".')}\n`, 'Say "hi".'],
    ["what comes on stdin behind the role prompt in these quotes", `${inRunQuotes(ROLE_PROMPT)}\nBe fast.`, "Be fast."],
    ["what stands in these quotes before a role prompt on stdin", `"Make it fast."\n${ROLE_PROMPT}`, '"Make it fast."'],
    ["a text that begins and ends with quotations, verbatim", '"a" is not "b"', '"a" is not "b"'],
    ["the same with CRLF", `${ROLE_PROMPT}\n\nMake it fast.`.replaceAll("\n", "\r\n"), "Make it fast."],
    [
      "a text without a role prompt, verbatim",
      "  Task: ts-b54507\r\nMake it fast. ",
      "  Task: ts-b54507\r\nMake it fast. ",
    ],
    ["a role prompt that has no end, verbatim", "# Worker\nTask: ts-b54507\n", "# Worker\nTask: ts-b54507\n"],
    ["an end that has no role prompt, verbatim", "x\n<!-- baton:brief -->\ny", "x\n<!-- baton:brief -->\ny"],
  ])(promised("compaction.C4", "is %s"), (_what, text, brief) => {
    expect(extractBrief(text)).toBe(brief)
  })
})
