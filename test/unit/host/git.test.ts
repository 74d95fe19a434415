import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { readGitState } from "../../../.opencode/baton/host/git.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]

const createRepository = () => {
  const root = join(temporaryFolder(), "repository")
  mkdirSync(root)
  const git = (...args: string[]): string =>
    execFileSync("git", ["-C", root, ...IDENTITY, ...args], { encoding: "utf8" }).trim()
  git("init", "-q", "-b", "feature/crlf")
  return { root, git }
}

describe("git's own files", () => {
  test(
    promised("compaction.C5", "branch and HEAD are what git says, with a loose ref and with a packed one"),
    async () => {
      const { root, git } = createRepository()
      git("commit", "-q", "--allow-empty", "-m", "one")
      const expected = { branch: "feature/crlf", head: git("rev-parse", "HEAD") }
      expect(await readGitState(root)).toEqual(expected)
      git("pack-refs", "--all")
      expect(await readGitState(root)).toEqual(expected)
    },
  )

  test(promised("compaction.C5", "a linked worktree and a detached HEAD are read as git reads them"), async () => {
    const { root, git } = createRepository()
    git("commit", "-q", "--allow-empty", "-m", "one")
    const linked = join(root, "..", "linked")
    git("worktree", "add", "-q", "-b", "other", linked)
    expect(await readGitState(linked)).toEqual({ branch: "other", head: git("rev-parse", "other") })
    git("checkout", "-q", "--detach")
    expect(await readGitState(root)).toEqual({ branch: "(detached)", head: git("rev-parse", "HEAD") })
  })

  test(promised("compaction.C5", "no repository, no commit and damaged files are unknown, not wrong"), async () => {
    expect(await readGitState(temporaryFolder())).toBeUndefined()
    const { root } = createRepository()
    expect(await readGitState(root)).toBeUndefined()
    for (const head of ["", "ref: refs/heads/../../../etc/passwd", "ref: refs/heads/.invalid", "garbage"]) {
      writeFileSync(join(root, ".git", "HEAD"), head)
      expect(await readGitState(root)).toBeUndefined()
    }
  })
})
