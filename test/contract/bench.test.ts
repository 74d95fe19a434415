import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { snapshotTree } from "../support/folder-tree.ts"
import { REPOSITORY } from "../support/opencode-binary.ts"

const DOCS = join(REPOSITORY, "docs")

const published = () => ({
  page: readFileSync(join(DOCS, "benchmarks.md"), "utf8"),
  folder: snapshotTree(join(DOCS, "benchmarks")),
})

let temporary = ""
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "baton-bench-test-"))
})
afterEach(() => rmSync(temporary, { recursive: true, force: true }))

const DEADLINE_MS = 110_000

const bench = (...args: string[]) =>
  spawnSync(join(REPOSITORY, "scripts", "bench"), args, {
    cwd: temporary,
    env: { ...process.env, TMPDIR: temporary },
    encoding: "utf8",
    timeout: DEADLINE_MS,
  })

test(promised(
  "speed.G3",
  "a quick measurement of an event prints its figures, says what it does meanwhile and publishes nothing",
), {
  timeout: DEADLINE_MS,
}, () => {
  const before = published()
  const { status, stdout, stderr } = bench("--quick", "event")
  expect(status, stderr).toBe(0)
  expect(stdout).toMatch(/\| a token delta .*\| 1\.2\.15 \| \*\*[\d.]+ µs\*\* \|/)
  expect(stdout).toMatch(/\| a token delta .*\| 1\.18\.33 \| \*\*[\d.]+ µs\*\* \|/)
  expect(stderr).toContain("==> event on 1.2.15: 2 rounds")
  expect(published()).toEqual(before)
  expect(readdirSync(temporary), "left behind").toEqual([])
})
