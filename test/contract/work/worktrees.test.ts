import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test, vi } from "vitest"
import { openWorktrees } from "../../../.opencode/baton/work/worktrees.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { GIT_IDENTITY } from "../../support/opencode/test-project.ts"

const TASK = "ts-000001"
const ledger = { show: async () => ({ title: "T", status: "done", dependencies: [], definition_of_done: null }) }

const git = (directory: string, ...args: string[]): string =>
  execFileSync("git", ["-C", directory, ...GIT_IDENTITY, ...args], { stdio: "pipe", encoding: "utf8" }).trim()
const commit = (directory: string, message: string): string => {
  git(directory, "commit", "-q", "--allow-empty", "-m", message)
  return git(directory, "rev-parse", "HEAD")
}

const open = async () => {
  const folder = temporaryFolder()
  vi.stubEnv("XDG_STATE_HOME", join(folder, "state"))
  onTestFinished(() => void vi.unstubAllEnvs())
  const project = join(folder, "project")
  mkdirSync(project)
  git(project, "init", "-q", "-b", "main")
  commit(project, "one")
  const worktrees = openWorktrees(project)
  const { directory } = await worktrees.prepare(TASK, [])
  return { project, worktrees, directory }
}

test(promised("work.B1", "a worktree is kept while its task's branch is not merged, and removed then"), async () => {
  const { project, worktrees, directory } = await open()
  const made = commit(directory, "the work")
  expect(await worktrees.tidy(ledger)).toEqual([])
  git(project, "merge", "-q", made)
  expect(await worktrees.list()).toMatchObject([{ ahead: 0, isMerged: true }])
  expect(await worktrees.tidy(ledger)).toEqual([TASK])
  expect(existsSync(directory)).toBe(false)
})

for (const [where, args] of [
  ["a detached HEAD", ["--detach"]],
  ["another branch", ["-b", "fix"]],
] as const)
  test(promised("work.B1", `a worktree whose commits are on ${where} is kept until these are merged`), async () => {
    const { project, worktrees, directory } = await open()
    git(directory, "checkout", "-q", ...args)
    const made = commit(directory, "the work")
    expect(await worktrees.list()).toMatchObject([{ ahead: 1, isMerged: false }])
    expect(await worktrees.tidy(ledger)).toEqual([])
    expect(git(directory, "rev-parse", "HEAD")).toBe(made)
    git(project, "merge", "-q", made)
    expect(await worktrees.tidy(ledger)).toEqual([TASK])
  })

test(promised("work.B1", "in a repository of several projects an agent works in its project's folder"), async () => {
  const { project: top } = await open()
  const project = join(top, "packages", "a")
  mkdirSync(project, { recursive: true })
  writeFileSync(join(project, "package.json"), "{}")
  git(top, "add", "-A")
  commit(top, "two projects")
  const worktrees = openWorktrees(project)
  const { directory } = await worktrees.prepare("ts-000002", [])
  expect(directory.endsWith(join("ts-000002", "packages", "a"))).toBe(true)
  expect((await worktrees.prepare("ts-000002", [])).directory).toBe(directory)
  for (const folder of [directory, await worktrees.withBase(async (base) => base)])
    expect(folder.endsWith(join("packages", "a"))).toBe(true)
  expect(existsSync(join(directory, "package.json"))).toBe(true)
})

test(promised("work.B1", "a dropped worktree's own commit is said beside its branch's"), async () => {
  const { project, worktrees, directory } = await open()
  const onBranch = commit(directory, "on the branch")
  git(directory, "checkout", "-q", "--detach")
  const detached = commit(directory, "beside it")
  expect(await worktrees.drop(TASK)).toEqual([onBranch, detached])
  git(project, "branch", "back", detached)
})
