import { print, printJSON } from "../host/cli.ts"
import { counted } from "../host/text.ts"
import { openWorkLedger } from "./ledger.ts"
import { type Branch, openWorktrees } from "./worktrees.ts"

type Shown = Branch & { readonly title: string; readonly status: string }

const mergeText = ({ isMerged, mergesClean }: Branch): string => {
  if (isMerged) return "merged"
  if (mergesClean === undefined) return "not merged"
  return mergesClean ? "merges clean" : "conflicts"
}

/** One line for a branch. */
export const branchLine = (branch: Shown): string =>
  [
    branch.branch,
    branch.status.replace("_", " "),
    counted(branch.ahead, "commit"),
    mergeText(branch),
    ...(branch.uncommitted > 0 ? [`${counted(branch.uncommitted, "file")} not committed`] : []),
    branch.title,
    ...(branch.directory === undefined ? [] : [branch.directory]),
  ].join("  ")

/** The branches of workers' tasks, with what the ledger says of these. */
export const readBranches = async (directory: string): Promise<Shown[]> => {
  const ledger = openWorkLedger(directory)
  const branches = await openWorktrees(directory).list()
  return Promise.all(
    branches.map(async (branch) => {
      const shown = await ledger.show(branch.task).catch(() => undefined)
      return { ...branch, title: shown?.title ?? "", status: shown?.status ?? "unknown to the ledger" }
    }),
  )
}

/** `baton work branches`. */
export const printBranches = async (directory: string, wantsJSON: boolean): Promise<number> => {
  const worktrees = openWorktrees(directory)
  const gone = await worktrees.tidy(openWorkLedger(directory))
  const branches = await readBranches(directory)
  if (wantsJSON) printJSON({ removed: gone, branches })
  else {
    for (const task of gone) print(`${task} is closed and merged: its worktree and branch are removed`)
    print(branches.length === 0 ? "No branches of workers" : branches.map(branchLine).join("\n"))
  }
  return 0
}

/** `baton work drop ID`. */
export const runDrop = async (directory: string, task: string): Promise<number> => {
  const [commit, head] = await openWorktrees(directory).drop(task)
  print(
    `The worktree and branch of ${task} are removed; its last commit was ${commit}: git branch NAME ${commit} has it back.`,
  )
  if (head !== undefined) print(`Its worktree stood at another commit, ${head}: git branch NAME ${head} has it back.`)
  return 0
}
