import { createHash } from "node:crypto"
import { existsSync, mkdirSync, realpathSync } from "node:fs"
import { basename, join } from "node:path"
import { accountFolder } from "../host/project.ts"
import { git, gitOrThrow } from "./git.ts"
import type { WorkLedger } from "./ledger.ts"

/*
 * A git worktree and a branch for each task. It is kept until its task is closed and its branch merged, or the person drops it: a session
 * goes on in its own folder alone.
 */

const PREFIX = "baton/"
export const branchOf = (task: string): string => `${PREFIX}${task}`

const ID = /^[a-z]{2,}-[0-9a-z]+$/

export type Branch = {
  readonly task: string
  readonly branch: string
  /** Commits that the project's branch lacks, also those that its worktree alone has: an agent may have left the branch. */
  readonly ahead: number
  readonly isMerged: boolean
  /** Undefined where git is too old to try it (before 2.38). */
  readonly mergesClean: boolean | undefined
  /** Changes in its worktree that no commit has. */
  readonly uncommitted: number
  /** Undefined when it is gone. */
  readonly directory: string | undefined
}

export type Prepared = {
  readonly directory: string
  /** Variables by which OpenCode finds what the worktree lacks, because git does not have it. */
  readonly environment: Readonly<Record<string, string>>
  /** For the agent: branches of earlier tasks that could not be merged. */
  readonly notes: readonly string[]
}

const CONFIGS = ["opencode.json", "opencode.jsonc"]

/** @param project the project's folder, in a git repository */
export const openWorktrees = (project: string) => {
  const hash = createHash("sha256").update(realpathSync(project)).digest("hex").slice(0, 8)
  const root = join(accountFolder(), "worktrees", `${basename(project)}-${hash}`)
  const folderOf = (task: string): string => join(root, task)
  const hasBranch = async (branch: string): Promise<boolean> =>
    (await git(project, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`)).isOk
  const isMerged = async (commit: string): Promise<boolean> =>
    (await git(project, "merge-base", "--is-ancestor", commit, "HEAD")).isOk
  /** The commit of a worktree; "" where there is none. */
  const headOf = async (directory: string): Promise<string> => (await git(directory, "rev-parse", "HEAD")).output

  /** The project's folder in a worktree, which is the repository's top or a folder in it. */
  const projectIn = async (worktree: string): Promise<string> => {
    const directory = join(worktree, await gitOrThrow(project, "rev-parse", "--show-prefix"))
    // Git may know no file in it.
    mkdirSync(directory, { recursive: true })
    return realpathSync(directory)
  }

  const environmentOf = (directory: string): Record<string, string> => {
    const config = CONFIGS.find((name) => existsSync(join(project, name)))
    return {
      ...(existsSync(join(directory, ".opencode", "baton")) ? {} : { OPENCODE_CONFIG_DIR: join(project, ".opencode") }),
      ...(config === undefined || existsSync(join(directory, config))
        ? {}
        : { OPENCODE_CONFIG: join(project, config) }),
    }
  }

  /** The tasks that it waits for may be done on branches that are not merged yet: it builds on them. */
  const mergeEarlier = async (directory: string, tasks: readonly string[]): Promise<string[]> => {
    const notes: string[] = []
    for (const branch of tasks.map(branchOf)) {
      if (!(await hasBranch(branch)) || (await isMerged(branch))) continue
      const merged = await git(directory, "merge", "--no-edit", "--quiet", branch)
      if (merged.isOk) continue
      await git(directory, "merge", "--abort")
      notes.push(
        `Your task builds on the branch ${branch}, which does not merge here without conflicts: merge it first.`,
      )
    }
    return notes
  }

  const listBranches = async (): Promise<Branch[]> => {
    const listed = await git(project, "for-each-ref", "--format=%(refname:short)", `refs/heads/${PREFIX}`)
    const branches = listed.output.split("\n").filter((name) => ID.test(name.slice(PREFIX.length)))
    return Promise.all(
      branches.map(async (branch): Promise<Branch> => {
        const task = branch.slice(PREFIX.length)
        const directory = folderOf(task)
        const isThere = existsSync(directory)
        const tips = [branch, ...(isThere ? [await headOf(directory)] : [])]
        const [ahead, merged, tried, dirty] = await Promise.all([
          git(project, "rev-list", "--count", ...tips.filter((tip) => tip !== ""), "^HEAD"),
          Promise.all(tips.map(isMerged)),
          git(project, "merge-tree", "--write-tree", "HEAD", branch),
          isThere ? git(directory, "status", "--porcelain") : undefined,
        ])
        const isKnown = tried.isOk || !/usage|unknown option|not a git command/i.test(tried.complaint)
        return {
          task,
          branch,
          ahead: Number(ahead.output) || 0,
          isMerged: merged.every(Boolean),
          mergesClean: isKnown ? tried.isOk : undefined,
          uncommitted: dirty?.output.split("\n").filter((line) => line !== "").length ?? 0,
          directory: isThere ? directory : undefined,
        }
      }),
    )
  }

  const remove = async ({ branch, directory }: Branch, force: boolean): Promise<void> => {
    if (directory !== undefined)
      await gitOrThrow(project, "worktree", "remove", ...(force ? ["--force"] : []), directory)
    await gitOrThrow(project, "branch", force ? "-D" : "-d", branch)
  }

  return {
    root,
    folderOf,
    list: listBranches,
    /**
     * Makes the task's worktree, or takes the one that is there.
     *
     * @param dependencies the tasks that it waited for
     * @throws Error when git refuses
     */
    prepare: async (task: string, dependencies: readonly string[]): Promise<Prepared> => {
      if (!ID.test(task)) throw new Error(`the id '${task}' cannot name a branch`)
      const worktree = folderOf(task)
      const prepared = async (notes: readonly string[]): Promise<Prepared> => {
        const directory = await projectIn(worktree)
        return { directory, environment: environmentOf(directory), notes }
      }
      if (existsSync(join(worktree, ".git"))) return prepared([])
      mkdirSync(root, { recursive: true, mode: 0o700 })
      await git(project, "worktree", "prune")
      const branch = branchOf(task)
      const start = (await hasBranch(branch)) ? [worktree, branch] : ["-b", branch, worktree, "HEAD"]
      await gitOrThrow(project, "worktree", "add", "--quiet", ...start)
      return prepared(await mergeEarlier(worktree, dependencies))
    },
    /** Commits what an agent left when it said that it was done. @returns git's complaint when it could not */
    commitRest: async (task: string, title: string): Promise<string | undefined> => {
      const directory = folderOf(task)
      const dirty = await git(directory, "status", "--porcelain")
      if (!dirty.isOk || dirty.output === "") return dirty.isOk ? undefined : dirty.complaint
      const added = await git(directory, "add", "-A")
      if (!added.isOk) return added.complaint
      const committed = await git(directory, "commit", "--quiet", "-m", `${title} (${task})`)
      return committed.isOk ? undefined : committed.complaint
    },
    /** Makes a worktree of the project's HEAD for a check, and removes it after the work. @throws Error when git refuses */
    withBase: async <T>(work: (directory: string) => Promise<T>): Promise<T> => {
      const worktree = join(root, `base-${process.pid}`)
      mkdirSync(root, { recursive: true, mode: 0o700 })
      await gitOrThrow(project, "worktree", "add", "--quiet", "--detach", worktree, "HEAD")
      try {
        return await work(await projectIn(worktree))
      } finally {
        await git(project, "worktree", "remove", "--force", worktree)
      }
    },
    /** Removes the worktrees and branches of closed tasks that are merged and clean. @returns the tasks */
    tidy: async (ledger: Pick<WorkLedger, "show">): Promise<string[]> => {
      const gone: string[] = []
      for (const each of await listBranches()) {
        if (!each.isMerged || each.uncommitted > 0) continue
        const status = await ledger.show(each.task).then(
          (shown) => shown.status,
          () => "unknown",
        )
        if (status !== "done" && status !== "canceled") continue
        // Git itself refuses what is not merged or not clean.
        await remove(each, false).then(
          () => gone.push(each.task),
          () => undefined,
        )
      }
      return gone
    },
    /** Removes a task's worktree and branch, merged or not. @returns the last commits of both, by which they can be had back */
    drop: async (task: string): Promise<string[]> => {
      const found = (await listBranches()).find((each) => each.task === task)
      if (!found) throw new Error(`there is no branch ${branchOf(task)}`)
      const commit = await gitOrThrow(project, "rev-parse", found.branch)
      const head = found.directory === undefined ? "" : await headOf(found.directory)
      await remove(found, true)
      return head === "" || head === commit ? [commit] : [commit, head]
    },
  }
}

export type Worktrees = ReturnType<typeof openWorktrees>
