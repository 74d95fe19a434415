/** Git for the sandboxes, and what is read of the user's repository. */
import { existsSync } from "node:fs"
import { copyFile, mkdir, readdir, realpath, rm, stat, utimes, writeFile } from "node:fs/promises"
import { devNull } from "node:os"
import { dirname, join, resolve } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { findGitFolder, readGitText } from "../../host/git.ts"
import { isNotFound } from "../../host/log.ts"
import type { RunProcess } from "../../host/process.ts"
import { cutText } from "../../host/text.ts"
import { readOwnText, runGit } from "../../host/untrusted.ts"

/** `code` is for programs; `reason` and `fix` are sentences for a model or the user. */
export type Refusal = {
  readonly kind: "refused"
  readonly code:
    | "no-git"
    | "no-repository"
    | "unknown-pass"
    | "wrong-state"
    | "busy"
    | "damaged"
    | "failed"
    | "no-boundary"
  readonly reason: string
  readonly fix: string
}

/** Thrown where the reason is known and the caller has to be told it. */
export class RefusalError extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.reason)
    this.refusal = refusal
  }
}

const refuse =
  (code: Refusal["code"], fix: string) =>
  (reason: string): Refusal => ({ kind: "refused", code, reason, fix })

const wrongState = (reason: string, fix: string): Refusal => refuse("wrong-state", fix)(reason)

export const refusals = {
  noGit: refuse("no-git", "Install git, or pass to a subagent that may not change files."),
  noRepository: refuse(
    "no-repository",
    "Run git init in the project and list in .gitignore what a sandbox need not hold, or pass to a subagent that may not change files.",
  ),
  unknownPass: (passID: string): Refusal =>
    refuse("unknown-pass", "pass_over_status lists the passes there are.")(`no files are kept for a pass ${passID}`),
  busy: refuse("busy", "Try again when that is done."),
  damaged: refuse("damaged", "Look into the folder named; nothing in it was changed."),
  wrongState,
  takenOver: (passID: string): Refusal =>
    wrongState(
      `another process took the pass ${passID} over while this one was paused: it stored the files as they were then, and later ones are lost`,
      "Look at what was stored with pass_over_status.",
    ),
  noBoundary: refuse(
    "no-boundary",
    'Tell the user: install bubblewrap and have OpenCode use bash or zsh, or take "sandbox": "os" out of .opencode/pass-over.json.',
  ),
  failed: refuse("failed", "Remove the cause and try again; the stored changes are kept."),
}

type GitOptions = {
  /** Absolute path that git runs in: the top folder of the files it works on. */
  readonly cwd: string
  /** Absolute path of the repository's own folder. */
  readonly gitFolder: string
  /** Absolute path; the repository's own index when absent. */
  readonly index?: string
  readonly stdin?: string
  /** Flushes the objects that it writes to the disk (default false). */
  readonly isDurable?: boolean
}

/** Runs git. @returns what it prints. @throws RefusalError without git; Error with git's complaint */
export type Git = (args: readonly string[], options: GitOptions) => Promise<string>

const GIT_DEADLINE_MS = 60_000
/** The names of a million files. */
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024
const COMPLAINT_CHARACTERS = 300

/** Nothing may change bytes, either: no filter, no other line ends. Contents are as they are on the disk. */
const SETTINGS = [
  `core.attributesFile=${devNull}`,
  "core.autocrlf=false",
  "core.safecrlf=false",
  "core.quotePath=false",
  "core.splitIndex=false",
  "core.fileMode=true",
  "core.symlinks=true",
].flatMap((setting) => ["-c", setting])

/** The last one is for versions before 2.36. */
const DURABLE = [
  "core.fsync=loose-object,pack,pack-metadata",
  "core.fsyncMethod=batch",
  "core.fsyncObjectFiles=true",
].flatMap((setting) => ["-c", setting])

/** Keeps the user's and the system's settings out. */
const OWN_SETTINGS = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: devNull,
  // Before version 2.32 git does not know the variable above.
  HOME: devNull,
  XDG_CONFIG_HOME: devNull,
  GIT_ATTR_NOSYSTEM: "1",
}

export const createGit =
  (run: RunProcess): Git =>
  async (args, { cwd, gitFolder, index, stdin, isDurable = false }) => {
    // Rendering a long list and starting a process are two pieces of work for OpenCode's thread.
    await nextTurn()
    const outcome = await runGit(run, [...SETTINGS, ...(isDurable ? DURABLE : []), ...args], {
      cwd,
      deadlineMs: GIT_DEADLINE_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      env: { ...OWN_SETTINGS, GIT_DIR: gitFolder, GIT_WORK_TREE: cwd, GIT_INDEX_FILE: index },
      ...(stdin === undefined ? {} : { stdin }),
    })
    const name = args.find((arg) => /^[a-z]/.test(arg) && !arg.includes("="))
    if (outcome.kind === "not-started") {
      throw new RefusalError(refusals.noGit(`a pass that changes files needs git: ${outcome.cause}`))
    }
    if (outcome.kind === "timed-out") throw new Error(`git ${name} did not end within ${GIT_DEADLINE_MS} ms`)
    if (outcome.exitCode === 0) return outcome.stdout
    throw new Error(`git ${name}: ${cutText(outcome.stderr.trim(), COMPLAINT_CHARACTERS)}`)
  }

/** With the lock that a killed git left. */
export const removeIndex = async (index: string): Promise<void> => {
  for (const path of [index, `${index}.lock`]) await rm(path, { force: true })
}

/** Splits git's null-terminated list. */
export const parseList = (stdout: string): string[] => stdout.split("\0").filter((field) => field !== "")
export const renderList = (fields: readonly string[]): string => fields.map((field) => `${field}\0`).join("")

/** Absolute paths. In a linked worktree `gitFolder` is its own, and `common` that of all worktrees. */
export type Repository = { readonly top: string; readonly gitFolder: string; readonly common: string }

/** Finds the repository that a folder is in, by gitrepository-layout(5). @param folder real path */
export const findRepository = async (folder: string): Promise<Repository | undefined> => {
  for (let top = folder; ; top = dirname(top)) {
    const own = join(top, ".git")
    const gitFolder = (await findGitFolder(top)) ?? own
    const common = resolve(gitFolder, (await readGitText(join(gitFolder, "commondir"))) ?? ".")
    if ((await readGitText(join(gitFolder, "HEAD"))) !== undefined && existsSync(join(common, "objects")))
      return { top, gitFolder, common: await realpath(common) }
    if (gitFolder !== own || dirname(top) === top) return undefined
  }
}

/** Reads the user's list of files to ignore everywhere; reading settings runs none of them. */
export const findExcludesFile = async (run: RunProcess, cwd: string): Promise<string> => {
  const asked = await runGit(run, ["config", "--type=path", "--get", "core.excludesFile"], {
    cwd,
    deadlineMs: GIT_DEADLINE_MS,
  })
  const named = asked.kind === "exited" && asked.exitCode === 0 ? asked.stdout.replace(/\n$/, "") : ""
  if (named !== "") return named
  const { XDG_CONFIG_HOME: configured, HOME: home } = process.env
  const settings = configured || (home && join(home, ".config"))
  return settings ? join(settings, "git", "ignore") : devNull
}

const ATTRIBUTES = "* -text -eol -crlf -ident -filter -working-tree-encoding !diff\n"

/** Creates an empty repository, without starting a process. */
const createEmptyRepository = async (folder: string): Promise<void> => {
  for (const part of ["objects/info", "objects/pack", "refs/heads", "info"]) {
    await mkdir(join(folder, part), { recursive: true })
  }
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/main\n")
}

const quote = (value: string): string =>
  `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`

/** Lets a repository use another's objects. */
export const addAlternate = (folder: string, objects: string): Promise<void> =>
  writeFile(join(folder, "objects", "info", "alternates"), `${quote(objects)}\n`)

const isSha256 = (settings: readonly string[]): boolean =>
  settings.some((field) => field.toLowerCase() === "extensions.objectformat\nsha256")

/**
 * Creates a repository for snapshots, which takes every content as it is on the disk.
 *
 * @param exclude the user's list of files to ignore in this project
 */
export const createSnapshotRepository = async (folder: string, exclude?: string): Promise<void> => {
  await createEmptyRepository(folder)
  // A file system without case finds it under this name, too.
  const ignoresCase = existsSync(join(folder, "OBJECTS"))
  const darwin = process.platform === "darwin" ? "\tprecomposeUnicode = true\n" : ""
  await writeFile(join(folder, "config"), `[core]\n\tbare = false\n\tignoreCase = ${ignoresCase}\n${darwin}`)
  await writeFile(join(folder, "info", "attributes"), ATTRIBUTES)
  if (exclude !== undefined) await copyIfThere(exclude, join(folder, "info", "exclude"))
}

const copyIfThere = async (from: string, to: string): Promise<void> => {
  try {
    await copyFile(from, to)
    const { atime, mtime } = await stat(from)
    await utimes(to, atime, mtime)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

/** Settings of the user's repository about reading files. No remotes, hooks or credentials: nothing may leave a sandbox. */
const KEPT_SETTINGS =
  "^(core\\.(autocrlf|eol|safecrlf|ignorecase|precomposeunicode|symlinks|longpaths|filemode|excludesfile|attributesfile)$|user\\.|filter\\.|i18n\\.|diff\\.|merge\\.|extensions\\.objectformat$)"

/** Reads settings of the repository itself, each as a name, a line break, and a value. */
export const readSettings = async (git: Git, { top, gitFolder }: Repository): Promise<string[]> => {
  try {
    return parseList(await git(["config", "--local", "-z", "--get-regexp", KEPT_SETTINGS], { cwd: top, gitFolder }))
  } catch {
    // It has none of them.
    return []
  }
}

/** A repository of another kind of hash has no objects to lend. */
export const alternateObjects = ({ common }: Repository, settings: readonly string[]): string | undefined =>
  isSha256(settings) ? undefined : join(common, "objects")

const renderSetting = (field: string): string => {
  const [name = "", ...value] = field.split("\n")
  const first = name.indexOf(".")
  const last = name.lastIndexOf(".")
  const section = name.slice(0, first)
  const subsection = last > first ? ` ${quote(name.slice(first + 1, last))}` : ""
  return `[${section}${subsection}]\n\t${name.slice(last + 1)} = ${quote(value.join("\n"))}\n`
}

/**
 * Creates the sandbox's own repository, with the history, branches and index of the user's. The user's objects are its alternates; new objects and
 * all else stay in the sandbox: a commit, a stash or a reset there does not change the user's repository.
 *
 * @param folder the sandbox's `.git`
 * @param settings see `readSettings`
 */
export const createSandboxRepository = async (
  git: Git,
  folder: string,
  { repository, settings }: { repository: Repository | undefined; settings: readonly string[] },
): Promise<void> => {
  await createEmptyRepository(folder)
  if (repository === undefined) return
  const { top, gitFolder, common } = repository
  const refs = await git(["for-each-ref", "--format=%(objectname) %(refname)"], { cwd: top, gitFolder })
  const version = `\trepositoryFormatVersion = ${isSha256(settings) ? 1 : 0}\n`
  const core = `[core]\n${version}\tbare = false\n\tlogAllRefUpdates = true\n`
  await writeFile(join(folder, "config"), `${core}${settings.map(renderSetting).join("")}`)
  await addAlternate(folder, join(common, "objects"))
  await writeFile(join(folder, "HEAD"), await readOwnText(join(gitFolder, "HEAD"), { isForeign: true }))
  await writeFile(join(folder, "packed-refs"), `# pack-refs with: sorted\n${refs}`)
  await copyIfThere(join(common, "info", "exclude"), join(folder, "info", "exclude"))
  await copyIfThere(join(common, "shallow"), join(folder, "shallow"))
  await copyIfThere(join(gitFolder, "index"), join(folder, "index"))
  for (const name of await readdir(gitFolder)) {
    if (name.startsWith("sharedindex.")) await copyIfThere(join(gitFolder, name), join(folder, name))
  }
}
