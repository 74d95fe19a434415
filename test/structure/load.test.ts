import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { reachedFrom, sourceFiles } from "../support/files/source-files.ts"

describe("what OpenCode waits for until it is loaded", () => {
  test(promised("speed.G1", "the six plugin files load at most 20 files"), () => {
    const plugins = sourceFiles(".opencode/plugins")
    expect(plugins).toHaveLength(6)
    const loaded = reachedFrom(plugins)
    expect(loaded).toContain(".opencode/baton/host/guard.ts")
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(20)
  })

  test(promised("speed.G1", "a task's first message loads 40 files at most, none of them for what comes later"), () => {
    const loaded = reachedFrom([".opencode/baton/compaction/feature.ts", ".opencode/baton/core/services.ts"])
    expect(loaded).toContain(".opencode/baton/ledger/client.ts")
    expect(loaded).not.toContain(".opencode/baton/ledger/outbox.ts")
    expect(loaded).not.toContain(".opencode/baton/compaction/recorder.ts")
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(40)
  })

  test(promised("speed.G1", "an event loads 16 files at most, none of the task, the ledger or c2c"), () => {
    const loaded = reachedFrom([".opencode/baton/live-state/feature.ts", ".opencode/baton/host/state.ts"])
    expect(loaded).toContain(".opencode/baton/live-state/statefile.ts")
    expect(loaded.filter((path) => /\/(?:task|ledger|c2c)\/|stream-writer|services/.test(path))).toEqual([])
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(16)
  })

  test(promised("speed.G1", "the config hooks load 13 files more at most, a first message 5"), () => {
    const plugins = sourceFiles(".opencode/plugins")
    const tools = ["compaction/task-tools", "handoff/tools", "learning/tools", "pass-over/tools"]
    const files = [...tools, "host/settings", "write-guard/guard"].map((path) => `.opencode/baton/${path}.ts`)
    const before = reachedFrom(plugins)
    const withConfig = reachedFrom([...plugins, ...files])
    expect(withConfig.length - before.length, withConfig.join("\n")).toBeLessThanOrEqual(13)
    for (const later of ["task/parse", "task/activity", "host/state-mark"])
      expect(withConfig).not.toContain(`.opencode/baton/${later}.ts`)
    const withRules = reachedFrom([...plugins, ...files, ".opencode/baton/learning/detect.ts"])
    expect(withRules.length - withConfig.length, withRules.join("\n")).toBeLessThanOrEqual(5)
  })
})

test.each([
  ["compaction-handoff.ts", 61],
  ["handoff.ts", 57],
  ["session-learning.ts", 49],
  ["pass-over.ts", 81],
])("%s reaches at most %i files by its imports, a first use included", (plugin, most) => {
  expect(reachedFrom([`.opencode/plugins/${plugin}`], { dynamic: true }).length).toBeLessThanOrEqual(most)
})
