import fc from "fast-check"
import { expect, test } from "vitest"
import * as activities from "../../../.opencode/baton/task/activity.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const { afterSnapshot, afterToolUse, EMPTY_ACTIVITY, MAX_FAILURES, MAX_FILES, renderFacts, renderTodos } = activities
const ROOT = "/project"
const bash = (command: string, exit: unknown) => ({ tool: "bash", args: { command }, metadata: { exit } })
const touched = (tool: string, filePath: string) => ({ tool, args: { filePath }, metadata: {} })
const activityAfter = (...uses: Parameters<typeof afterToolUse>[1][]): activities.Activity =>
  uses.reduce((activity, use) => afterToolUse(activity, use, ROOT), EMPTY_ACTIVITY)

test(promised("compaction.C5", "reads and changes are counted per file, relative to the project"), () => {
  const reads = ["/project/a.ts", "a.ts"].map((path) => touched("read", path))
  const { files } = activityAfter(...reads, touched("edit", "/project/a.ts"), touched("read", "/etc/hosts"))
  expect(files).toEqual([
    { path: "a.ts", reads: 2, changes: 1, byShell: false },
    { path: "/etc/hosts", reads: 1, changes: 0, byShell: false },
  ])
})

test(promised("compaction.C5", "a patch changes each file that it names, and both names of one that moves"), () => {
  const moved = "*** Update File: a.ts\n*** Move to: moved.ts\n@@\n-*** Update File: quoted.ts\n+x"
  const others = "*** Add File: /project/new.ts\n+x\n*** Delete File: old.ts\n*** Update File: a.ts"
  const patchText = `*** Begin Patch\n${moved}\n${others}\n*** End Patch`
  for (const tool of ["apply_patch", "patch"]) {
    const { files, changedSinceSnapshot } = activityAfter({ tool, args: { patchText }, metadata: {} })
    const changed = ["a.ts", "moved.ts", "new.ts", "old.ts"]
    expect(files).toEqual(changed.map((path) => ({ path, reads: 0, changes: 1, byShell: false })))
    expect(changedSinceSnapshot).toEqual(changed)
  }
  expect(activityAfter({ tool: "apply_patch", args: undefined, metadata: {} })).toEqual(EMPTY_ACTIVITY)
})

test(promised("compaction.C5", "a command that fails is kept with its exit code until it succeeds"), () => {
  expect(activityAfter(bash("bun test", 1)).failures).toEqual([{ command: "bun test", exitCode: 1 }])
  const twice = activityAfter(bash("bun test", 1), bash("bun test", 2))
  expect(twice.failures).toEqual([{ command: "bun test", exitCode: 2 }])
  expect(activityAfter(bash("bun test", 1), bash("bun  test", 0)).failures).toEqual([])
  expect(activityAfter(bash("sleep 99", null)).failures).toEqual([{ command: "sleep 99", exitCode: null }])
})

test(promised("words.A5b", "secrets are in no failing command, todo or file name, and in no half of one"), () => {
  const key = `AKIA${"A2B3C4D5E6F7G2H3"}`
  const header = 'curl -H "Authorization: Bearer sk-live-0123456789abcdef"'
  const { failures } = activityAfter(bash(`${header} \\\n  "https://x.example/?api_key=${key}"`, 22))
  const shown = 'curl -H "Authorization: Bearer [redacted]" \\ "https://x.example/?api_key=[redacted]"'
  expect(failures).toEqual([{ command: shown, exitCode: 22 }])
  // The cut after 300 characters would halve it.
  expect(activityAfter(bash(`${"x".repeat(285)} ${key}`, 1)).failures[0]?.command).toMatch(/x \[redacted\]$/)
  // The same command is the same one, when it succeeds, too.
  expect(activityAfter(bash(header, 1), bash(header, 0)).failures).toEqual([])
  const activity = activityAfter(touched("read", `/project/${key}.txt`), touched("edit", `/project/b/${key}`))
  const todos = [{ content: `Rotate ${key}  now`, status: "pending" }]
  const facts = renderFacts({ compactions: 0, activity, todos })
  expect(facts).toContain('- Files read (1, newest first): "[redacted].txt" ×1')
  expect(facts).toContain('- Files changed (1, newest first): "b/[redacted]" ×1')
  expect(renderTodos(todos)).toBe("- Open todos (1):\n  - [pending] Rotate [redacted] now")
})

test(promised("compaction.C5", "what a snapshot saw change and no tool did counts as changed by shell"), () => {
  const written = activityAfter(touched("write", "/project/a.ts"))
  const activity = afterSnapshot(written, ["/project/a.ts", "/project/b.ts"], ROOT)
  expect(activity.files).toEqual([
    { path: "a.ts", reads: 0, changes: 1, byShell: false },
    { path: "b.ts", reads: 0, changes: 1, byShell: true },
  ])
  const { files } = afterSnapshot(activity, ["/project/a.ts"], ROOT)
  expect(files.at(-1)).toEqual({ path: "a.ts", reads: 0, changes: 2, byShell: true })
})

test(promised("compaction.C5", "10,000 files cost a bounded list, and changed files outlast read ones"), () => {
  let activity = afterToolUse(EMPTY_ACTIVITY, touched("edit", "/project/kept.ts"), ROOT)
  for (let at = 0; at < 10_000; at++) activity = afterToolUse(activity, touched("read", `/project/${at}.ts`), ROOT)
  expect(activity.files).toHaveLength(MAX_FILES)
  expect(activity.files[0]?.path).toBe("kept.ts")
  expect(activity.forgottenFiles).toBe(10_001 - MAX_FILES)
})

test(promised("compaction.C5", "any tool call at all is taken without throwing, and bounds hold"), () => {
  const use = fc.record({
    tool: fc.constantFrom("read", "edit", "write", "bash", "apply_patch", "unknown"),
    args: fc.oneof(fc.anything(), fc.record({ filePath: fc.anything(), command: fc.anything() })),
    metadata: fc.oneof(fc.anything(), fc.record({ exit: fc.anything() })),
  })
  forAll(100, [fc.array(use, { maxLength: 60 })], (uses) => {
    const activity = activityAfter(...uses)
    expect(activity.failures.length).toBeLessThanOrEqual(MAX_FAILURES)
    expect(new Set(activity.files.map((file) => file.path)).size).toBe(activity.files.length)
  })
})
