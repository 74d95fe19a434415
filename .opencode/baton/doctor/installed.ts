import { createHash } from "node:crypto"
import { lstat, readdir } from "node:fs/promises"
import { isNotFound } from "../host/log.ts"
import { readOwnBytes, readOwnText } from "../host/untrusted.ts"

/** Written by scripts/install: SHA-256, size and path of each file that it put there; see docs/installation.md. */
const MANIFEST = ".opencode/baton/.manifest"
const BUNDLE = ".opencode/baton"

/** The file or folder of a path of the manifest. */
type Locate = (path: string) => string

/** Only paths that scripts/install writes, so that a manifest from elsewhere makes nothing else be read. */
const FILE_LINE =
  /^([0-9a-f]+)\t(\d+)\t((?:\.opencode\/(?:plugins|baton|prompts)|prompts)\/.+|\.opencode\/(?:pass-over\.json|\.npmignore(?:\.baton-new)?))$/

export type Manifest = {
  /** Baton's version from the first line; undefined if it has none. */
  readonly version: string | undefined
  /** SHA-256 by path, relative to the project. An interrupted installation leaves two for one path. */
  readonly files: ReadonlyMap<string, readonly string[]>
}

export const parseManifest = (text: string): Manifest => {
  const files = new Map<string, string[]>()
  for (const line of text.split("\n")) {
    const [, sum = "", , path] = FILE_LINE.exec(line) ?? []
    if (path === undefined || path.split("/").includes("..")) continue
    files.set(path, [...(files.get(path) ?? []), sum])
  }
  return { version: /^#.* Baton (\d\S*)$/m.exec(text)?.[1], files }
}

type State = "as installed" | "changed" | "missing"

const stateOf = async (path: string, sums: readonly string[]): Promise<State> => {
  try {
    if (!(await lstat(path)).isFile()) return "changed"
    const sum = createHash("sha256")
      .update(readOwnBytes(path, { isForeign: true }))
      .digest("hex")
    return sums.includes(sum) ? "as installed" : "changed"
  } catch (error) {
    return isNotFound(error) ? "missing" : "changed"
  }
}

/** Everything below the folder but folders, as paths of the manifest. */
export const filesBelow = async (at: Locate, folder: string): Promise<readonly string[]> => {
  const entries = await readdir(at(folder), { withFileTypes: true })
  const below = entries.map(async (entry) => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? await filesBelow(at, path) : [path]
  })
  return (await Promise.all(below)).flat()
}

/** Not loaded by anything: what an interrupted installation leaves, a version beside a file, what macOS leaves. */
const INERT = /\.baton-(?:tmp|new)$|\/\.DS_Store$/

export type Installed = {
  readonly manifest: Manifest
  readonly states: ReadonlyMap<string, State>
  /** Files in `.opencode/baton` that are not on the manifest. */
  readonly unlisted: readonly string[]
}

/** @returns undefined if there is no manifest: a checkout, or a manual copy */
export const readInstalled = async (at: Locate): Promise<Installed | undefined> => {
  let text: string
  try {
    text = await readOwnText(at(MANIFEST), { isForeign: true })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
  const manifest = parseManifest(text)
  const entries = [...manifest.files].map(async ([path, sums]) => [path, await stateOf(at(path), sums)] as const)
  const unlisted = (await filesBelow(at, BUNDLE)).filter(
    (path) => path !== MANIFEST && !manifest.files.has(path) && !INERT.test(path),
  )
  return { manifest, states: new Map(await Promise.all(entries)), unlisted }
}

/** Files that run when a plugin is imported; prompts and policy are the user's to change. */
export const isCode = (path: string): boolean => /^\.opencode\/(?:plugins|baton)\//.test(path)

/** @returns the paths, below `.opencode`, of files and folders that another account (but root) owns */
export const ownedByOthers = async (at: Locate, paths: readonly string[]): Promise<readonly string[]> => {
  const account = process.getuid?.()
  if (account === undefined) return []
  const folders = paths.flatMap((path) => path.split("/").map((_, at, names) => names.slice(0, at + 1).join("/")))
  const all = [...new Set(folders)]
  const owners = await Promise.all(all.map(async (path) => (await lstat(at(path))).uid))
  return all.filter((_, at) => owners[at] !== account && owners[at] !== 0)
}
