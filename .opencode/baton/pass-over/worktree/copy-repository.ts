import { copyFile, mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { type Git, parseList } from "./git.ts"
import type { Repository } from "./repository.ts"

/** Settings of the user's repository about reading files. No remotes, hooks or credentials: nothing may leave a copy. */
const KEPT_SETTINGS =
  "^(core\\.(autocrlf|eol|safecrlf|ignorecase|precomposeunicode|symlinks|longpaths|filemode|excludesfile|attributesfile)$|user\\.|filter\\.|i18n\\.|diff\\.|merge\\.|extensions\\.objectformat$)"

const quote = (value: string): string =>
  `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`

/** Renders one field of `git config -z --get-regexp`: the name, a line break, the value. */
const renderSetting = (field: string): string => {
  const [name = "", ...value] = field.split("\n")
  const first = name.indexOf(".")
  const last = name.lastIndexOf(".")
  const section = name.slice(0, first)
  const subsection = last > first ? ` ${quote(name.slice(first + 1, last))}` : ""
  return `[${section}${subsection}]\n\t${name.slice(last + 1)} = ${quote(value.join("\n"))}\n`
}

/**
 * The copies have the originals' modes and times, but other inodes; `minimal` keeps git from reading every file at the first `git
 * status`.
 */
const renderConfig = (settings: readonly string[]): string => {
  const isSha256 = settings.some((field) => field.toLowerCase() === "extensions.objectformat\nsha256")
  const core = ["bare = false", "logAllRefUpdates = true", "checkStat = minimal", "trustCtime = false"]
  const version = `repositoryFormatVersion = ${isSha256 ? 1 : 0}`
  return `[core]\n${[version, ...core].map((line) => `\t${line}\n`).join("")}${settings.map(renderSetting).join("")}`
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

/** Creates an empty repository by gitrepository-layout(5), without starting a process. */
export const createEmptyRepository = async (folder: string): Promise<void> => {
  for (const part of ["objects/info", "refs/heads", "info"]) await mkdir(join(folder, part), { recursive: true })
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/main\n")
}

/** Copies the index, and the shared indexes of a split one. */
export const copyIndex = async ({ gitFolder, index }: Repository, folder: string): Promise<void> => {
  await copyIfThere(index, join(folder, "index"))
  const shared = (await readdir(gitFolder)).filter((name) => name.startsWith("sharedindex."))
  for (const name of shared) await copyIfThere(join(gitFolder, name), join(folder, name))
}

/**
 * Creates the copy's own repository, with the history, branches and index of the user's. Objects are borrowed; new objects and
 * all else stay in the copy: a commit, a stash or a reset there does not change the user's repository.
 *
 * @param folder the copy's `.git`
 */
export const createCopyRepository = async (git: Git, repository: Repository, folder: string): Promise<void> => {
  const { top, gitFolder, objects, exclude } = repository
  const [settings, refs] = await Promise.all([
    git(["config", "-z", "--get-regexp", KEPT_SETTINGS], { cwd: top }),
    git(["for-each-ref", "--format=%(objectname) %(refname)"], { cwd: top }),
    createEmptyRepository(folder),
  ])
  await writeFile(join(folder, "config"), renderConfig(settings.kind === "done" ? parseList(settings.stdout) : []))
  await writeFile(join(folder, "objects", "info", "alternates"), `${objects}\n`)
  await writeFile(join(folder, "HEAD"), await readFile(join(gitFolder, "HEAD")))
  const packed = refs.kind === "done" ? refs.stdout : ""
  await writeFile(join(folder, "packed-refs"), `# pack-refs with: sorted\n${packed}`)
  await copyIfThere(exclude, join(folder, "info", "exclude"))
  await copyIfThere(join(gitFolder, "shallow"), join(folder, "shallow"))
  await copyIndex(repository, folder)
}
