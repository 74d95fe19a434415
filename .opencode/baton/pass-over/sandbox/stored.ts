/** The files of a pass on the disk. What was decided on them stands in pass.json alone; contents are checked when they are read. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { mkdir, realpath, rm, stat } from "node:fs/promises"
import { isAbsolute, join, relative, resolve } from "node:path"
import type { ZodType } from "zod"
import { describeError, isNotFound } from "../../host/log.ts"
import { loadZod, type Parsed, type Zod } from "../../host/schema.ts"
import { replaceFile, type StateFolder } from "../../host/state.ts"
import { listFolder, readOwnText } from "../../host/untrusted.ts"
import type { FileModification, Immutable } from "../contract.ts"
import { isOpen, isPassID, type PassRecord } from "../store/record.ts"
import type { PassOwners, PassStore } from "../store/store.ts"
import { isInside } from "./paths.ts"
import { findRepository, type Git, RefusalError, refusals, removeIndex, renderList } from "./repository.ts"
import {
  type Change,
  EXACT_RENAMES,
  isExcluded,
  isInRepository,
  isLarge,
  LARGE_AS_BINARY,
  MODES,
  statIfThere,
  writeTree,
} from "./snapshot.ts"

const PASSES_FOLDER = "pass-over"

/** @throws RefusalError for an invalid id, such as one that would lead out of the folder */
export const passFolder = (state: Pick<StateFolder, "path">, passID: string) => {
  if (!isPassID(passID)) throw new RefusalError(refusals.unknownPass(passID))
  const root = state.path(PASSES_FOLDER, passID, "files")
  const git = join(root, "git")
  return {
    root,
    /** The start of the pass: which folder its sandbox is made of. */
    record: join(root, "sandbox.json"),
    /** Repository of the sandbox, its index, and the id of the tree that the child began with, which is written last. */
    git,
    index: join(git, "index"),
    base: join(git, "base"),
    /** The child's changes: the list, and a repository with their contents. */
    changes: join(root, "changes.json"),
    store: join(root, "store"),
    /** Exists while files are written into the project. */
    journal: join(root, "apply.json"),
    sandbox: state.path(PASSES_FOLDER, passID, "copy"),
  }
}

export type PassFolder = ReturnType<typeof passFolder>

const isOrdinary = (path: string): boolean =>
  path !== "" && !isAbsolute(path) && path.split("/").every((part) => !["", ".", ".."].includes(part))
/** A stored path is acted on: it must lead neither out of the project nor into its repository. */
const pathSchema = (z: Zod) => z.string().refine((path) => isOrdinary(path) && !isExcluded(path))
/** One state of a file; `oid` is the id of its content in git, `size` in bytes. */
const stateFields = (z: Zod) => ({
  mode: z.enum(MODES),
  oid: z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/),
  size: z.number(),
})

/**
 * `target`: the folder that the sandbox was made of, and that `apply` writes to; relative to the one that holds `.opencode`, so
 * that a project that was moved or copied has its passes with it.
 */
const recordSchema = (z: Zod) =>
  z.object({ version: z.literal(1), target: z.string().refine((path) => !isInRepository(path)) })

/** Files before and after, relative to the top folder; null for a missing side. */
const changesSchema = (z: Zod) => {
  const file = z.object(stateFields(z)).nullable()
  const change = z.object({
    path: pathSchema(z),
    /** Of a renamed file. */
    previous_path: pathSchema(z).nullable(),
    base: file,
    next: file,
    is_binary: z.boolean(),
    /** Of a symbolic link. */
    link_target: z.string().nullable(),
    by: z.enum(["tool", "shell"]),
  })
  const skipped = z.array(z.object({ path: z.string(), reason: z.string() }))
  /** `left_out`: the child's files that could not be stored. */
  return z.object({ version: z.literal(1), files: z.array(change), left_out: skipped })
}

const journalSchema = (z: Zod) => {
  const entry = z.strictObject({
    path: pathSchema(z),
    before: z.object({ ...stateFields(z), permissions: z.number() }).nullable(),
    after: z.object(stateFields(z)).nullable(),
  })
  return z.object({
    version: z.literal(1),
    /** `path` values of the changes. */
    files: z.array(z.string()),
    entries: z.array(entry),
    /** Makes names that no other file has, since files of those names are removed after a crash. */
    suffix: z.string().regex(/^[0-9a-f]{16}$/),
  })
}

export type StoredChanges = Immutable<Parsed<typeof changesSchema>>
export type Journal = Immutable<Parsed<typeof journalSchema>>
export type JournalEntry = Journal["entries"][number]

const readText = async (path: string): Promise<string | undefined> => {
  try {
    return await readOwnText(path)
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
export type FilesState =
  | { readonly kind: "none" }
  /** The child works. `base` is the tree that it began with; without one its sandbox was never finished. */
  | { readonly kind: "working"; readonly target: string; readonly base: string | undefined }
  /** `journal`: files are being written; after a crash they are rolled back by it. */
  | {
      readonly kind: "stored"
      readonly target: string
      readonly changes: StoredChanges
      readonly journal: Journal | undefined
    }

/** @throws zod's error, or SyntaxError, for a damaged file */
export const readFilesState = async (folder: PassFolder): Promise<FilesState> => {
  const record = await readStored(folder.record, recordSchema)
  if (record === undefined) return { kind: "none" }
  const { target } = record
  const changes = await readStored(folder.changes, changesSchema)
  if (changes === undefined) return { kind: "working", target, base: await readText(folder.base) }
  return { kind: "stored", target, changes, journal: await readStored(folder.journal, journalSchema) }
}

export const saveChanges = (folder: PassFolder, changes: StoredChanges): Promise<void> =>
  replaceFile(folder.changes, JSON.stringify(changes))

/** Notes the folder that a sandbox is made of. @param top its real path */
export const saveTarget = async (state: StateFolder, folder: PassFolder, top: string): Promise<void> => {
  const target = relative(await realpath(resolve(state.root, "..", "..")), top)
  const record: Parsed<typeof recordSchema> = { version: 1, target }
  await replaceFile(folder.record, JSON.stringify(record), { isDurable: false })
}

/** @returns the folder that a pass is applied to; undefined for one that is none of the project's, or gone */
export const findTarget = async (state: Pick<StateFolder, "root">, target: string): Promise<string | undefined> => {
  const project = await realpath(resolve(state.root, "..", ".."))
  const path = resolve(project, target)
  if (statIfThere(path)?.isDirectory() !== true) return undefined
  const real = await realpath(path)
  const isOwn = isInside(project, real) || (await findRepository(project))?.top === real
  return isOwn ? real : undefined
}

export type PendingPass = {
  readonly passID: string
  /**
   * `working`: the child has its sandbox. `stored`: its changes wait to be applied or rejected. `applying`: files are being
   * written. `damaged`: it cannot be read, for the reason given.
   */
  readonly state: "working" | "stored" | "applying" | "damaged"
  /** Start of the pass, ISO 8601; empty where its record is gone. */
  readonly since: string
  /** True while a running process works on it; only that process may collect its files then. */
  readonly isOwned: boolean
  readonly reason?: string
}

const isSettled = ({ state }: PassRecord): boolean =>
  !isOpen(state) && !("undecided" in state && state.undecided.length > 0)

/** Lists passes whose files are not settled, oldest first. */
export const listPending = async (
  state: Pick<StateFolder, "path">,
  { store, owners }: { store: Pick<PassStore, "read">; owners: Pick<PassOwners, "isOwned"> },
): Promise<PendingPass[]> => {
  const describe = async (passID: string, folder: PassFolder): Promise<PendingPass | undefined> => {
    const record = await store.read(passID)
    const known = { passID, since: record?.request.metadata.created_at ?? "", isOwned: await owners.isOwned(passID) }
    try {
      const filesState = await readFilesState(folder)
      if (filesState.kind === "none") return undefined
      if (filesState.kind === "working") return { ...known, state: "working" }
      if (record && isSettled(record)) return undefined
      return { ...known, state: filesState.journal ? "applying" : "stored" }
    } catch (error) {
      return { ...known, state: "damaged", reason: describeError(error) }
    }
  }
  const pending: PendingPass[] = []
  for (const name of listFolder(state.path(PASSES_FOLDER)).filter(isPassID)) {
    const found = await describe(name, passFolder(state, name))
    if (found) pending.push(found)
  }
  return pending
}

/** The id that git gives to a file's content. */
const hashFile = async (path: string): Promise<string> => {
  const hash = createHash("sha1").update(`blob ${(await stat(path)).size}\0`)
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest("hex")
}

/**
 * Writes contents from a store into files that are named by their ids, and checks each against its id.
 *
 * @param folder is emptied first
 * @returns the ids of those that are missing or damaged
 */
export const stageAndCheck = async (
  git: Git,
  store: string,
  folder: string,
  oids: Iterable<string>,
): Promise<ReadonlySet<string>> => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const wanted = [...new Set(oids)]
  const unsound = new Set<string>()
  if (wanted.length === 0) return unsound
  const index = join(store, "staged.index")
  const options = { cwd: folder, gitFolder: store, index }
  await removeIndex(index)
  const entries = wanted.map((oid) => `100644 ${oid}\t${oid}\n`).join("")
  await git(["update-index", "--index-info"], { ...options, stdin: entries })
  await git(["checkout-index", "-a", "-q"], options).catch((error: unknown) => {
    if (error instanceof RefusalError) throw error
    // It wrote those that it could read.
  })
  for (const oid of wanted) {
    const found = await hashFile(join(folder, oid)).catch(() => undefined)
    if (found !== oid) unsound.add(oid)
  }
  return unsound
}

/** The same. @throws RefusalError when one is missing or damaged; nothing may be made of the others then */
export const stageContents = async (git: Git, store: string, folder: string, oids: Iterable<string>): Promise<void> => {
  const [unsound] = await stageAndCheck(git, store, folder, oids)
  if (unsound === undefined) return
  const what = `a stored content in ${store} is missing or damaged: ${unsound} does not fit its id`
  throw new RefusalError(refusals.damaged(what))
}

const changeOf = ({ previous_path, base, next }: Change): FileModification["change"] => {
  if (previous_path !== null) return "renamed"
  if (base === null) return "added"
  if (next === null) return "deleted"
  return base.oid === next.oid ? "mode_changed" : "modified"
}

/** Contents are kept with the pass's files alone, so that a change of many files stays a small record. */
export const toModification = (change: Change): FileModification => {
  const { path, previous_path, base, next, link_target, by } = change
  return {
    type: "file_modification",
    path,
    change: changeOf(change),
    ...(previous_path === null ? {} : { previous_path }),
    old_content: null,
    new_content: null,
    is_binary: change.is_binary,
    is_large: isLarge(change),
    old_hash: base?.oid ?? null,
    new_hash: next?.oid ?? null,
    old_mode: base?.mode ?? null,
    new_mode: next?.mode ?? null,
    ...(link_target === null ? {} : { link_target }),
    by,
  }
}

/** Renders stored changes as a patch. @param store see `collectChanges` */
export const renderPatch = async (git: Git, store: string, changes: readonly Change[]): Promise<string> => {
  const treeOf = async (side: "base" | "next"): Promise<string> => {
    const place = { git, top: store, gitFolder: store, index: join(store, `${side}.index`) }
    const entries = changes.flatMap((change) => {
      const path = side === "base" ? (change.previous_path ?? change.path) : change.path
      return change[side] ? [`${change[side].mode} ${change[side].oid}\t${path}`] : []
    })
    await removeIndex(place.index)
    const stdin = renderList(entries)
    await git(["update-index", "-z", "--index-info"], { cwd: store, gitFolder: store, index: place.index, stdin })
    return writeTree(place)
  }
  const trees = [await treeOf("base"), await treeOf("next")]
  return git([...LARGE_AS_BINARY, "diff", "--no-ext-diff", "--no-textconv", "--no-color", ...EXACT_RENAMES, ...trees], {
    cwd: store,
    gitFolder: store,
  })
}
