import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { filesIn, linesOf, reach, reachedFrom } from "../../scripts/support/structure.mjs"
import { promised } from "../requirements.ts"

const linesOfAll = (paths: readonly string[]): number => paths.reduce((sum, path) => sum + linesOf(path), 0)

describe("what OpenCode waits for until it is loaded", () => {
  test(promised("speed.G1", "the five plugin files load at most 26 files and 1,400 lines"), () => {
    const plugins = filesIn(".opencode/plugins")
    expect(plugins).toHaveLength(5)
    const loaded = reachedFrom(plugins)
    expect(loaded).toContain(".opencode/baton/host/guard.ts")
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(26)
    expect(linesOfAll(loaded)).toBeLessThanOrEqual(1_400)
  })

  test(promised("speed.G1", "a first message with a task loads at most 32 files, and no outbox"), () => {
    const loaded = reachedFrom([".opencode/baton/compaction/feature.ts", ".opencode/baton/core/services.ts"])
    expect(loaded).toContain(".opencode/baton/ledger/client.ts")
    expect(loaded).not.toContain(".opencode/baton/ledger/outbox.ts")
    expect(loaded).not.toContain(".opencode/baton/compaction/recorder.ts")
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(32)
  })

  test(promised("speed.G1", "the config hooks load at most 8 files more, and a first message 6"), () => {
    const plugins = filesIn(".opencode/plugins")
    const tools = [".opencode/baton/handoff/tools.ts", ".opencode/baton/learning/tools.ts"]
    const before = reachedFrom(plugins).length
    const withTools = reachedFrom([...plugins, ...tools])
    expect(withTools.length - before, withTools.join("\n")).toBeLessThanOrEqual(8)
    const withRules = reachedFrom([...plugins, ...tools, ".opencode/baton/learning/detect.ts"])
    expect(withRules.length - withTools.length, withRules.join("\n")).toBeLessThanOrEqual(6)
  })
})

describe("the house", () => {
  test.each([
    ["compaction-handoff.ts", 45],
    ["handoff.ts", 50],
    ["session-learning.ts", 50],
  ])("%s reaches at most %i files by its imports, a first use included", (plugin, most) => {
    expect(reach().find((each) => each.plugin === plugin)?.files).toBeLessThanOrEqual(most)
  })
})

/** Of docs/faults.md: no hook keeps OpenCode waiting for longer. */
const MOST_MS = 3_000

test(promised("faults.F2", "no hook has a deadline of more than 3 s"), () => {
  const files = filesIn(".opencode/baton").filter((path) => path.endsWith("/hooks.ts"))
  const deadlines = files.flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(/^const \w*DEADLINE_MS = ([\d_]+)$/gm)].map(([line, value = ""]) => ({
      ...{ path, line, milliseconds: Number(value.replaceAll("_", "")) },
    })),
  )
  expect(deadlines.length).toBeGreaterThan(4)
  expect(deadlines.filter(({ milliseconds }) => !(milliseconds <= MOST_MS))).toEqual([])
})
