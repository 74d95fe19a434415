/** Handles a pass's changes after its child has ended: store, apply, reject. */
import { mkdir } from "node:fs/promises"
import { type ApplyDeps, applyFiles } from "./apply.ts"
import { readContent } from "./contents.ts"
import { hasUncarried } from "./differences.ts"
import type { Git } from "./git.ts"
import { collectChanges } from "./hold.ts"
import { excluderFor } from "./make-copy.ts"
import { describeModification } from "./modification.ts"
import type { PassFolder } from "./pass-folder.ts"
import { damaged, wrongState } from "./refusal.ts"
import { removeCopy } from "./remove-copy.ts"
import { countHeld, isFolder, readManifest, type Stage, saveChanges, withFate } from "./stage.ts"
import type { CopyRecord, HeldChanges, HeldFile } from "./stored.ts"
import type { Applied, ApplyOptions, Changes, FileResult, Refusal, Rejected } from "./worktree.ts"

export type SettleDeps = {
  readonly git: Git
  readonly folder: PassFolder
}

/** For a copy that was deleted: nothing is left to store or to wait for. */
const COPY_IS_GONE: HeldChanges = {
  version: 1,
  files: [],
  left_out: [
    { path: ".", reason: "the copy in which the subagent worked was deleted, and what it changed there with it" },
  ],
}

/**
 * Reads the child's changes so far from its copy.
 *
 * @throws when the copy or its original cannot be read
 */
export const lookAtCopy = async (
  { git, folder }: SettleDeps,
  record: CopyRecord,
  toolPaths: ReadonlySet<string>,
): Promise<HeldChanges | Refusal> => {
  const manifest = await readManifest(folder)
  if (manifest === undefined) return damaged(`the pass was never begun in full: ${folder.root} has no manifest`)
  if (!(await isFolder(folder.copy))) return COPY_IS_GONE
  const { target, own_folder } = record
  const isExcluded = excluderFor(own_folder)
  return await collectChanges({ git, target, folder, manifest, isExcluded, toolPaths })
}

/** Removes the copy, unless it holds something that could not be stored. */
export const removeStoredCopy = async (folder: PassFolder, { left_out }: HeldChanges): Promise<void> => {
  if (!hasUncarried(left_out)) await removeCopy(folder)
}

/** Stores the changes of a child that has ended, then removes its copy. */
export const holdChanges = async (
  deps: SettleDeps,
  record: CopyRecord,
  toolPaths: ReadonlySet<string>,
): Promise<HeldChanges | Refusal> => {
  const changes = await lookAtCopy(deps, record, toolPaths)
  if ("kind" in changes) return changes
  await saveChanges(deps.folder, changes)
  await removeStoredCopy(deps.folder, changes)
  return changes
}

/** @throws when a stored content is missing */
export const describeChanges = async (folder: PassFolder, { files, left_out }: HeldChanges): Promise<Changes> => {
  const modifications = []
  for (const file of files) {
    modifications.push(await describeModification(file, (side) => readContent(folder.held, side)))
  }
  return { kind: "changes", modifications, leftOut: left_out }
}

type Held = Extract<Stage, { kind: "held" }>

const selectFiles = (files: readonly HeldFile[], paths: readonly string[] | undefined): HeldFile[] =>
  files.filter(({ path, fate }) => fate === "held" && (paths === undefined || paths.includes(path)))

const describeMissing = (files: readonly HeldFile[], paths: readonly string[]): FileResult[] =>
  paths
    .filter((path) => !files.some((file) => file.path === path && file.fate === "held"))
    .map((path) => {
      const fate = files.find((file) => file.path === path)?.fate
      if (fate === "applied") return { path, outcome: "already-applied" }
      const reason = fate === undefined ? "the pass did not change a file of that path" : `it was ${fate} before`
      return { path, outcome: "conflict", reason, mergeable: false }
    })

/** Writes held files into the original of the copy. */
export const applyHeld = async (
  { git, folder }: SettleDeps,
  { record, changes }: Held,
  { paths, merge = false, allOrNothing = true }: ApplyOptions,
): Promise<Applied | Refusal> => {
  const { target } = record
  if (!(await isFolder(target))) {
    return wrongState(`${target} is gone, which the pass began with`, "Read the changes with pass_over_status instead.")
  }
  const missing = describeMissing(changes.files, paths ?? [])
  const isRefused = allOrNothing && missing.some(({ outcome }) => outcome === "conflict")
  const selected = selectFiles(changes.files, paths)
  let current = changes
  const onWritten: ApplyDeps["onWritten"] = async (files) => {
    const next = withFate(current, new Set(files.map(({ path }) => path)), "applied")
    await saveChanges(folder, next)
    // Only stored changes: a group whose storing failed is undone.
    current = next
  }
  await mkdir(folder.held, { recursive: true })
  const results: FileResult[] = isRefused
    ? selected.map(({ path }) => ({ path, outcome: "not-tried" }))
    : await applyFiles({ git, target, folder, merge, onWritten }, selected, { allOrNothing })
  const files = [...results, ...missing]
  // A process that ended during the removal may have left it.
  await removeStoredCopy(folder, current)
  const complete = files.every(({ outcome }) => ["applied", "merged", "already-applied"].includes(outcome))
  return { kind: "applied", complete, files, held: countHeld(current) }
}

export const rejectHeld = async (
  folder: PassFolder,
  changes: HeldChanges,
  paths: readonly string[] | undefined,
): Promise<Rejected> => {
  const selected = selectFiles(changes.files, paths).map(({ path }) => path)
  const rest = withFate(changes, new Set(selected), "rejected")
  const isNamed = ({ path }: HeldFile): boolean => paths?.includes(path) ?? selected.includes(path)
  const named = rest.files.filter(isNamed)
  const ofFate = (fate: HeldFile["fate"]) => named.filter((file) => file.fate === fate).map(({ path }) => path)
  await saveChanges(folder, rest)
  await removeStoredCopy(folder, rest)
  return { kind: "rejected", paths: ofFate("rejected"), applied: ofFate("applied"), held: countHeld(rest) }
}
