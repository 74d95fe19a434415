import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { zodFiles } from "../../../scripts/lib/zod.mjs"
import { removeFolder } from "../files/folder-tree.ts"
import { isolatedEnvironment, linkDependencies, PACKAGE_FILES, scriptedConfig } from "./isolated-opencode.ts"
import { isLine2, NEWEST, type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"

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
  /** More files, by path. */
  files?: Readonly<Record<string, string>>
  /** An existing shared home, such as that of a shared server. The project is created beside it. */
  home?: string
  /** The project's path below the temporary folder (default "project"); in "home/…" OpenCode shows it as ~/…. */
  folder?: string
}

/** In two thirds of the time of `cpSync`. */
const copyFolder = (from: string, to: string): void => {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const copy = entry.isDirectory() ? copyFolder : copyFileSync
    copy(join(from, entry.name), join(to, entry.name))
  }
}

/** Copies the files that `scripts/install` would copy: plugins, shared folder, prompts. */
export const copyBundle = (openCodeFolder: string, promptsFolder: string | undefined): void => {
  const source = join(REPOSITORY, ".opencode")
  for (const folder of ["plugins", "baton"]) copyFolder(join(source, folder), join(openCodeFolder, folder))
  renameSync(join(openCodeFolder, "baton", "ignore"), join(openCodeFolder, "baton", ".ignore"))
  if (promptsFolder) copyFolder(join(REPOSITORY, "prompts"), promptsFolder)
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

export const GIT_IDENTITY = ["user.name=Test", "user.email=test@example.invalid", "commit.gpgsign=false"].flatMap(
  (setting) => ["-c", setting],
)

/** Stores the files of a commit in one pack, uncompressed: a third of the work of a file each. */
const ONE_PACK = ["-c", "core.compression=0", "-c", "core.bigFileThreshold=1"]

/** Adds the packages that the installer brings along, since OpenCode 2 installs none. */
export const carryZod = (directory: string): void => {
  for (const [path, content] of zodFiles(REPOSITORY)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
}

/** Creates the global configuration folder; for an older OpenCode 1 with test/fixtures/distinct-times.ts. */
export const setUpHome = (home: string, { version }: OpenCodeBinary): void => {
  const folder = join(home, ".config", "opencode")
  if (isLine2({ version })) {
    mkdirSync(folder, { recursive: true })
    return
  }
  linkDependencies(folder, version, join(REPOSITORY, "node_modules"))
  if (version === NEWEST.version) return
  mkdirSync(join(folder, "plugins"))
  copyFileSync(join(REPOSITORY, "test/fixtures/distinct-times.ts"), join(folder, "plugins", "distinct-times.ts"))
}

/** Creates a project in a temporary folder with an isolated HOME, ready for a real OpenCode. */
export const createTestProject = (options: ProjectOptions): TestProject => {
  const root = mkdtempSync(join(options.home === undefined ? tmpdir() : dirname(options.home), "baton-e2e-"))
  const directory = join(root, options.folder ?? "project")
  const openCode = join(directory, ".opencode")
  const home = options.home ?? join(root, "home")
  const globalConfig = join(home, ".config", "opencode")
  const { bundle = "project", plugins } = options
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  if (options.home === undefined) setUpHome(home, options.binary)
  const is2 = isLine2(options.binary)
  if (!is2) linkDependencies(openCode, options.binary.version, join(REPOSITORY, "node_modules"))
  mkdirSync(openCode, { recursive: true })
  if (is2 && bundle !== "none") carryZod(directory)
  if (bundle !== "none") copyBundle(openCode, join(directory, "prompts"))
  if (bundle !== "none" && plugins)
    for (const name of readdirSync(join(openCode, "plugins")))
      if (!plugins.includes(name)) rmSync(join(openCode, "plugins", name))
  if (bundle === "project-and-global") copyBundle(globalConfig, undefined)
  const config = JSON.stringify({ ...scriptedConfig(options), ...options.config }, null, 2)
  const files = { "opencode.json": config, "README.md": "# A project under test\n", ...options.files }
  for (const [path, text] of Object.entries(files)) write(path, text)
  for (const args of [
    ["init", "-q", "-b", "main", "--template="],
    ["add", "-A"],
    ["commit", "-q", "-m", "start"],
  ])
    if (options.git !== false)
      execFileSync("git", ["-C", directory, ...GIT_IDENTITY, ...ONE_PACK, ...args], { stdio: "pipe" })
  const environment = { ...isolatedEnvironment({ home, directory }), ...options.environment }
  const logFolder = join(environment.XDG_DATA_HOME, "opencode", "log")
  const log = (): string => {
    const names = readdirSync(logFolder).sort()
    return names.map((name) => readFileSync(join(logFolder, name), "utf8")).join("\n")
  }
  return {
    directory,
    home,
    environment,
    read: (path) => readFileSync(join(directory, path), "utf8"),
    write,
    log,
    batonLog: () =>
      log()
        .split("\n")
        .filter((line) => line.includes("[baton.")),
    remove: () => (options.home === undefined ? removeFolder(root) : emptyProject(directory)),
  }
}
