import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { reachedFrom, sourceFiles } from "../support/files/source-files.ts"

/** Files of the bundle that these load at once, without what comes at a first use. */
const loadedBy = (...names: readonly string[]): string[] =>
  reachedFrom(names.map((name) => `.opencode/${name}.ts`)).map((path) => path.replace(/^\.opencode\/|\.ts$/g, ""))

const PLUGINS = sourceFiles(".opencode/plugins").map((path) => path.replace(/^\.opencode\/|\.ts$/g, ""))
const CONFIG = [
  ...["compaction/task-tools", "handoff/tools", "learning/tools", "pass-over/tools"],
  ...["host/settings", "write-guard/guard"],
].map((path) => `baton/${path}`)

const LATER = /^baton\/(?:(?:ledger|task)\/|.*\/(?:feature|handoff|learning|services|state-mark|detect)$)/

describe("what OpenCode waits for until it is loaded", () => {
  test(promised("speed.G1", "the six plugin files load their hooks and the core, and no feature"), () => {
    expect(PLUGINS).toHaveLength(6)
    const loaded = loadedBy(...PLUGINS)
    expect(loaded).toContain("baton/host/guard")
    expect(loaded.filter((path) => LATER.test(path))).toEqual([])
  })

  test(promised("speed.G1", "the config hooks load no feature, no ledger and no rule of learning"), () => {
    const later = /^baton\/(?:ledger\/|.*\/(?:feature|handoff|learning|services|state-mark|detect|parse|activity)$)/
    expect(loadedBy(...PLUGINS, ...CONFIG).filter((path) => later.test(path))).toEqual([])
  })

  test(promised("speed.G1", "a task's first message loads neither outbox nor recorder"), () => {
    const loaded = loadedBy("baton/compaction/feature", "baton/core/services")
    expect(loaded).toContain("baton/ledger/client")
    expect(loaded.filter((path) => /\/(?:outbox|recorder)$/.test(path))).toEqual([])
  })

  test(promised("speed.G1", "an event loads nothing of the task, the ledger or c2c"), () => {
    const loaded = loadedBy("baton/live-state/feature", "baton/host/state")
    expect(loaded).toContain("baton/live-state/statefile")
    expect(loaded.filter((path) => /\/(?:task|ledger|c2c)\/|stream-writer|services/.test(path))).toEqual([])
  })
})
