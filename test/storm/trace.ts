import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs"
import { delimiter, dirname, isAbsolute, join, normalize } from "node:path"
import { QUICK_START, REPOSITORY } from "../support/opencode/opencode-binary.ts"
import type { TestProject } from "../support/opencode/test-project.ts"

/** Records calls that name a file, one trace file for each process, with the real path of each opened file. */
const STRACE = ["strace", "--seccomp-bpf", "-ff", "-qq", "-y", "-s", "400", "-e", "trace=%file"]

/** Folders that any program may read: the system, OpenCode's packages, and the folders of PATH. */
const SYSTEM = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/run", "/var/lib"]

let answer: boolean | undefined

export const canTrace = (): boolean =>
  (answer ??= spawnSync("strace", [...STRACE.slice(1), "-o", "/dev/null", "true"], { stdio: "ignore" }).status === 0)

const traceFolder = ({ home }: Pick<TestProject, "home">): string => join(home, "trace")

/** A launcher for OpenCode that records each file named by it or its children. */
export const tracingLauncher = (project: TestProject): string[] => {
  mkdirSync(traceFolder(project), { recursive: true })
  return [...STRACE, "-o", join(traceFolder(project), "calls")]
}

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Bun looks for settings in the folder around the packages. */
const PACKAGES = [...new Set([join(REPOSITORY, "node_modules"), real(join(REPOSITORY, "node_modules"))])]
const PACKAGE_SETTINGS = ["package.json", "tsconfig.json"]

const allowedFolders = ({ directory, home }: Pick<TestProject, "directory" | "home">): string[] => [
  ...SYSTEM,
  directory,
  home,
  QUICK_START.OPENCODE_MODELS_PATH,
  ...PACKAGES,
  ...PACKAGES.flatMap((folder) => PACKAGE_SETTINGS.map((name) => join(dirname(folder), name))),
  ...(process.env.PATH ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .flatMap((folder) => [folder, real(folder)]),
]

const isBelow = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** `call(AT_FDCWD</folder>, "path", …) = 3</real/path>`: the arguments, the result, and the opened file. */
const CALL = /^(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?/
const PATH_ARGUMENT = /(?:<(\/[^>]*)>, )?"((?:[^"\\]|\\.)+)"/g

/** The texts of a call that are paths: not a link's target before it is followed, and not a program's arguments. */
const pathsOf = (call: string, texts: readonly string[]): readonly string[] => {
  if (/^(?:rename|link)/.test(call)) return texts.slice(0, 2)
  return call.startsWith("symlink") ? texts.slice(1, 2) : texts.slice(0, 1)
}

/** Files outside of project, home and system that a call named and found, without duplicates. Failed lookups do not count. */
export const findForeignAccesses = (
  lines: readonly string[],
  project: Pick<TestProject, "directory" | "home">,
): string[] => {
  const allowed = allowedFolders(project)
  const places = [project.directory, ...PACKAGES]
  const isAncestor = (path: string) => path === "/" || places.some((place) => isBelow(path, place))
  const isForeign = (path: string) => !isAncestor(path) && !allowed.some((folder) => isBelow(folder, path))
  const found = lines.flatMap((line) => {
    const [, call = "", argumentsText = "", result = "-1", opened] = CALL.exec(line) ?? []
    // A descriptor opened with O_PATH cannot be read; realpath uses it to find that a path leads outside.
    if (Number(result) < 0 || /\bO_PATH\b/.test(argumentsText)) return []
    const texts = [...argumentsText.matchAll(PATH_ARGUMENT)].map(([, folder = project.directory, path = ""]) =>
      normalize(isAbsolute(path) ? path : join(folder, path)).replace(/(.)\/$/, "$1"),
    )
    return [...pathsOf(call, texts), ...(opened?.startsWith("/") ? [opened.replace(/ \(deleted\)$/, "")] : [])]
      .filter(isForeign)
      .map((each) => `${call} ${each}`)
  })
  return [...new Set(found)].sort()
}

/** Reads the foreign files that the traced runs of a project named. */
export const readForeignAccesses = (project: TestProject): string[] => {
  const folder = traceFolder(project)
  const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
  return findForeignAccesses(lines, project)
}
