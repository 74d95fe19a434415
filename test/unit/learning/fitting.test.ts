import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { lookUpBy } from "../../../.opencode/baton/learning/known.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { given, RECALL_PARTS, readProjects, scoreOnce, scoreRecall } from "../../support/recall-sets.ts"

const projects = RECALL_PARTS.flatMap(readProjects)

describe("the labelled requests", () => {
  test.each(RECALL_PARTS)(
    promised("learning.C4", "labelled requests of the %s part: 80 % of what is given fits, half is found"),
    (part) => {
      const { precision, recall, wrong } = scoreRecall(part)
      expect(precision, wrong.join("\n")).toBeGreaterThanOrEqual(0.8)
      expect(recall).toBeGreaterThanOrEqual(0.5)
    },
  )

  test(promised("learning.C4", "the labelled requests have the published figures"), () => {
    const rows = readFileSync(join(REPOSITORY, "docs", "learning.md"), "utf8").split("\n")
    for (const part of RECALL_PARTS) {
      const { requests, precision, recall, bySubject } = scoreRecall(part)
      const figures = [precision, recall, bySubject.precision, bySubject.recall].map((share) => share.toFixed(3))
      expect(rows).toContain(`| ${[part, requests, ...figures].join(" | ")} |`)
    }
  })

  test(
    promised(
      "learning.C4",
      "the labelled requests are at least 200, of projects that are in one part each, with known learnings",
    ),
    () => {
      expect(projects.flatMap(({ requests }) => requests).length).toBeGreaterThanOrEqual(200)
      expect(new Set(projects.map(({ name }) => name)).size).toBe(projects.length)
      for (const { name, learnings, requests } of projects) {
        const keys = learnings.map(({ key }) => key)
        expect(keys, name).toEqual(expect.arrayContaining(requests.flatMap(({ fits }) => [...fits])))
      }
    },
  )

  test(promised("learning.C4", "requests where no test is in sight are not told how test files are written"), () => {
    const remark = projects[0]?.learnings.filter(({ sentence }) => sentence.includes("in test files")) ?? []
    const messages = projects.flatMap(({ requests }) => requests.map(({ message }) => message))
    const [withTests, without] = [true, false].map((is) =>
      messages.filter((text) => /\b(?:test|spec)/i.test(text) === is),
    )
    expect(withTests?.filter((message) => given(remark, message).length > 0).length).toBeGreaterThan(10)
    expect(without?.length).toBeGreaterThan(190)
    expect(without?.filter((message) => given(remark, message).length > 0)).toEqual([])
  })
})

describe("a correction", () => {
  test.each(RECALL_PARTS)(
    promised("learning.A4", "a correction of the %s part told at once is a rule, nine times of ten"),
    (part) => {
      const { precision, recall } = scoreOnce(part)
      expect(precision).toBeGreaterThanOrEqual(0.9)
      expect(recall).toBeGreaterThanOrEqual(0.9)
    },
  )

  test.each([
    ["that's wrong, the tilde has to stay", "moment"],
    ["Please don't touch package.json again.", "moment"],
    ["No, use tabs instead of spaces in the formatter.", "subject"],
    ["Never commit straight to main.", "changes"],
    ["No, always use tabs instead of spaces here.", "changes"],
    ["Keep your answers short.", "answers"],
  ])(promised("learning.A4", "the correction %s reaches: %s"), (sentence, reach) => {
    expect(lookUpBy(sentence, "correction").reach).toBe(reach)
  })
})
