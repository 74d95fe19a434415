import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs"
import { delimiter, dirname, isAbsolute, join, normalize } from "node:path"
import { NO_CATALOGUE, REPOSITORY } from "../../opencode/opencode-binary.ts"
import type { TestProject } from "../../opencode/test-project.ts"

/** Calls that name a file, in one file for each process, with the real path of what was opened. */
const STRACE = ["strace", "--seccomp-bpf", "-ff", "-qq", "-y", "-s", "400", "-e", "trace=%file"]

/** Where any program may look: the system, OpenCode's packages, and what this machine has on PATH. */
const SYSTEM = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/dev", "/run", "/var/lib"]

let answer: boolean | undefined

/** Whether calls can be traced here. */
export const canTrace = (): boolean => {
  answer ??= spawnSync("strace", [...STRACE.slice(1), "-o", "/dev/null", "true"], { stdio: "ignore" }).status === 0
  return answer
}

const traceFolder = ({ home }: Pick<TestProject, "home">): string => join(home, "trace")

/** A program in front of OpenCode that notes each file which it or a child of it names. */
export const tracingLauncher = (project: TestProject): string[] => {
  mkdirSync(traceFolder(project), { recursive: true })
  return [...STRACE, "-o", join(traceFolder(project), "calls")]
}

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    // A folder of PATH need not exist.
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
  NO_CATALOGUE.OPENCODE_MODELS_PATH,
  ...PACKAGES,
  ...PACKAGES.flatMap((folder) => PACKAGE_SETTINGS.map((name) => join(dirname(folder), name))),
  ...(process.env.PATH ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .flatMap((folder) => [folder, real(folder)]),
]

const isBelow = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** `call(AT_FDCWD</folder>, "path", …) = 3</real/path>`: the arguments, the result, and what was opened. */
const CALL = /^(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?/
const PATH_ARGUMENT = /(?:<(\/[^>]*)>, )?"((?:[^"\\]|\\.)+)"/g

/** Which of a call's texts are paths: a link's target is none until it is followed, nor are a program's arguments. */
const pathsOf = (call: string, texts: readonly string[]): readonly string[] => {
  if (/^(?:rename|link)/.test(call)) return texts.slice(0, 2)
  return call.startsWith("symlink") ? texts.slice(1, 2) : texts.slice(0, 1)
}

/** Files outside of project, home and system that a call named and found, each once. A lookup that finds nothing is none. */
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
    // Through a descriptor of O_PATH nothing can be read: it is how a path is found to lead outside (realpath).
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

/** What the traced runs of a project named outside of it. */
export const readForeignAccesses = (project: TestProject): string[] => {
  const folder = traceFolder(project)
  const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
  return findForeignAccesses(lines, project)
}
