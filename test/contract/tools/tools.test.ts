import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type Evidence, EXPECTED_COMPACTIONS, FACTS, hasFailed, judge } from "../../../scripts/demonstration/claims.ts"
import { SUMMARIES } from "../../../scripts/demonstration/scripted-agent.ts"
import { TASK } from "../../../scripts/demonstration/slug-project.ts"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

describe("the demo's claims", () => {
  const SIX = Array.from({ length: 6 }, () => FACTS.map(() => true))
  const record = (number: number) => ({ number, at: "2026-01-02T03:04:05Z", line: "A step." })
  const GOOD: Evidence = {
    exitCode: 0,
    compactions: 4,
    recorded: [1, 2, 3, 4].map(record),
    specification: { ordered: "Do it.", inLedger: "Do it." },
    told: SIX,
    untold: [],
    test: { passes: true, summary: "5 of 5" },
    isFrozenFileUntouched: true,
    status: "done",
    traces: [],
    root: "/tmp/baton-demo-x",
  }
  const THREE = { compactions: 3, recorded: GOOD.recorded.slice(0, 3), told: SIX.slice(1) }
  const failing = (evidence: Evidence): string[] =>
    judge(evidence, true).flatMap(({ holds, text }) => (holds ? [] : [text]))

  test.each<[string, Partial<Evidence>, RegExp]>([
    ["OpenCode fails", { exitCode: 1 }, /^OpenCode went through/],
    ["one compaction less is made", THREE, /\(3 seen, exit code 0\)$/],
    ["a compaction is recorded twice", { recorded: [1, 2, 2, 3].map(record) }, /exactly once/],
    ["a byte is added", { specification: { ordered: "Do it.", inLedger: "Do it.\n" } }, /as it was ordered/],
    ["the handoff is not told", { untold: ["last handoff"] }, /log and git, but not the last handoff$/],
    ["the task stays open", { status: "in_progress" }, /status: in_progress/],
    ["the frozen file is changed", { isFrozenFileUntouched: false }, /constraint was obeyed/],
    ["a file appears elsewhere", { traces: ["/home/me/.prog/prog.db"] }, /but \/home\/me\/\.prog\/prog\.db/],
  ])(promised(["install.E3", "start.A6"], "when %s, one claim fails and the demo with it"), (_name, change, text) => {
    expect(failing(GOOD), "all hold for a run in which all is well").toEqual([])
    const evidence = { ...GOOD, ...change }
    expect(failing(evidence)).toEqual([expect.stringMatching(text)])
    expect(hasFailed(judge(evidence, true))).toBe(true)
  })
})

test.each([
  [["--modle", "a/b"], "unknown argument: --modle"],
  [["--model"], "--model needs a value"],
  [["--model", "sonnet"], "expected --model PROVIDER/MODEL, received 'sonnet'"],
  [["--keep="], "--keep needs the name of a folder"],
  [["--keep", "full"], "is not empty; name an empty or a new folder"],
  [["--keep", "dangling"], "is not a folder"],
  [["--without-baton", "--model", "a/b"], "--without-baton shows the scripted model"],
  [["--line", "3"], "expected --line 1 or --line 2, received '3'"],
  [["--line=2", "--model", "a/b"], "--model takes your own OpenCode"],
])(promised("install.E3", "the demo refuses %j before anything is set up"), (args, message) => {
  const cwd = temporaryFolder()
  mkdirSync(join(cwd, "full"))
  writeFileSync(join(cwd, "full", "mine.txt"), "mine")
  symlinkSync(join(cwd, "nowhere"), join(cwd, "dangling"))
  const demo = spawnSync(join(REPOSITORY, "scripts", "demo"), args, { cwd, encoding: "utf8", timeout: 20_000 })
  expect(demo).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(message) })
})

test(promised("repo.A2", "the demo's packages are those of development, locked by content and not by address"), () => {
  const readJson = (...path: string[]) => JSON.parse(readFileSync(join(REPOSITORY, ...path), "utf8"))
  const { dependencies, optionalDependencies } = readJson("scripts", "demo-packages", "package.json")
  const development = readJson("package.json")
  expect(development.devDependencies).toMatchObject(dependencies)
  expect(readJson("test", "tools", "package.json").optionalDependencies).toMatchObject(optionalDependencies)
  const known = readJson("package-lock.json").packages
  const { "": own, ...packages } = readJson("scripts", "demo-packages", "package-lock.json").packages
  expect(own).toMatchObject({ dependencies, optionalDependencies })
  // That each has its hash, test/structure/boundaries.test.ts holds.
  for (const [name, { resolved, integrity }] of Object.entries<Record<string, unknown>>(packages)) {
    expect(resolved, name).toBeUndefined()
    if (integrity && known[name]?.integrity) expect(integrity, name).toBe(known[name].integrity)
  }
})

test(promised("repo.A2", "OpenCode 2 for the demo is that of development, locked by content"), () => {
  const read = (path: string) => JSON.parse(readFileSync(join(REPOSITORY, path), "utf8"))
  const { optionalDependencies } = read("scripts/demo-packages/line-2/package.json")
  expect(read("test/tools/package.json").optionalDependencies).toMatchObject(optionalDependencies)
  const { "": own, ...packages } = read("scripts/demo-packages/line-2/package-lock.json").packages
  expect(own.optionalDependencies).toEqual(optionalDependencies)
  expect(read("package-lock.json").packages).toMatchObject(packages)
  expect(Object.keys(packages)).toEqual(["node_modules/opencode-two-linux-x64"])
})

test(promised("install.E3", "the picture shows a run of the demo as it is now, with every claim held"), () => {
  const svg = readFileSync(join(REPOSITORY, "docs", "images", "demo.svg"), "utf8")
  const text = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, words]) => words).join(" ")
  for (const { kind, shown } of SUMMARIES) {
    expect(text).toContain(kind)
    expect(text).toContain(shown.replaceAll('"', "&quot;"))
  }
  expect(text).toContain(`went through ${EXPECTED_COMPACTIONS} compactions`)
  expect(text).toContain(TASK.title)
  expect(text).toContain("Every claim holds.")
})

const DEADLINE_MS = 110_000
const published = () => [
  readFileSync(join(REPOSITORY, "docs", "benchmarks.md"), "utf8"),
  snapshotTree(join(REPOSITORY, "docs", "benchmarks")),
]

test("a quick measurement prints its figures and publishes nothing", { timeout: DEADLINE_MS }, () => {
  const [before, temporary] = [published(), temporaryFolder()]
  const options = { env: { ...process.env, TMPDIR: temporary }, encoding: "utf8", timeout: DEADLINE_MS } as const
  const bench = spawnSync(join(REPOSITORY, "scripts", "bench"), ["--quick", "event"], options)
  expect(bench.status, bench.stderr).toBe(0)
  for (const version of ["1.2.15", "1.18.33"])
    expect(bench.stdout).toMatch(new RegExp(`\\| a token delta .*\\| ${version} \\| \\*\\*[\\d.]+ µs\\*\\* \\|`))
  expect(bench.stderr).toContain("==> event on 1.2.15")
  expect(published()).toEqual(before)
  expect(readdirSync(temporary), "left behind").toEqual([])
})
