import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { removeFolder } from "../files/remove-folder.ts"
import { isolatedEnvironment, linkDependencies, PACKAGE_FILES, scriptedConfig } from "./isolated-opencode.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"

export type TestProject = {
  /** The project's folder; `home` is beside or around it, which isolates it from the machine. */
  readonly directory: string
  readonly home: string
  readonly environment: Record<string, string>
  read(path: string): string
  write(path: string, text: string): void
  /** OpenCode's own log files, concatenated. */
  log(): string
  /** The log lines written by the bundle. */
  batonLog(): string[]
  remove(): Promise<void>
}

export type ProjectOptions = {
  binary: OpenCodeBinary
  modelURL: string
  /** Places of the bundle: the project (default), and with "project-and-global" a second copy in the global config folder. */
  bundle?: "none" | "project" | "project-and-global"
  /** The bundle's plugin files in the project; default: all. */
  plugins?: readonly string[]
  /** Model limits in tokens. */
  context?: number
  output?: number
  config?: Record<string, unknown>
  environment?: Record<string, string>
  git?: boolean
  /** An existing shared home, such as that of a shared server. The project is created beside it. */
  home?: string
  /** The project's path below the temporary folder (default "project"); in "home/…" OpenCode shows it as ~/…. */
  folder?: string
}

/** Copies the files that `scripts/install` would copy: plugins, shared folder, prompts. */
export const copyBundle = (openCodeFolder: string, promptsFolder: string | undefined): void => {
  const source = join(REPOSITORY, ".opencode")
  for (const folder of ["plugins", "baton"]) {
    cpSync(join(source, folder), join(openCodeFolder, folder), { recursive: true })
  }
  renameSync(join(openCodeFolder, "baton", "ignore"), join(openCodeFolder, "baton", ".ignore"))
  if (promptsFolder) cpSync(join(REPOSITORY, "prompts"), promptsFolder, { recursive: true })
}

/**
 * Empties a project except for its plugins' packages: OpenCode 1.18 loads a folder again after its instance has ended, and
 * installs missing packages. The rest is removed with the home beside it.
 */
const emptyProject = async (directory: string): Promise<void> => {
  const kept = new Set([".opencode", ...PACKAGE_FILES])
  for (const folder of [directory, join(directory, ".opencode")])
    for (const name of readdirSync(folder)) if (!kept.has(name)) await removeFolder(join(folder, name))
}

const GIT_IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]

/** Creates a project in a temporary folder with an isolated HOME, ready for a real OpenCode. */
export const createTestProject = (options: ProjectOptions): TestProject => {
  const root = mkdtempSync(join(options.home === undefined ? tmpdir() : dirname(options.home), "baton-e2e-"))
  const directory = join(root, options.folder ?? "project")
  const home = options.home ?? join(root, "home")
  const bundle = options.bundle ?? "project"
  mkdirSync(directory, { recursive: true })
  mkdirSync(home, { recursive: true })
  const globalConfig = join(home, ".config", "opencode")
  const folders = [...(options.home === undefined ? [globalConfig] : []), join(directory, ".opencode")]
  for (const folder of folders) {
    linkDependencies(folder, options.binary.version, join(REPOSITORY, "node_modules"))
  }
  if (bundle !== "none") copyBundle(join(directory, ".opencode"), join(directory, "prompts"))
  const { plugins } = options
  if (bundle !== "none" && plugins) {
    const folder = join(directory, ".opencode", "plugins")
    for (const file of readdirSync(folder).filter((name) => !plugins.includes(name))) rmSync(join(folder, file))
  }
  if (bundle === "project-and-global") copyBundle(globalConfig, undefined)
  writeFileSync(
    join(directory, "opencode.json"),
    JSON.stringify({ ...scriptedConfig(options), ...options.config }, null, 2),
  )
  writeFileSync(join(directory, "README.md"), "# A project under test\n")
  if (options.git !== false) {
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", directory, ...GIT_IDENTITY, ...args], { stdio: "pipe" })
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "start")
  }
  const environment = { ...isolatedEnvironment({ home, directory }), ...options.environment }
  const logFolder = join(environment.XDG_DATA_HOME, "opencode", "log")
  const log = (): string =>
    readdirSync(logFolder)
      .sort()
      .map((name) => readFileSync(join(logFolder, name), "utf8"))
      .join("\n")
  return {
    directory,
    home,
    environment,
    read: (path) => readFileSync(join(directory, path), "utf8"),
    write: (path, text) => {
      mkdirSync(dirname(join(directory, path)), { recursive: true })
      writeFileSync(join(directory, path), text)
    },
    log,
    batonLog: () =>
      log()
        .split("\n")
        .filter((line) => line.includes("[baton.")),
    remove: () => (options.home === undefined ? removeFolder(root) : emptyProject(directory)),
  }
}
