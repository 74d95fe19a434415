/** `baton trust`. Exits with 0 when it is trusted, with 1 when it cannot be, with 2 for a wrong command line. */
import { lstatSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { chooseProject, complain, print, runCommand } from "../host/cli.ts"
import { stateRoot } from "../host/project.ts"
import {
  findForeign,
  findTracked,
  GIT_FAILED,
  isNewer,
  listAside,
  MARK,
  makeState,
  markState,
  NEWER,
} from "../host/state-mark.ts"

type Request = {
  readonly root: string
  /** Name of a folder that was put aside; the newest when absent. */
  readonly from: string | undefined
}

const parse = (args: readonly string[], here: string): Request => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { from: { type: "string" } },
  })
  const [what, directory, ...rest] = positionals
  if (what !== "state") throw new Error(`expected state, received '${what ?? ""}'`)
  if (rest.length > 0) throw new Error(`expected one project folder, received ${rest.length + 1}`)
  return { root: chooseProject(directory, here), from: values.from }
}

/** Moves what the other folder lacks; never what is neither a file nor a folder. @returns what stays behind */
const merge = (from: string, to: string): string[] => {
  const left = readdirSync(from, { withFileTypes: true }).flatMap((entry): string[] => {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (!entry.isFile() && !entry.isDirectory()) return [source]
    const found = lstatSync(target, { throwIfNoEntry: false })
    if (found?.isDirectory() && entry.isDirectory()) return merge(source, target)
    if (found) return [source]
    renameSync(source, target)
    return []
  })
  if (left.length === 0) rmdirSync(from)
  return left
}

/**
 * @param next what the user can do about a tracked file
 * @throws Error when git has a file of it, or its format is a newer Baton's
 */
const refuse = (folder: string, next: string): void => {
  if (isNewer(folder)) throw new Error(`${folder} stays as it is: ${NEWER}`)
  const tracked = findTracked(folder)
  if (typeof tracked === "string") throw new Error(`git tracks ${tracked}${next}`)
  if (tracked === GIT_FAILED)
    complain(`trust: git does not tell whether it tracks a file of ${folder}: proceeding on your confirmation`)
}

const takeBack = (root: string, name: string): string => {
  const from = join(dirname(root), name)
  if (!listAside(dirname(dirname(root))).includes(name)) throw new Error(`there is no ${from}`)
  if (!lstatSync(from).isDirectory()) throw new Error(`${from} is a link: put what it leads to in its place`)
  refuse(from, ", so that it came with the repository: --from NAME takes another one")
  makeState(root)
  for (const own of [MARK, ".gitignore"]) rmSync(join(from, own), { force: true, recursive: true })
  const left = merge(from, root)
  const rest = left.length === 0 ? "" : `\nleft there, since ${root} has its own or it is a link: ${left.join(", ")}`
  return `${from} is trusted, and back in ${root}${rest}`
}

/** @throws Error in words for the user */
const trustState = ({ root: projectRoot, from }: Request): string => {
  const root = stateRoot(projectRoot)
  const found = lstatSync(root, { throwIfNoEntry: false })
  if (found && !found.isDirectory()) throw new Error(`${root} is not a folder: put what it leads to in its place`)
  if (found) refuse(root, ": run git rm -r --cached .opencode/state, then this again")
  if (findForeign(projectRoot) !== undefined) {
    if (from !== undefined) throw new Error(`${root} is foreign itself: trust it without --from, or delete it, first`)
    markState(root)
    return `${root} is trusted`
  }
  const name = from ?? listAside(projectRoot).at(-1)
  if (name === undefined) return "There is nothing to trust."
  return takeBack(root, name)
}

const run = async (request: Request): Promise<number> => {
  try {
    print(trustState(request))
    return 0
  } catch (error) {
    complain(`trust: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

await runCommand({ name: "trust", parse, run })
