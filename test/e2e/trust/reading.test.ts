import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { ALL_LINES, casesOf, openTaskProject, type TaskProject, testsOnce } from "../../support/index.ts"
import { handoffScript } from "../../support/model/handoff-script.ts"
import { GIT_IDENTITY } from "../../support/opencode/test-project.ts"
import { compactionsOf, compactsOnce, lastTurn, runWell } from "../sessions.ts"

type Placed = Pick<TaskProject, "project">

const inProject = ({ project }: Placed, path: string) => join(project.directory, path)

const put = (task: Placed, path: string, make: (path: string) => void): void => {
  const place = inProject(task, path)
  mkdirSync(dirname(place), { recursive: true })
  rmSync(place, { recursive: true, force: true })
  make(place)
}
const pipe = (path: string) => execFileSync("mkfifo", [path])
const device = (path: string) => symlinkSync("/dev/zero", path)

const git = ({ project }: Placed, ...args: string[]) =>
  execFileSync("git", ["-C", project.directory, ...GIT_IDENTITY, ...args], { stdio: "pipe" })

/** Files that Baton reads at a start, at a message, and at a compaction. */
const READ = [
  ".opencode/baton.json",
  ".opencode/pass-over.json",
  "prompts/worker.md",
  "prompts/handoff.md",
  "prompts/handoff-command.md",
  ".opencode/baton/.manifest",
  ".opencode/state/learning/learnings.json",
  ".opencode/state/outbox/1700000000000-000000-a.json",
  ".opencode/state/outbox.lock",
  ".opencode/state/outbox/lock",
]

const UNREADABLE: [what: string, make: (path: string) => void][] = [
  ["pipes", pipe],
  ["links to a device", device],
]

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test.each(casesOf(binary, UNREADABLE))(
    promised(["trust.A4", "faults.F1"], "OpenCode works on when all that Baton reads are %s"),
    async (_what, make) => {
      const task = await openTaskProject(binary, compactsOnce)
      await runWell(task, task.message)
      const state = inProject(task, ".opencode/state")
      const stored = readdirSync(state, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json"))
      expect(stored.length).toBeGreaterThan(0)
      for (const path of [...READ, ...stored.map((name) => `.opencode/state/${name}`)]) put(task, path, make)
      await runWell(task, task.message)
      expect(compactionsOf(task)).toHaveLength(2)
      expect(lastTurn(task)).toContain("Role: worker")
    },
  )

  once(promised("trust.A4", "/handoff runs no file monitor and no filter of the repository's"), async () => {
    const task = await openTaskProject(binary, handoffScript({ prompt: "Go on.", files: [] }))
    const ran = join(task.project.home, "ran")
    const evil = join(task.project.home, "evil")
    writeFileSync(evil, `#!/bin/sh\necho ran >> '${ran}'\ncat\n`, { mode: 0o755 })
    task.project.write(".gitattributes", "README.md filter=evil\n")
    git(task, "config", "core.fsmonitor", evil)
    git(task, "config", "filter.evil.clean", evil)
    rmSync(ran, { force: true })
    await runWell(task, task.message)
    utimesSync(inProject(task, "README.md"), 1, 1)
    const before = existsSync(ran)
    await runWell(task, "Go on", { args: ["--continue", "--command", "handoff"] })
    expect(existsSync(ran)).toBe(before)
    expect(task.project.batonLog().join("\n")).not.toContain("hook failed")
  })
})
