import { stat } from "node:fs/promises"
import { join, relative, sep } from "node:path"
import { type DirtyFile, readDirtyFiles } from "../host/git.ts"
import type { RunProcess } from "../host/process.ts"
import { readOwnText } from "../host/untrusted.ts"
import { PROMPT_NAMES, type PromptFiles } from "../task/prompts.ts"

/** Written at run time. */
const RUN_TIME = [".opencode/state/", ".opencode/pass-over-logs/"]
/** Not the project's, as long as git does not have them. */
const BUNDLE =
  /^\.opencode\/(?:baton\/|plugins\/(?:compaction-handoff|handoff|live-state|pass-over|session-learning|write-guard)\.ts$)/
/** Written by scripts/install: checksum, size and path of each file that it put there. */
const MANIFEST = ".opencode/baton/.manifest"
/** Folders that git shows in place of their files when it has none of them. */
const FOLDERS = /^(?:\.opencode\/(?:(?:plugins|prompts)\/)?|prompts\/)$/

const readManifest = async (projectRoot: string): Promise<ReadonlyMap<string, number>> => {
  const text = await readOwnText(join(projectRoot, MANIFEST)).catch(() => "")
  const lines = text.split(/\r?\n/).map((line) => line.split("\t"))
  return new Map(lines.flatMap(([, size, path]) => (path === undefined ? [] : [[path, Number(size)] as const])))
}

type OwnFilesDeps = {
  run: RunProcess
  prompts: Pick<PromptFiles, "read">
  /** The worktree's top folder. */
  root: string
  projectRoot: string
}

/**
 * Lists what the user or an agent has not committed, relative to the worktree: without what Baton writes at run time and
 * without its files as installed. Undefined if git is missing or fails.
 */
export const readUncommitted = async ({
  run,
  prompts,
  root,
  projectRoot,
}: OwnFilesDeps): Promise<string[] | undefined> => {
  const dirty = await readDirtyFiles(run, root)
  if (!dirty) return undefined
  const place = relative(root, projectRoot).split(sep).join("/")
  const prefix = place === "" ? "" : `${place}/`
  const isFolder = ({ path }: DirtyFile): boolean => path.startsWith(prefix) && FOLDERS.test(path.slice(prefix.length))
  const folders = dirty.filter(isFolder).map(({ path }) => path)
  const inside = folders.length === 0 ? [] : ((await readDirtyFiles(run, root, folders)) ?? [])
  const installed = await readManifest(projectRoot)
  const ownPrompts = PROMPT_NAMES.map(prompts.read).flatMap((file) => (file.kind === "text" ? file.path : []))

  const isAsInstalled = async (path: string): Promise<boolean> => {
    const size = installed.get(path)
    return size !== undefined && (await stat(join(projectRoot, path)).catch(() => undefined))?.size === size
  }
  const isOurs = async ({ path, isUntracked }: DirtyFile): Promise<boolean> => {
    if (!path.startsWith(prefix)) return false
    const own = path.slice(prefix.length)
    if (RUN_TIME.some((folder) => own.startsWith(folder))) return true
    if (isUntracked && (BUNDLE.test(own) || ownPrompts.includes(own))) return true
    return own === MANIFEST || isAsInstalled(own)
  }
  const files = [...dirty.filter((file) => !isFolder(file)), ...inside]
  const ours = await Promise.all(files.map(isOurs))
  return files.filter((_, at) => ours[at] !== true).map(({ path }) => path)
}
