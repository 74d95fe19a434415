import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { SYSTEM_PATH } from "../../support/ledger/ledger-process.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const BATON = join(REPOSITORY, ".opencode", "baton", "bin", "baton")

const setUp = () => {
  const home = temporaryFolder()
  mkdirSync(join(home, ".opencode"))
  const run = (cwd: string, args: readonly string[], environment: Record<string, string>) =>
    spawnSync(BATON, args, {
      cwd,
      encoding: "utf8",
      env: { HOME: home, TMPDIR: home, PATH: SYSTEM_PATH, ...environment },
    })
  return { home, run }
}

describe("the launcher of baton's commands", () => {
  test("runs on an OpenCode that is named from the folder the user is in", () => {
    const { home, run } = setUp()
    const named = `./${basename(NEWEST.path)}`
    const result = run(dirname(NEWEST.path), ["state", "list", home, "--json"], { BATON_OPENCODE: named })
    expect(result, result.stderr).toMatchObject({ status: 0, stdout: "[]\n" })
  })

  test("runs nothing from a relative folder of PATH, and goes on to an absolute one", () => {
    const { home, run } = setUp()
    const started = join(home, "started")
    for (const name of ["opencode", "bun", "node"])
      writeFileSync(join(home, name), `#!/bin/sh\ntouch '${started}'\n`, { mode: 0o755 })
    const programs = join(home, "programs")
    mkdirSync(programs)
    symlinkSync(NEWEST.path, join(programs, "opencode"))
    const result = run(home, ["state", "list", home, "--json"], { PATH: `.::${programs}:${SYSTEM_PATH}` })
    expect(result, result.stderr).toMatchObject({ status: 0, stdout: "[]\n" })
    expect(existsSync(started)).toBe(false)
  })
})
