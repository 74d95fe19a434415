import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { ROLES } from "../../../.opencode/baton/task/parse.ts"
import { builtInProtocol, extractProtocol, fillTaskID } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"

const OPEN = "<!-- baton:protocol -->"
const CLOSE = "<!-- /baton:protocol -->"
const extract = (...lines: string[]) => extractProtocol(lines.join("\n"), { taskID: "ts-b54507" })

describe("the protocol section", () => {
  test(promised("compaction.C4", "is what stands between the markers, trimmed, with the task's id filled in"), () => {
    expect(extract("# Worker", OPEN, "", "log {{task_id}}", "", "twice: {{ task_id }}", "", CLOSE, "rest")).toBe(
      "log ts-b54507\n\ntwice: ts-b54507",
    )
  })

  test.each([
    ["both are missing", ["text"]],
    ["the opening one is missing", ["text", CLOSE]],
    ["the closing one is missing", [OPEN, "text"]],
    ["they stand in the wrong order", [CLOSE, "text", OPEN]],
    ["nothing stands between them", [OPEN, "  ", "", CLOSE]],
    ["they stand within a sentence", [`see ${OPEN} and`, "text", `see ${CLOSE}`]],
    ["they stand in code spans", [`\`${OPEN}\``, "text", `\`${CLOSE}\``]],
  ])(promised("compaction.C4", "is not there when %s"), (_why, lines) => {
    expect(extract(...lines)).toBeUndefined()
  })

  test(promised("compaction.C4", "begins at the last opening marker before the first closing one"), () => {
    expect(extract(OPEN, "lost", OPEN, "kept", CLOSE, OPEN, "second", CLOSE)).toBe("kept")
  })

  test(promised("compaction.C4", "accepts CRLF and markers with other blanks"), () => {
    const markdown = "x\r\n  <!--baton:protocol-->\r\na\r\nb\r\n<!--  /baton:protocol  -->  \r\n"
    expect(extractProtocol(markdown, { taskID: "ts-b54507" })).toBe("a\nb")
  })

  test(promised("compaction.C4", "comes back from any document that holds it"), () => {
    const line = fc.string({ unit: "grapheme" }).map((text) => `.${text.replace(/[\r\n{}]/g, " ")}.`)
    const lines = fc.array(line, { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(lines, lines, lines, (before, section, after) => {
        expect(extract(...before, OPEN, ...section, CLOSE, ...after)).toBe(section.join("\n"))
      }),
    )
  })

  test(promised("compaction.C4", "takes the id as it is, not as a replacement pattern"), () => {
    expect(fillTaskID("a {{task_id}} b {{other}}", "$& $1 $$")).toBe("a $& $1 $$ b {{other}}")
  })
})

test.each(ROLES)(promised("compaction.C4", "has a short built-in text for a %s whose prompt has none"), (role) => {
  const text = builtInProtocol(role, { taskID: "ts-b54507" })
  expect(text).toContain('prog log ts-b54507 "Blocked:')
  expect(text).toMatch(/States: orient.*\n.*Checkpoint[\s\S]*Stuck[\s\S]*After a compaction/)
  expect(text).not.toContain("{{")
  expect(text.length).toBeLessThan(700)
})
