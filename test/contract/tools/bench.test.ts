import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const DEADLINE_MS = 110_000
const published = () => [
  readFileSync(join(REPOSITORY, "docs", "benchmarks.md"), "utf8"),
  snapshotTree(join(REPOSITORY, "docs", "benchmarks")),
]

test("a quick measurement prints its figures, says what it does meanwhile and publishes nothing", {
  timeout: DEADLINE_MS,
}, () => {
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
