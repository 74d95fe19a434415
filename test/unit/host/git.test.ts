import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { findProjectFolder, projectNameOf } from "../../../.opencode/baton/host/git.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.com", ...args], { cwd, stdio: "pipe" })

test.each([
  ["app/.bare", "app/main", "app"],
  ["repositories/app.git", "work/main", "app"],
  ["app/.git", "app-feature", "app"],
])(
  promised("people.D3", "a worktree of the repository %s at %s has the project's name %s"),
  async (bare, tree, name) => {
    const root = temporaryFolder()
    const [repository, worktree] = [join(root, bare), join(root, tree)]
    mkdirSync(repository, { recursive: true })
    git(repository, "init", "--bare", ".")
    // A commit of the empty tree, without a worktree.
    const hash = git(repository, "commit-tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-m", "x").toString().trim()
    git(repository, "worktree", "add", worktree, hash)
    expect(projectNameOf(await findProjectFolder(worktree))).toBe(name)
  },
)
