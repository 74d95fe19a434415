import { lstatSync, readlinkSync, realpathSync } from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import type { Config } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { createLruMap } from "../host/async.ts"
import { isNotFound } from "../host/log.ts"
import { movesTo, pathsToWrite } from "../host/messages.ts"
import type { PermissionRule } from "../host/permissions.ts"
import { accountFolder, bundleRoot } from "../host/project.ts"
import { answeredPermission, field, isRecord, type RawEvent, text } from "../host/schema.ts"
import { createPromptFiles, promptPaths } from "../task/prompts.ts"
import { judgePath, type Paths, protectedPaths, protectFiles } from "./rules.ts"

const MAX_LINKS = 40

/** The path that a write would reach, also of a file that is not there yet or behind a link that leads nowhere. */
const writtenPath = (path: string, links = 0): string => {
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (!isNotFound(error) || dirname(path) === path) return path
  }
  // Behind a link it is not the folder that the text says.
  if (basename(path) === "..") return dirname(writtenPath(dirname(path), links))
  const inRealFolder = join(writtenPath(dirname(path), links), basename(path))
  const isLink = lstatSync(inRealFolder, { throwIfNoEntry: false })?.isSymbolicLink() === true
  if (!isLink || links >= MAX_LINKS) return inRealFolder
  const target = readlinkSync(inRealFolder)
  return writtenPath(isAbsolute(target) ? target : `${dirname(inRealFolder)}/${target}`, links + 1)
}

/** Characters that a file system which folds names ignores. */
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

const folded = (path: string): string => path.normalize("NFKC").replaceAll(IGNORED, "").toLowerCase()

/** A pass's copy of the project lies in the state folder; its files are not Baton's. */
const inProject = (path: string): string => path.replace(/\/\.opencode\/state\/pass-over\/[^/]+\/copy\//, "/")

export const createWriteGuard = ({ input, projectRoot, root }: Core) => {
  const below = (folder: string, path: string) => relative(folder, path).split(sep).join("/")
  // OpenCode names files relative to its worktree, which is "/" outside git.
  const worktree = input.worktree
  const realWorktree = realpathSync.native(worktree)
  // Where a link leads to the project, OpenCode's names of its files may lead through the link or not.
  const prefixesOf = (folder: string): string[] => {
    const places = [below(worktree, folder), below(realWorktree, writtenPath(folder))]
    return [...new Set(places)].map((place) => (place === "" ? "" : `${place}/`))
  }
  const [prefixes, started] = [prefixesOf(projectRoot), prefixesOf(input.directory)]
  const prompts = createPromptFiles({ root: projectRoot })
  const readPaths = (): Paths => protectedPaths(prefixes, promptPaths(prompts), started)
  /** As OpenCode's rules have them. */
  const ruled = readPaths()
  let users: readonly (readonly PermissionRule[])[] = []
  const beside = ["baton", "plugins", "node_modules"].map((name) =>
    join(realpathSync.native(dirname(bundleRoot)), name),
  )
  /** Outside the project: a copy of the bundle for all projects of the user, and what Baton keeps for the account. */
  const account = writtenPath(accountFolder())
  const ownFolders = [...beside, account].map((folder) => folded(`${folder}/`))
  /** Of `baton work --worktrees`: projects like any other. */
  const worktrees = folded(`${join(account, "worktrees")}/`)
  const isBatons = (path: string): boolean =>
    !path.startsWith(worktrees) && ownFolders.some((folder) => path.startsWith(folder))
  /** Ids of the questions for edits. */
  const questions = createLruMap<true>()
  let isAlwaysAllowed = false

  const watch = ({ type, properties }: RawEvent): void => {
    if (type === "permission.asked" && field(properties, "permission") === "edit")
      questions.set(text(field(properties, "id")) ?? "", true)
    if (type === "permission.replied" && questions.has(answeredPermission(properties) ?? ""))
      isAlwaysAllowed ||= (field(properties, "reply") ?? field(properties, "response")) === "always"
  }

  /** @param named as the model wrote it @returns a sentence for the model, or undefined */
  const refusalOf = (named: string, isTarget: boolean, paths: Paths): string | undefined => {
    const lexical = resolve(input.directory, named)
    const real = writtenPath(lexical)
    const path = below(realWorktree, inProject(real))
    const inLowerCase = { denied: paths.denied.map(folded), asked: paths.asked.map(folded) }
    const verdict = judgePath(path, paths, users)
    const byFolded = verdict === "free" ? judgePath(folded(path), inLowerCase, []) : verdict
    const refused = `${named} is one of Baton's own files, which no agent may change.`
    if (byFolded === "denied") return `${refused} A rule of the user's own for this path allows it.`
    if (verdict === "free" && isBatons(folded(real))) return refused
    if (byFolded !== "asked") return undefined
    if (isTarget)
      return `${named} is a file that OpenCode or Baton obeys: write it instead of moving one there, so that the user can be asked.`
    if (judgePath(below(worktree, inProject(lexical)), ruled, users) !== "asked")
      return `${named} is a file that OpenCode or Baton obeys, ${path}, under another name: write it by that one, so that the user can be asked.`
    if (isAlwaysAllowed)
      return `${named} is a file that OpenCode or Baton obeys, and OpenCode asks for no edit any more since the user answered "always". Tell the user: after a restart OpenCode asks again, and a rule of the user's own for this path allows it.`
    // OpenCode's rule asks for it.
    return undefined
  }

  const refusal = (tool: string, args: unknown, paths = readPaths()): string | undefined => {
    if (!isRecord(args)) return undefined
    if (tool === "batch" && Array.isArray(args.tool_calls))
      return args.tool_calls
        .map((call) => refusal(String(field(call, "tool")), field(call, "parameters"), paths))
        .find(Boolean)
    if (tool === "pass_over_apply" && Array.isArray(args.artifacts))
      return args.artifacts.map((path) => refusalOf(join(root, String(path)), false, paths)).find(Boolean)
    // OpenCode's rules judge the file that a patch moves, not where it goes.
    const targets = new Set(movesTo(args))
    return pathsToWrite(tool, args)
      .map((path) => refusalOf(path, targets.has(path), paths))
      .find(Boolean)
  }

  return {
    protect: (config: Config): void => {
      users = protectFiles(config as Parameters<typeof protectFiles>[0], ruled)
    },
    refusal,
    watch,
  }
}
