import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
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

const baitFiles = (root: string): string[] => GUARDED.map((folder) => join(root, folder, "secret.txt"))

/** Files that OpenCode and git keep in a repository, and folders that the bundle writes. */
const NOT_THE_USERS = /^(?:\.git\/(?:opencode|index)|\.opencode\/(?:state|pass-over-logs))(?:\/|$)/

/** Puts baits around a project and tells whether they were read or changed. */
export const openGuard = ({ directory }: TestProject) => {
  const root = dirname(directory)
  for (const folder of GUARDED) {
    mkdirSync(join(root, folder))
    writeFileSync(join(root, folder, "secret.txt"), `${SECRET_TEXT}\n`)
  }
  mkdirSync(join(directory, "src"), { recursive: true })
  symlinkSync("../sibling", join(directory, "link-out"))
  symlinkSync("../../outside/secret.txt", join(directory, "src", "leak.txt"))

  /** Resets the access times: later reads of the baits are seen. */
  const setBaits = (): void => {
    for (const path of baitFiles(root)) utimesSync(path, READ_AT_SECONDS, CHANGED_AT_SECONDS)
  }
  const wasRead = (path: string): boolean => statSync(path).atimeMs !== READ_AT_SECONDS * 1000

  return {
    setBaits,
    /** Baits that were read since they were set. Must be called before `survey`, which reads them. */
    readBaits: (): string[] => baitFiles(root).filter(wasRead),
    survey: (): Surroundings => {
      const guarded = GUARDED.flatMap((folder) =>
        Object.entries(snapshotTree(join(root, folder))).map(([path, what]) => [join(folder, path), what] as const),
      )
      const beside = readdirSync(root).map((name) => [name, "there"] as const)
      const project = Object.entries(snapshotTree(directory)).filter(([path]) => !NOT_THE_USERS.test(path))
      return { beside: Object.fromEntries([...beside, ...guarded]), project: Object.fromEntries(project) }
    },
    /** Tells whether this file system records reads. */
    canSeeReads: (): boolean => {
      const [path = ""] = baitFiles(root)
      setBaits()
      readFileSync(path)
      const canSee = wasRead(path)
      setBaits()
      return canSee
    },
  }
}

export type Guard = ReturnType<typeof openGuard>
