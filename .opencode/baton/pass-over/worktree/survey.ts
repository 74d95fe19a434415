import { copyFile, mkdir, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { storeContent } from "./contents.ts"
import { createWayCheck, identityOf, readSide, statIfThere } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { type Current, judgeStep, mergeMode, type Step, stepsOf } from "./plan.ts"
import type { HeldFile, Side } from "./stored.ts"

/** An allowed write, and the identity that its path must still have when it is done. */
export type Write = { readonly path: string; readonly next: Side | null; readonly identity: string | undefined }

export type SurveyedFile =
  | { readonly kind: "ready"; readonly file: HeldFile; readonly isMerged: boolean; readonly writes: readonly Write[] }
  | { readonly kind: "already"; readonly file: HeldFile }
  | { readonly kind: "conflict"; readonly file: HeldFile; readonly reason: string; readonly isMergeable: boolean }

export type SurveyDeps = {
  readonly git: Git
  readonly target: string
  readonly folder: PassFolder
  /** True when clean merges count as ready; otherwise they are conflicts that mention the possible merge. */
  readonly merge: boolean
}

type Found = { readonly current: Current; readonly identity: string | undefined }

const isAbove = (folder: string, path: string): boolean => path.startsWith(`${folder}/`)

const ancestorsOf = (path: string): string[] => {
  const folders: string[] = []
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) folders.push(folder)
  return folders
}

/** Reads the present state of a path in the worktree. Files that this pass removes do not block it. */
const look = async (target: string, path: string, removed: ReadonlySet<string>): Promise<Found> => {
  const isOnRealWay = createWayCheck(target)
  const absent: Found = { current: null, identity: undefined }
  if (!isOnRealWay(path)) {
    const blocking: string[] = []
    for (const folder of ancestorsOf(path)) {
      const found = statIfThere(join(target, folder))
      if (found !== undefined && !found.isDirectory()) blocking.push(folder)
    }
    const other = blocking.find((folder) => !removed.has(folder))
    return other === undefined
      ? absent
      : { current: { other: `behind ${other}, which is no folder,` }, identity: undefined }
  }
  const found = statIfThere(join(target, path))
  if (found === undefined) return absent
  if (found.isDirectory()) {
    const isEmptied = [...removed].some((each) => isAbove(path, each))
    return isEmptied ? absent : { current: { other: "a folder" }, identity: undefined }
  }
  const side = await readSide(join(target, path), found)
  return { current: side ?? { other: "neither a file nor a link" }, identity: identityOf(found) }
}

/**
 * Merges another change of a file with the pass's, like `git merge-file`.
 *
 * @returns the stored result; undefined when the two conflict, or the file is not text
 */
const mergeStep = async (deps: SurveyDeps, { path, base, next }: Step): Promise<Side | undefined> => {
  const { git, target, folder } = deps
  if (base === null || next === null) return undefined
  const current = await storeContent(join(target, path), folder.held)
  const mode = current && mergeMode(base, current, next)
  if (current === undefined || mode === undefined) return undefined
  const scratch = join(folder.root, "merge")
  await mkdir(scratch, { recursive: true })
  try {
    const places = { current: join(scratch, "current"), base: join(scratch, "base"), next: join(scratch, "next") }
    for (const [name, side] of Object.entries({ current, base, next })) {
      await copyFile(join(folder.held, side.hash), join(scratch, name))
    }
    const answer = await git(["merge-file", "-q", places.current, places.base, places.next], { cwd: scratch })
    if (answer.kind !== "done") return undefined
    const merged = await storeContent(places.current, folder.held)
    return merged && { ...merged, mode }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Compares each file with the worktree's present content; changes nothing there. */
export const surveyFiles = async (deps: SurveyDeps, files: readonly HeldFile[]): Promise<SurveyedFile[]> => {
  const steps = files.flatMap(stepsOf)
  const removed = new Set(steps.flatMap(({ path, next }) => (next === null ? [path] : [])))

  const survey = async (file: HeldFile): Promise<SurveyedFile> => {
    const writes: Write[] = []
    let isMerged = false
    for (const step of stepsOf(file)) {
      const { current, identity } = await look(deps.target, step.path, removed)
      const verdict = judgeStep(step, current)
      if (verdict.kind === "already") continue
      if (verdict.kind === "write") {
        writes.push({ path: step.path, next: step.next, identity })
        continue
      }
      const merged = verdict.kind === "merge" ? await mergeStep(deps, step) : undefined
      const isMergeable = merged !== undefined
      if (!merged || !deps.merge) return { kind: "conflict", file, reason: verdict.reason, isMergeable }
      isMerged = true
      writes.push({ path: step.path, next: merged, identity })
    }
    return writes.length === 0 ? { kind: "already", file } : { kind: "ready", file, isMerged, writes }
  }

  const surveyed: SurveyedFile[] = []
  for (const file of files) surveyed.push(await survey(file))
  return surveyed
}
