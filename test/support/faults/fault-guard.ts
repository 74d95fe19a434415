import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { snapshotTree } from "../files/folder-tree.ts"
import type { TestProject } from "../opencode/test-project.ts"
import { SECRET_TEXT } from "./fault.ts"

/** Folders beside the project that must not be read; links in the project lead there. */
const GUARDED = ["sibling", "outside"]
/** An old access time, before the file's change: Linux then records the next read even if it records no later ones. */
const READ_AT_SECONDS = 1_000_000_000
const CHANGED_AT_SECONDS = 1_500_000_000

/**
 * By path: entries beside the project and all of the guarded folders; the files of the project and its repository, without those
 * the bundle may write.
 */
export type Surroundings = Readonly<Record<"beside" | "project", Readonly<Record<string, string>>>>

/** Files that OpenCode and git keep in a repository, and folders that the bundle writes. */
const NOT_THE_USERS = /^(?:\.git\/(?:opencode|index)|\.opencode\/(?:state|pass-over-logs))(?:\/|$)/

export const surveyAround = ({ directory }: Pick<TestProject, "directory">): Surroundings => {
  const root = dirname(directory)
  const beside = Object.fromEntries(fs.readdirSync(root).map((name) => [name, "there"]))
  for (const folder of GUARDED.filter((name) => fs.existsSync(join(root, name))))
    for (const [path, what] of Object.entries(snapshotTree(join(root, folder)))) beside[join(folder, path)] = what
  const project = Object.entries(snapshotTree(directory)).filter(([path]) => !NOT_THE_USERS.test(path))
  return { beside, project: Object.fromEntries(project) }
}

/** Puts baits around a project and tells whether they were read. */
export const openGuard = ({ directory }: TestProject) => {
  const root = dirname(directory)
  const baits = GUARDED.map((folder) => join(root, folder, "secret.txt"))
  for (const bait of baits) {
    fs.mkdirSync(dirname(bait))
    fs.writeFileSync(bait, `${SECRET_TEXT}\n`)
  }
  fs.mkdirSync(join(directory, "src"), { recursive: true })
  fs.symlinkSync("../sibling", join(directory, "link-out"))
  fs.symlinkSync("../../outside/secret.txt", join(directory, "src", "leak.txt"))

  /** Resets the access times: later reads of the baits are seen. */
  const setBaits = (): void => {
    for (const path of baits) fs.utimesSync(path, READ_AT_SECONDS, CHANGED_AT_SECONDS)
  }
  /** Baits that were read since they were set. Must be called before `surveyAround`, which reads them. */
  const readBaits = (): string[] => baits.filter((path) => fs.statSync(path).atimeMs !== READ_AT_SECONDS * 1000)

  return {
    setBaits,
    readBaits,
    /** This file system records reads. */
    canSeeReads: (): boolean => {
      setBaits()
      for (const path of baits) fs.readFileSync(path)
      return readBaits().length > 0
    },
  }
}
