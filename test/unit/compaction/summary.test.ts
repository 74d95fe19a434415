import { describe, expect, test } from "vitest"
import { DEFAULT_HANDOFF_PROMPT } from "../../../.opencode/baton/compaction/context.ts"
import { judgeSummary } from "../../../.opencode/baton/compaction/summary.ts"
import { promised } from "../../requirements.ts"

const BEFORE = `## Done
- The lexer reads CRLF; \`npm test -- lexer\` is green, 14 tests.

## In progress
- src/parser.ts, line 120: the string literal still counts \\n alone.

## Next
- Write the CRLF test in test/parser.test.ts, then mend line 120.

## Constraints and decisions that must persist
- Never touch the public API; the release is frozen until Friday.`

const REFUSALS = [
  "I'm sorry, but I can't help with that.",
  "I’m sorry, but I can’t assist with that request.",
  "I cannot provide a summary of this conversation.",
  "I can't continue with this task. Please start a new conversation.",
  "I'm unable to create a summary, as the conversation is too long.",
  "Unfortunately, I am not able to see the previous messages in this conversation.",
  "As an AI language model, I do not have access to the earlier conversation.",
  "I apologize, but I don't have enough context to write this handoff.",
  "I won't be able to help with this request.",
  "I must decline: this conversation contains content that I am not permitted to summarize.",
  "Es tut mir leid, aber dabei kann ich nicht helfen.",
  "Entschuldigung, ich kann diese Unterhaltung nicht zusammenfassen.",
  "Leider kann ich bei dieser Anfrage nicht weiterhelfen.",
  "Lo siento, pero no puedo ayudar con eso.",
  "Je suis désolé, mais je ne peux pas vous aider avec cette demande.",
  "抱歉，我无法协助完成这个请求。",
  "很抱歉，我不能总结这段对话。",
  "申し訳ありませんが、そのご要望にはお応えできません。",
]

const CHATTY = [
  "Sure, I'll continue with the parser now. Let me first look at the test file.",
  "Got it! I'll go on with line 120 of the parser and then run the tests again.",
  "Of course. Which of the two files should I change first?",
  "OK",
  "The work goes well so far. The lexer was finished and the parser is next.",
]

/** Complete by the prompt that asked for it, or in a form of its own. */
const GOOD = [
  ["its own headings", BEFORE],
  [
    "another prompt's headings",
    `# Summary\n\n**Goal:** teach the parser CRLF without the public API.\n\n# State\n\nThe lexer is done, 14 tests are green. Line 120 of src/parser.ts is open.\n\n# Plan\n\nWrite the test, then mend line 120. The release is frozen until Friday.`,
  ],
  [
    "translated headings",
    `## Erledigt\n- Der Lexer liest CRLF; 14 Tests sind grün.\n\n## In Arbeit\n- src/parser.ts, Zeile 120.\n\n## Als Nächstes\n- Den CRLF-Test schreiben.\n\n## Vorgaben\n- Die öffentliche API bleibt; Stopp bis Freitag.`,
  ],
  [
    "headings in Chinese",
    `## 已完成\n- 词法分析器可以读取 CRLF；14 个测试全部通过。\n\n## 进行中\n- src/parser.ts 第 120 行：字符串字面量仍然只计算 \\n。\n\n## 下一步\n- 在 test/parser.test.ts 中编写 CRLF 测试，然后修复第 120 行。\n\n## 约束\n- 不得修改公共 API。`,
  ],
  [
    "bold headings, as the prompt names them",
    `**Done**\n- The lexer; 14 tests are green.\n\n**In progress**\n- src/parser.ts, line 120.\n\n**Next:**\n- The CRLF test, then line 120.\n\n**Constraints and decisions that must persist**\n- No public API.`,
  ],
  [
    "few words under all headings",
    `## Done\n- Lexer, 14 tests green\n\n## In progress\n- parser.ts:120\n\n## Next\n- CRLF test, then line 120\n\n## Constraints and decisions that must persist\n- API frozen until Friday`,
  ],
  [
    "a sentence that begins like a refusal",
    `## Done\n- I can't reproduce the error of line 12 any more; the lexer is green.\n\n## Next\n- Unfortunately line 120 is open: write the CRLF test first, then mend it. The API is frozen until Friday.`,
  ],
] as const

const NO_HEADINGS = "The summary of this compaction has none of the headings of a handoff"

describe("a summary", () => {
  test.each([...REFUSALS, ...CHATTY])(
    promised("words.A4", "a summary that is none takes no handoff's place, and is remarked without one: %j"),
    (summary) => {
      expect(judgeSummary(summary, BEFORE, DEFAULT_HANDOFF_PROMPT)).toEqual({ saysLess: true, remark: NO_HEADINGS })
      expect(judgeSummary(summary, "", DEFAULT_HANDOFF_PROMPT)).toEqual({ saysLess: false, remark: NO_HEADINGS })
    },
  )

  test.each(GOOD)(
    promised("words.A4", "a summary with %s is as good as the one before, or alone"),
    (_what, summary) => {
      for (const before of [BEFORE, ""])
        expect(judgeSummary(summary, before, DEFAULT_HANDOFF_PROMPT)).toEqual({ saysLess: false })
    },
  )

  test(promised("words.A4", "a summary that is empty says less, also where nothing was before"), () => {
    const verdict = { saysLess: true, remark: "The summary of this compaction was empty" }
    expect(judgeSummary("", BEFORE, DEFAULT_HANDOFF_PROMPT)).toEqual(verdict)
    expect(judgeSummary("", "", DEFAULT_HANDOFF_PROMPT)).toEqual(verdict)
  })

  test(promised("words.A4", "a summary that lost most of the one before says less, whatever headings it has"), () => {
    const before = `${BEFORE}\n${"- A constraint that must persist.\n".repeat(100)}`
    const summary = "## Done\n- All.\n\n## Next\n- None."
    expect(judgeSummary(summary, before, DEFAULT_HANDOFF_PROMPT)).toEqual({
      saysLess: true,
      remark: `The summary of this compaction has 31 characters, the handoff before it ${before.length.toLocaleString("en")}`,
    })
  })

  test(promised("words.A4", "a summary of a prompt without headings may have none, unless it declines"), () => {
    const prose = "The lexer is done and green. Line 120 of the parser is open: write the test first."
    expect(judgeSummary(prose, "", "Sum it up.")).toEqual({ saysLess: false })
    expect(judgeSummary(prose, `${prose} The API is frozen.`, "Sum it up.")).toEqual({ saysLess: false })
    expect(judgeSummary("I'm sorry, I can't help with that, as it is too long.", prose, "Sum it up.")).toEqual({
      saysLess: true,
      remark: NO_HEADINGS,
    })
  })
})
