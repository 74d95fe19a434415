import { existsSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { isAbsent } from "../../host/log.ts"
import { hasContractComment } from "../../task/prompts.ts"
import { posixChecksum } from "../checksum.ts"
import { broken, type Check, type Observation, ok, type Subject, warning } from "../finding.ts"
import { type Manifest, readManifest } from "../manifest.ts"

type State = "as installed" | "changed" | "missing"

const PENDING = /\.baton-new$/
const PROMPT = /^(?:\.opencode\/)?prompts\//
const REINSTALL = "Run scripts/install again from a checkout of Baton"

const stateOf = async (path: string, sums: readonly { crc: number; size: number }[]): Promise<State> => {
  let bytes: Uint8Array
  try {
    if (!(await stat(path)).isFile()) return "changed"
    bytes = await readFile(path)
  } catch (error) {
    return isAbsent(error) ? "missing" : "changed"
  }
  const { crc, size } = posixChecksum(bytes)
  return sums.some((sum) => sum.crc === crc && sum.size === size) ? "as installed" : "changed"
}

const name = (paths: readonly string[]): string =>
  paths.length <= 5 ? paths.join(", ") : `${paths.slice(0, 5).join(", ")} and ${paths.length - 5} more`

/** A file in a folder of prompts, without the comment that makes it Baton's. */
const isProjectsOwn = async (root: string, path: string): Promise<boolean> => {
  if (!PROMPT.test(path)) return false
  try {
    return !hasContractComment(await readFile(join(root, path), "utf8"))
  } catch {
    // Gone or unreadable: there is nothing of the user's to lose, and the check of prompts tells of it.
    return false
  }
}

const judgePending = async (root: string, pending: readonly string[]): Promise<readonly Observation[]> => {
  const own = await Promise.all(pending.map((path) => isProjectsOwn(root, path.replace(PENDING, ""))))
  const besideOwn = pending.filter((_, index) => own[index])
  const newer = pending.filter((_, index) => !own[index])
  return [
    ...(newer.length > 0
      ? [
          warning(
            `a newer version waits beside your own file: ${name(newer)}`,
            "Merge it into your file and delete it, or rename it over yours.",
          ),
        ]
      : []),
    ...(besideOwn.length > 0
      ? [
          warning(
            `a version of Baton's lies beside the project's own file: ${name(besideOwn)}`,
            "Delete it: your file is left alone. If that is meant for Baton, take over what is new first, its comment too.",
          ),
        ]
      : []),
  ]
}

const compare = async (root: string, manifest: Manifest): Promise<readonly Observation[]> => {
  const paths = [...manifest.files.keys()]
  const states = await Promise.all(paths.map((path) => stateOf(join(root, path), manifest.files.get(path) ?? [])))
  const inState = (state: State) => paths.filter((_, index) => states[index] === state)
  const missing = inState("missing").filter((path) => !PENDING.test(path))
  const code = missing.filter((path) => !PROMPT.test(path))
  const prompts = missing.filter((path) => PROMPT.test(path))
  const pending = paths.filter((path) => PENDING.test(path) && existsSync(join(root, path)))
  const changed = inState("changed").filter((path) => !PENDING.test(path))
  const halfway = paths.some((path) => (manifest.files.get(path)?.length ?? 0) > 1)
  const version = `Baton ${manifest.version ?? "of unknown version"}, ${paths.length} files`
  return [
    ...(code.length > 0 ? [broken(`files of Baton are missing: ${name(code)}`, `${REINSTALL}.`)] : []),
    ...(halfway
      ? [broken("an installation was interrupted halfway", `${REINSTALL}; it takes up where it stopped.`)]
      : []),
    ...(prompts.length > 0
      ? [warning(`prompts were removed: ${name(prompts)}`, `${REINSTALL} to have them back.`)]
      : []),
    ...(await judgePending(root, pending)),
    ok(changed.length > 0 ? `${version}; changed since the installation: ${name(changed)}` : `${version}, unchanged`),
  ]
}

const withoutManifest = ({ root }: Subject): Observation =>
  existsSync(join(root, ".opencode", "baton"))
    ? ok("not installed by scripts/install (a checkout or a copy made by hand), so changes cannot be told")
    : broken(
        `no Baton in ${root}: there is no .opencode/baton`,
        "Run scripts/install with this folder from a checkout.",
      )

/** Files against the manifest of scripts/install. A file the user changed is information, not a fault. */
export const filesCheck: Check = {
  id: "files",
  examine: async (subject) => {
    const manifest = await readManifest(subject.root)
    return manifest === undefined ? [withoutManifest(subject)] : await compare(subject.root, manifest)
  },
}
