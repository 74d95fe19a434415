import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest"
import { countCommitsSince, readDirtyFiles } from "../../../.opencode/baton/host/git.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { GIT_IDENTITY } from "../../support/opencode/test-project.ts"

const run = createProcessRunner({ shell: undefined })

let root: string
let ran: string

const git = (...args: string[]) => execFileSync("git", ["-C", root, ...GIT_IDENTITY, ...args], { stdio: "pipe" })
const write = (path: string, text: string, mode = 0o644) => writeFileSync(join(root, path), text, { mode })
/** A program that leaves a trace, and does what a filter does. */
const program = (name: string): string => {
  write(`../${name}`, `#!/bin/sh\necho ${name} >> '${ran}'\ncat\n`, 0o755)
  return join(root, "..", name)
}
/** A file that git must compare by its content. */
const touch = (path: string) => utimesSync(join(root, path), 1, 1)

beforeEach(() => {
  root = join(temporaryFolder(), "repository")
  ran = join(root, "..", "ran")
  mkdirSync(root)
  execFileSync("git", ["-C", root, "init", "-q", "-b", "main"])
  write("a.txt", "a\n")
  write("b.txt", "b\n")
  git("add", "-A")
  git("commit", "-q", "-m", "one")
})

const ATTACKS: readonly (readonly [string, () => void])[] = [
  ["a file monitor", () => git("config", "core.fsmonitor", program("monitor"))],
  [
    "a hook that follows the index",
    () => {
      git("config", "core.hooksPath", join(root, "..", "hooks"))
      mkdirSync(join(root, "..", "hooks"))
      execFileSync("cp", [program("hook"), join(root, "..", "hooks", "post-index-change")])
    },
  ],
  ...["clean", "process"].map(
    (kind) =>
      [
        `a ${kind} filter`,
        () => {
          write(".gitattributes", "*.txt filter=evil.one\n")
          git("config", `filter.evil.one.${kind}`, program(kind))
          git("config", "filter.evil.one.required", "true")
        },
      ] as const,
  ),
  [
    "a filter whose name cannot be switched off",
    () => {
      write(".gitattributes", "*.txt filter=a=b\n")
      git("config", "filter.a=b.clean", program("named"))
    },
  ],
]

describe("git in a repository that configures programs", () => {
  test.each(ATTACKS)(
    promised("trust.A4", "git in a repository that configures %s runs none of it"),
    async (_what, attack) => {
      attack()
      for (const path of ["a.txt", "b.txt"]) touch(path)
      write("c.txt", "c\n")
      // Git by itself does run it: else this test proves nothing.
      for (const args of [["status"], ["update-index", "-q", "--refresh"]]) spawnSync("git", ["-C", root, ...args])
      expect(existsSync(ran)).toBe(true)
      rmSync(ran)
      for (const path of ["a.txt", "b.txt"]) touch(path)
      const dirty = await readDirtyFiles(run, root)
      expect(await countCommitsSince(run, root, "HEAD")).toBe(0)
      expect(existsSync(ran)).toBe(false)
      if (dirty) expect(dirty).toContainEqual({ path: "c.txt", isUntracked: true })
    },
  )

  test(promised("trust.A4", "git runs no file monitor of a submodule"), async () => {
    execFileSync("git", ["clone", "-q", root, join(root, "sub")])
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", root, "sub")
    git("commit", "-q", "-m", "two")
    execFileSync("git", ["-C", join(root, "sub"), "config", "core.fsmonitor", program("monitor")])
    git("status", "--porcelain")
    expect(existsSync(ran)).toBe(true)
    rmSync(ran)
    expect(await readDirtyFiles(run, root)).toEqual([])
    expect(existsSync(ran)).toBe(false)
  })

  test(promised("trust.A4", "a git around this one, or in a relative folder of PATH, changes nothing"), async () => {
    onTestFinished(() => void vi.unstubAllEnvs())
    mkdirSync(join(root, "bin"))
    execFileSync("cp", [program("git"), join(root, "bin", "git")])
    vi.stubEnv("PATH", `bin:${process.env.PATH}`)
    for (const name of ["DIR", "INDEX_FILE", "OBJECT_DIRECTORY", "WORK_TREE"])
      vi.stubEnv(`GIT_${name}`, join(root, "nowhere"))
    vi.stubEnv("GIT_EXTERNAL_DIFF", program("diff"))
    const setting = { COUNT: "1", KEY_0: "status.showUntrackedFiles", VALUE_0: "no" }
    for (const [name, value] of Object.entries(setting)) vi.stubEnv(`GIT_CONFIG_${name}`, value)
    expect(await readDirtyFiles(run, root)).toEqual([{ path: "bin/", isUntracked: true }])
    expect(existsSync(ran)).toBe(false)
  })
})
