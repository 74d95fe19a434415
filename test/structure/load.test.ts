import { readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

/** Imports that take effect when a file is loaded: neither types alone nor `import()`. */
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm

const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")

/** The bundle's own files that are loaded with these, themselves included. */
const loadedWith = (entries: readonly string[]): string[] => {
  const loaded = new Set<string>()
  const visit = (path: string): void => {
    if (loaded.has(path)) return
    loaded.add(path)
    for (const [, target = ""] of read(path).matchAll(STATIC_IMPORT))
      if (target.startsWith(".")) visit(normalize(join(dirname(path), target)))
  }
  entries.forEach(visit)
  return [...loaded].sort()
}

const linesOf = (paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + (read(path).match(/\n/g)?.length ?? 0), 0)

describe("what OpenCode waits for until it is loaded", () => {
  test(promised("speed.G1", "the five plugin files load at most 26 files and 1,400 lines"), () => {
    const plugins = sourceFiles(".opencode/plugins", ".ts")
    expect(plugins).toHaveLength(5)
    const loaded = loadedWith(plugins)
    expect(loaded).toContain(".opencode/baton/host/guard.ts")
    expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(26)
    expect(linesOf(loaded)).toBeLessThanOrEqual(1_400)
  })

  test(
    promised(
      "speed.G1",
      "the first message with a task loads at most 32 files, the outbox and what a compaction needs not among them",
    ),
    () => {
      const loaded = loadedWith([".opencode/baton/compaction/feature.ts", ".opencode/baton/core/services.ts"])
      expect(loaded).toContain(".opencode/baton/ledger/client.ts")
      expect(loaded).not.toContain(".opencode/baton/ledger/outbox.ts")
      expect(loaded).not.toContain(".opencode/baton/compaction/recorder.ts")
      expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(32)
    },
  )
})
