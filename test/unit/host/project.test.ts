import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { delimiter, join, relative } from "node:path"
import { describe, expect, test } from "vitest"
import { readGitState } from "../../../.opencode/baton/host/git.ts"
import { findExecutables } from "../../../.opencode/baton/host/process.ts"
import { findProjectRoot, nearestProject } from "../../../.opencode/baton/host/project.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

/** @param folders to create below a new one, including `.opencode` and `.opencode/baton` */
const setUp = (...folders: string[]) => {
  const root = temporaryFolder()
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
  return { root, at: (...path: string[]) => join(root, ...path) }
}

describe("the project a directory belongs to", () => {
  test("the project a directory belongs to is the nearest folder with .opencode when none has the bundle, and never above the worktree", () => {
    const { root, at } = setUp(".opencode", "work/deep/er")
    expect(findProjectRoot(at("work", "deep"), root)).toBe(root)
    expect(findProjectRoot(at("work", "deep"), at("work"))).toBe(at("work", "deep"))
    mkdirSync(at("work", "deep", ".opencode"))
    expect(findProjectRoot(at("work", "deep", "er"), root)).toBe(at("work", "deep"))
  })

  test("the project a directory belongs to is the one that has the bundle, behind a folder of settings or outside git", () => {
    const { root, at } = setUp(".opencode/baton", "pkg/.opencode", "pkg/src", "sub")
    expect(findProjectRoot(at("pkg", "src"), root)).toBe(root)
    expect(nearestProject(at("pkg", "src"))).toBe(root)
    expect(findProjectRoot(at("sub"), "/")).toBe(root)
    expect(findProjectRoot(at("sub"), at("sub"))).toBe(at("sub"))
  })

  test("the project a directory belongs to is not the home folder, whose bundle serves every project, unless a person works right there", () => {
    const { root, at } = setUp(".opencode/baton", "project/.opencode", "project/src")
    expect(findProjectRoot(at("project"), "/", root)).toBe(at("project"))
    expect(findProjectRoot(at("project", "src"), at("project"), root)).toBe(at("project"))
    expect(nearestProject(at("project", "src"), root)).toBe(at("project"))
    expect(findProjectRoot(root, "/", root)).toBe(root)
  })
})

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
  test(promised("compaction.C5", "branch and HEAD are what git says, with loose and packed refs"), async () => {
    const { root, git } = createRepository()
    git("commit", "-q", "--allow-empty", "-m", "one")
    const expected = { branch: "feature/crlf", head: git("rev-parse", "HEAD") }
    expect(await readGitState(root)).toEqual(expected)
    git("pack-refs", "--all")
    expect(await readGitState(root)).toEqual(expected)
  })

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

describe("programs on PATH", () => {
  test("programs on PATH are sought in absolute folders alone: a relative one would run what the project holds", () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, "c2c"), "", { mode: 0o755 })
    const path = ["", relative(process.cwd(), folder), folder].join(delimiter)
    expect(findExecutables("c2c", path)).toEqual([join(folder, "c2c")])
  })

  test("programs on PATH are files that may be run, each once and in PATH's order", () => {
    const root = temporaryFolder()
    for (const [name, mode] of Object.entries({ a: 0o755, b: 0o644, c: 0o755 })) {
      mkdirSync(join(root, name))
      writeFileSync(join(root, name, "tool"), "", { mode })
    }
    mkdirSync(join(root, "d", "tool"), { recursive: true })
    const path = ["c", "b", "d", "a", "c"].map((name) => join(root, name)).join(delimiter)
    expect(findExecutables("tool", path)).toEqual([join(root, "c", "tool"), join(root, "a", "tool")])
  })
})
