import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { snapshotTree } from "../../files/folder-tree.ts"
import type { TestProject } from "../../opencode/test-project.ts"
import { SECRET_TEXT } from "../fault.ts"

/** Folders beside the project that must not be read; links in the project lead there. */
const GUARDED = ["sibling", "outside"]
/** An old access time, before the file's change: Linux then records the next read even if it records no later ones. */
const READ_AT_SECONDS = 1_000_000_000
const CHANGED_AT_SECONDS = 1_500_000_000

export type Surroundings = {
  /** Entries beside the project, and all of the guarded folders. */
  readonly beside: Readonly<Record<string, string>>
  /** The files of the project and its repository, without those the bundle may write. */
  readonly project: Readonly<Record<string, string>>
}

/** Files that OpenCode and git keep in a repository, and folders that the bundle writes. */
const NOT_THE_USERS = /^(?:\.git\/(?:opencode|index)|\.opencode\/(?:state|pass-over-logs))(?:\/|$)/

export const surveyAround = ({ directory }: Pick<TestProject, "directory">): Surroundings => {
  const root = dirname(directory)
  const beside = Object.fromEntries(readdirSync(root).map((name) => [name, "there"]))
  for (const folder of GUARDED.filter((name) => existsSync(join(root, name))))
    for (const [path, what] of Object.entries(snapshotTree(join(root, folder)))) beside[join(folder, path)] = what
  const project = Object.entries(snapshotTree(directory)).filter(([path]) => !NOT_THE_USERS.test(path))
  return { beside, project: Object.fromEntries(project) }
}

/** Puts baits around a project and tells whether they were read. */
export const openGuard = ({ directory }: TestProject) => {
  const root = dirname(directory)
  const baits = GUARDED.map((folder) => join(root, folder, "secret.txt"))
  for (const bait of baits) {
    mkdirSync(dirname(bait))
    writeFileSync(bait, `${SECRET_TEXT}\n`)
  }
  mkdirSync(join(directory, "src"), { recursive: true })
  symlinkSync("../sibling", join(directory, "link-out"))
  symlinkSync("../../outside/secret.txt", join(directory, "src", "leak.txt"))

  /** Resets the access times: later reads of the baits are seen. */
  const setBaits = (): void => {
    for (const path of baits) utimesSync(path, READ_AT_SECONDS, CHANGED_AT_SECONDS)
  }
  /** Baits that were read since they were set. Must be called before `surveyAround`, which reads them. */
  const readBaits = (): string[] => baits.filter((path) => statSync(path).atimeMs !== READ_AT_SECONDS * 1000)

  return {
    setBaits,
    readBaits,
    /** Tells whether this file system records reads. */
    canSeeReads: (): boolean => {
      setBaits()
      for (const path of baits) readFileSync(path)
      return readBaits().length > 0
    },
  }
}
