import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { LEFT_OUT_ON_2, REASONS } from "../left-out-on-2.ts"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const ROOMS = ["compaction", "learning", "task", "trust"]

const files = ROOMS.flatMap((room) => sourceFiles(`test/e2e/${room}`, ".test.ts")).map((path) => ({
  path,
  text: readFileSync(join(REPOSITORY, path), "utf8"),
}))

const hasLine2 = (block: string): boolean => /^[^\n]*(?:ALL_LINES|linesOf\(|NEWEST_LINES|KILLED)/.test(block)

/** Sentences of a block's tests: how each is added, and what it promises. */
const testsIn = (block: string) =>
  [
    ...block.matchAll(/\b(\w+)(?:\.each\([^\n]*\))?\(\s*promised\(\s*(?:\[[^\]]*\]|"[^"]*"),\s*"((?:[^"\\]|\\.)*)"/g),
  ].map(([, add = "", sentence = ""]) => ({ add, sentence: sentence.replaceAll('\\"', '"') }))

const blocks = files.flatMap(({ path, text }) =>
  text
    .split(/^(?= *describe\b)/m)
    .slice(1)
    .map((block) => ({ path, block })),
)

describe("what runs on OpenCode 2", () => {
  test(
    promised(
      "v2.C1",
      "each test of the rooms that run on OpenCode 2 runs there, or is in the list of what is left out",
    ),
    () => {
      const missing = blocks.flatMap(({ path, block }) =>
        hasLine2(block)
          ? []
          : testsIn(block).flatMap(({ sentence }) => (sentence in LEFT_OUT_ON_2 ? [] : `${path}: ${sentence}`)),
      )
      expect(blocks.flatMap(({ block }) => testsIn(block)).length).toBeGreaterThan(50)
      expect(missing).toEqual([])
    },
  )

  test(
    promised(
      "v2.C1",
      "the list of what is left out on OpenCode 2 has no test that runs there, and no reason without a test",
    ),
    () => {
      const leftOut = blocks.flatMap(({ block }) =>
        testsIn(block).flatMap(({ add, sentence }) => (hasLine2(block) && add === "test" ? [] : sentence)),
      )
      expect(Object.keys(LEFT_OUT_ON_2).filter((sentence) => !leftOut.includes(sentence))).toEqual([])
      const given = new Set<string>(Object.values(LEFT_OUT_ON_2))
      const partly = (reason: string) =>
        files.some(
          ({ text }) =>
            text.includes(`offers(binary, "${reason}")`) || text.includes(`offers(task.binary, "${reason}")`),
        )
      expect(Object.keys(REASONS).filter((reason) => !given.has(reason) && !partly(reason))).toEqual([])
    },
  )
})
