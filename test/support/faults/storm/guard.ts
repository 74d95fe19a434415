import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { snapshotTree } from "../../files/folder-tree.ts"
import type { TestProject } from "../../opencode/test-project.ts"
import { SECRET_TEXT } from "../fault.ts"

/** Folders beside the project, which nobody has any business in; links in the project lead there. */
const GUARDED = ["sibling", "outside"]
/** Long ago, and before the change of the file: Linux notes the first reading after a change even where it notes no other. */
const READ_AT_SECONDS = 1_000_000_000
const CHANGED_AT_SECONDS = 1_500_000_000

export type Surroundings = {
  /** What lies beside the project, and all of the guarded folders. */
  readonly beside: Readonly<Record<string, string>>
  /** The project's own files and those of its repository, without what the bundle may write. */
  readonly project: Readonly<Record<string, string>>
}

const baitFiles = (root: string): string[] => GUARDED.map((folder) => join(root, folder, "secret.txt"))

/** What OpenCode and git themselves keep in a repository, and where the bundle writes. */
const NOT_THE_USERS = /^(?:\.git\/(?:opencode|index)|\.opencode\/(?:state|pass-over-logs))(?:\/|$)/

/** Lays out baits around a project, and tells whether anybody read or changed them. */
export const openGuard = ({ directory }: TestProject) => {
  const root = dirname(directory)
  for (const folder of GUARDED) {
    mkdirSync(join(root, folder))
    writeFileSync(join(root, folder, "secret.txt"), `${SECRET_TEXT}\n`)
  }
  mkdirSync(join(directory, "src"), { recursive: true })
  symlinkSync("../sibling", join(directory, "link-out"))
  symlinkSync("../../outside/secret.txt", join(directory, "src", "leak.txt"))

  /** From now on a reading of the baits shows. */
  const setBaits = (): void => {
    for (const path of baitFiles(root)) utimesSync(path, READ_AT_SECONDS, CHANGED_AT_SECONDS)
  }
  const wasRead = (path: string): boolean => statSync(path).atimeMs !== READ_AT_SECONDS * 1000

  return {
    setBaits,
    /** Baits that were read since they were set. Ask before `survey`, which reads them. */
    readBaits: (): string[] => baitFiles(root).filter(wasRead),
    survey: (): Surroundings => {
      const guarded = GUARDED.flatMap((folder) =>
        Object.entries(snapshotTree(join(root, folder))).map(([path, what]) => [join(folder, path), what] as const),
      )
      const beside = readdirSync(root).map((name) => [name, "there"] as const)
      const project = Object.entries(snapshotTree(directory)).filter(([path]) => !NOT_THE_USERS.test(path))
      return { beside: Object.fromEntries([...beside, ...guarded]), project: Object.fromEntries(project) }
    },
    /** Whether this file system tells of readings at all. */
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
