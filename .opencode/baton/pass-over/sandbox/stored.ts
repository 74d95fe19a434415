/** The files of a pass on the disk, and what they say about it. */
import { readFile, realpath } from "node:fs/promises"
import { isAbsolute, join, relative, resolve } from "node:path"
import type { ZodType } from "zod"
import { isNotFound } from "../../host/log.ts"
import { loadZod, type Zod } from "../../host/schema.ts"
import { replaceFile, type StateFolder } from "../../host/state.ts"
import type { FileResult } from "./apply.ts"
import { isTemporaryFor, type Journal } from "./journal.ts"
import { isInside } from "./paths.ts"
import { findRepository } from "./repository.ts"
import { type Change, excluderFor, MODES, statIfThere } from "./snapshot.ts"

export const PASSES_FOLDER = "pass-over"

export type PassFolder = {
  readonly root: string
  /** The start of the pass: folders, time. */
  readonly record: string
  readonly lock: string
  /** Repository of the sandbox, its index, and the id of the tree that the child began with, which is written last. */
  readonly git: string
  readonly index: string
  readonly base: string
  /** The child's changes: the list, and a repository with their contents. */
  readonly changes: string
  readonly store: string
  /** Exists while files are written into the project. */
  readonly journal: string
  readonly copy: string
  /** The record of a pass of version 0.1.0. */
  readonly earlier: string
}

const FOLDER_NAME = /^[\w-]{1,100}$/

/** @returns undefined for an invalid id, such as one that would lead out of the folder */
export const passFolder = (state: Pick<StateFolder, "path">, passID: string): PassFolder | undefined => {
  if (!FOLDER_NAME.test(passID)) return undefined
  const root = state.path(PASSES_FOLDER, passID, "files")
  const git = join(root, "git")
  return {
    root,
    record: join(root, "sandbox.json"),
    lock: join(root, "lock"),
    git,
    index: join(git, "index"),
    base: join(git, "base"),
    changes: join(root, "changes.json"),
    store: join(root, "store"),
    journal: join(root, "apply.json"),
    copy: state.path(PASSES_FOLDER, passID, "copy"),
    earlier: join(root, "record.json"),
  }
}

/** Paths are relative: a project that was moved or copied has its passes with it. */
export type SandboxRecord = {
  version: 1
  /** ISO 8601, UTC. */
  began_at: string
  /** Place of the child's tools within the sandbox. */
  directory: string
  /** Folder that the sandbox was made of, and that `apply` writes to, from the folder that holds `.opencode`. */
  target: string
  /** The bundle's own state within the target, which no pass carries. */
  own_folder: string
}

export type HeldFile = Change & { readonly fate: "held" | "applied" | "rejected" }
/** `left_out`: the child's files that could not be stored. */
export type HeldChanges = {
  version: 1
  files: readonly HeldFile[]
  left_out: readonly { path: string; reason: string }[]
}

/** For a sandbox that was deleted: nothing is left to store or to wait for. */
export const SANDBOX_IS_GONE: HeldChanges = {
  version: 1,
  files: [],
  left_out: [
    { path: ".", reason: "the copy in which the subagent worked was deleted, and what it changed there with it" },
  ],
}

const isOrdinary = (path: string): boolean =>
  path !== "" && !isAbsolute(path) && path.split("/").every((part) => !["", ".", ".."].includes(part))
const isGitFolder = excluderFor("\0")
/** A stored path is acted on: it must lead neither out of the project nor into its repository. */
const pathSchema = (z: Zod) => z.string().refine((path) => isOrdinary(path) && !isGitFolder(path))
const sideFields = (z: Zod) => ({
  mode: z.enum(MODES),
  oid: z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/),
  size: z.number(),
})

const recordSchema = (z: Zod): ZodType<SandboxRecord> =>
  z.object({
    version: z.literal(1),
    began_at: z.string(),
    directory: z.string(),
    target: z.string().refine((path) => !isGitFolder(path)),
    own_folder: z.string(),
  })

const changesSchema = (z: Zod): ZodType<HeldChanges> => {
  const side = z.object(sideFields(z)).nullable()
  const file = z.object({
    path: pathSchema(z),
    previous_path: pathSchema(z).nullable(),
    base: side,
    next: side,
    by: z.enum(["tool", "shell"]),
    fate: z.enum(["held", "applied", "rejected"]),
  })
  const leftOut = z.array(z.object({ path: z.string(), reason: z.string() }))
  return z.object({ version: z.literal(1), files: z.array(file), left_out: leftOut })
}

const journalSchema = (z: Zod): ZodType<Journal> => {
  const entry = z
    .object({
      path: pathSchema(z),
      before: z.object({ ...sideFields(z), permissions: z.number() }).nullable(),
      after: z.object(sideFields(z)).nullable(),
      temporary: z.string(),
    })
    .refine(({ path, temporary }) => isTemporaryFor(path, temporary))
  return z.object({ version: z.literal(1), entries: z.array(entry), made_folders: z.array(pathSchema(z)) })
}

const readText = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, "utf8")
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** @throws the errors of reading, and zod's error for a damaged file */
const readStored = async <T>(path: string, schema: (z: Zod) => ZodType<T>): Promise<T | undefined> => {
  const text = await readText(path)
  return text === undefined ? undefined : schema(await loadZod()).parse(JSON.parse(text))
}

/** The state of a pass's files, told by which of them there are. */
export type Stage =
  | { readonly kind: "none" }
  /** The child works. `base` is the tree that it began with; without one its sandbox was never finished. */
  | { readonly kind: "working"; readonly record: SandboxRecord; readonly base: string | undefined }
  | { readonly kind: "held"; readonly record: SandboxRecord; readonly changes: HeldChanges }
  | {
      readonly kind: "applying"
      readonly record: SandboxRecord
      readonly changes: HeldChanges
      readonly journal: Journal
    }
  | { readonly kind: "earlier"; readonly pass: EarlierPass }

/** @throws zod's error, or SyntaxError, for a damaged file */
export const readStage = async (folder: PassFolder): Promise<Stage> => {
  const record = await readStored(folder.record, recordSchema)
  if (record === undefined) {
    const pass = await readEarlier(folder)
    return pass === undefined ? { kind: "none" } : { kind: "earlier", pass }
  }
  const changes = await readStored(folder.changes, changesSchema)
  if (changes === undefined) return { kind: "working", record, base: await readText(folder.base) }
  const journal = await readStored(folder.journal, journalSchema)
  return journal === undefined ? { kind: "held", record, changes } : { kind: "applying", record, changes, journal }
}

export const saveRecord = (folder: PassFolder, record: SandboxRecord): Promise<void> =>
  replaceFile(folder.record, JSON.stringify(record), { isDurable: false })

export const saveChanges = (folder: PassFolder, changes: HeldChanges): Promise<void> =>
  replaceFile(folder.changes, JSON.stringify(changes))

export const countHeld = ({ files }: Pick<HeldChanges, "files">): number =>
  files.filter(({ fate }) => fate === "held").length

/** Returns the changes with a new fate for some files; a renamed file is matched by either name. */
export const withFate = (changes: HeldChanges, paths: ReadonlySet<string>, fate: HeldFile["fate"]): HeldChanges => ({
  ...changes,
  files: changes.files.map((file) =>
    paths.has(file.path) || (file.previous_path !== null && paths.has(file.previous_path)) ? { ...file, fate } : file,
  ),
})

/** The held files among these paths, or all. */
export const selectFiles = (files: readonly HeldFile[], paths: readonly string[] | undefined): HeldFile[] =>
  files.filter(({ path, fate }) => fate === "held" && (paths === undefined || paths.includes(path)))

/** The outcome for paths that are not held. */
export const describeMissing = (files: readonly HeldFile[], paths: readonly string[]): FileResult[] =>
  paths
    .filter((path) => !files.some((file) => file.path === path && file.fate === "held"))
    .map((path) => {
      const fate = files.find((file) => file.path === path)?.fate
      if (fate === "applied") return { path, outcome: "already-applied" }
      const reason = fate === undefined ? "the pass did not change a file of that path" : `it was ${fate} before`
      return { path, outcome: "conflict", reason, mergeable: false }
    })

/** @returns the folder that a pass is applied to; undefined for one that is none of the project's, or gone */
export const targetOf = async (
  state: Pick<StateFolder, "root">,
  { target }: SandboxRecord,
): Promise<string | undefined> => {
  const project = await realpath(resolve(state.root, "..", ".."))
  const path = resolve(project, target)
  if (statIfThere(path)?.isDirectory() !== true) return undefined
  const isOwn = isInside(project, path) || (await findRepository(project))?.top === path
  return isOwn ? path : undefined
}

/** A folder's path as `SandboxRecord.target` has it. */
export const targetPath = async (state: Pick<StateFolder, "root">, top: string): Promise<string> =>
  relative(await realpath(resolve(state.root, "..", "..")), top)

/** A pass whose files were stored by version 0.1.0: it is shown, and can be given up. */
export type EarlierPass = { readonly began_at: string; readonly isWorking: boolean; readonly held: readonly string[] }

const earlierChanges = (z: Zod) =>
  z.looseObject({ files: z.array(z.looseObject({ path: z.string(), fate: z.string() })) })

const readEarlier = async (folder: PassFolder): Promise<EarlierPass | undefined> => {
  const record = await readStored(folder.earlier, (z) => z.looseObject({ began_at: z.string() }))
  if (record === undefined) return undefined
  const changes = await readStored(folder.changes, earlierChanges)
  const held = (changes?.files ?? []).filter(({ fate }) => fate === "held").map(({ path }) => path)
  return { began_at: record.began_at, isWorking: changes === undefined, held }
}

/** Notes that files of such a pass are given up; their contents stay. @returns the paths */
export const rejectEarlier = async (folder: PassFolder, { held }: EarlierPass, paths = held): Promise<string[]> => {
  const given = held.filter((path) => paths.includes(path))
  const changes = await readStored(folder.changes, earlierChanges)
  if (changes === undefined) return given
  const files = changes.files.map((file) => (given.includes(file.path) ? { ...file, fate: "rejected" } : file))
  await replaceFile(folder.changes, JSON.stringify({ ...changes, files }))
  return given
}
