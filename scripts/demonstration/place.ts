import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { homedir, tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { createInterface } from "node:readline"
import { errorCode } from "../../.opencode/baton/host/log.ts"
import { signalIfThere } from "../../.opencode/baton/host/process.ts"
import { collectOutput } from "../../test/support/collect-output.ts"
import { isolatedEnvironment, linkDependencies, scriptedConfig } from "../../test/support/opencode/isolated-opencode.ts"
import type { Line } from "./line.ts"
import { PROJECT_FILES } from "./slug-project.ts"

export type DemoOptions = {
  /** The OpenCode that runs the agent. */
  opencode: string
  /** PROVIDER/MODEL of the user's own, instead of the scripted model. */
  model: string | undefined
  /** Absolute path of an empty or missing folder in which the project is kept. */
  keep: string | undefined
  withBaton: boolean
  line: Line
}

/** For OpenCode 2's server, which has one always. */
export const PASSWORD = "of-the-demo"

type ChildOptions = {
  stdin?: string
  /** Called with each line of standard output. */
  onLine?: (line: string) => void
  /** Kills the child and all of its process group at once, as a crash would. */
  crash?: AbortSignal | undefined
}

/** Set for the demo's own process; hidden from OpenCode. */
const DEMO_VARIABLE = /^(?:BUN_|DEMO_|BATON_|PROG_|FORCE_COLOR$)/

/**
 * The folders of one demo. With the user's own model, OpenCode runs in the user's environment for its keys and settings; only the
 * ledger stays in the demo's folder.
 *
 * @param signal ends each program that runs
 */
export const createPlace = (options: DemoOptions, signal: AbortSignal) => {
  const { keep, opencode } = options
  const repository = join(import.meta.dirname, "..", "..")
  const isOurs = !keep || !fs.existsSync(keep)
  if (keep) fs.mkdirSync(keep, { recursive: true })
  const root = fs.realpathSync(keep || fs.mkdtempSync(join(tmpdir(), "baton-demo-")))
  const [directory, home] = [join(root, "project"), join(root, "home")]
  for (const folder of [directory, home]) fs.mkdirSync(folder, { recursive: true })
  const isolated = { ...isolatedEnvironment({ home, directory }), BATON_RUNTIME: process.execPath }
  const users = Object.entries(process.env).filter(([name]) => !DEMO_VARIABLE.test(name))
  const own = { ...Object.fromEntries(users), PWD: directory, BATON_LEDGER: "embedded", PROG_DB: isolated.PROG_DB }
  const environment: NodeJS.ProcessEnv = options.model ? own : { ...isolated, OPENCODE_PASSWORD: PASSWORD }
  // Without the bundle prog is not on the agent's PATH; the comparison is about the task, not about a missing tool.
  if (!options.withBaton)
    environment.PATH = [join(repository, ".opencode", "baton", "bin"), environment.PATH].join(delimiter)

  /** Runs a program in its own process group. @throws the signal's reason, or why the program could not be started */
  const run = async ([program, ...args]: readonly string[], env: NodeJS.ProcessEnv, options: ChildOptions = {}) => {
    signal.throwIfAborted()
    const child = spawn(program ?? "", args, { cwd: directory, env, detached: true })
    const printed = collectOutput(child)
    if (options.onLine) createInterface(child.stdout).on("line", options.onLine)
    // A child that does not read its input closes the pipe early.
    child.stdin.on("error", () => undefined)
    child.stdin.end(options.stdin)
    const kill = (): void => {
      if (child.pid !== undefined) signalIfThere(-child.pid, "SIGKILL")
    }
    const ended = new AbortController()
    for (const end of [signal, options.crash]) end?.addEventListener("abort", kill, { signal: ended.signal })
    try {
      const [exitCode] = (await once(child, "close")) as [number | null]
      signal.throwIfAborted()
      return { exitCode, stdout: printed.stdout(), stderr: printed.stderr() }
    } finally {
      ended.abort()
    }
  }
  return {
    options,
    repository,
    /** The node_modules folder with the OpenCode that runs this program, the plugin package and the mock server. */
    packages: join(process.execPath, "..", "..", ".."),
    /** Everything the demo writes is below this folder, including the project. */
    root,
    directory,
    home,
    ledger: isolated.PROG_DB,
    /** Runs OpenCode as its user would. */
    openCode: (args: readonly string[], more?: ChildOptions) => run([opencode, ...args], environment, more),
    /** Runs a program of the demo, isolated from the user's home. */
    run: (...argv: string[]) => run(argv, isolated),
    /** Runs it as `run` does. @returns its output @throws when it fails */
    succeed: async (...argv: string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await run(argv, isolated)
      if (exitCode !== 0) throw new Error(`${argv.join(" ")} exited ${exitCode}: ${stderr.trim()}`)
      return stdout
    },
    /** Removes all that the demo created, but not a folder that existed before. */
    remove: (): void => {
      for (const folder of isOurs ? [root] : [directory, home]) fs.rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type Place = ReturnType<typeof createPlace>

/** Lowers the limit of one model; its other settings stay as the user has them. */
const ownModelConfig = (model: string) => {
  const [, provider = "", name = ""] = /^(.*?)\/(.*)$/.exec(model) ?? []
  // Small enough for several compactions on a small task, large enough for OpenCode's own prompt and tools.
  const limit = { context: 24_000, output: 4_000 }
  return {
    share: "disabled",
    autoupdate: false,
    // A question would wait forever, since the demo has no user to answer it.
    permission: { edit: "allow", bash: "allow", external_directory: "deny", task: "deny" },
    provider: { [provider]: { models: { [name]: { limit } } } },
  }
}

/**
 * Writes the project, commits it if git is installed, and installs Baton as a user would.
 *
 * @param modelURL the scripted model's, or undefined for the user's own model
 */
export const prepareProject = async (
  { options, repository, packages, directory, home, succeed }: Place,
  modelURL: string | undefined,
): Promise<void> => {
  const { model, opencode } = options
  const config = model ? ownModelConfig(model) : modelURL ? scriptedConfig({ modelURL, ...options.line.limit }) : {}
  const files = { ...PROJECT_FILES, "opencode.json": `${JSON.stringify(config, null, 2)}\n` }
  for (const [path, text] of Object.entries(files)) fs.writeFileSync(join(directory, path), text)
  const identity = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"]
  try {
    await succeed("git", "init", "-q", "-b", "main")
    await succeed("git", "add", "-A")
    await succeed("git", ...identity, "commit", "-q", "-m", "Begin")
  } catch (error) {
    // Git may not be installed.
    if (errorCode(error) !== "ENOENT") throw error
  }
  if (options.withBaton) await succeed(join(repository, "scripts", "install"), directory)
  const manifest = fs.readFileSync(join(packages, "@opencode-ai", "plugin", "package.json"), "utf8")
  const { version }: { version: string } = JSON.parse(manifest)
  // Another version of OpenCode would replace the linked packages; it installs its own.
  if (opencode === process.execPath) linkDependencies(join(directory, ".opencode"), version, packages)
  if (!model && options.line.number === 1) linkDependencies(join(home, ".config", "opencode"), version, packages)
}

/** Larger files are databases and downloads of other programs; reading them would take longer than the demo. */
const MAX_BYTES = 64 * 1024 * 1024
const SKIPPED = ["node_modules", ".git", ".cache"].flatMap((name) => ["-o", "-name", name])

/**
 * Files outside the demo's folder that are newer than its project and name that folder: in the checkout, where OpenCode, prog and
 * the bundle would write without isolation, and in the folder for temporary files. Other programs may write there too; only files
 * of this run name the demo's folder.
 */
export const findTraces = async ({ repository, root, directory, run }: Place): Promise<string[]> => {
  const fallbacks = { CONFIG: ".config", DATA: ".local/share", STATE: ".local/state", CACHE: ".cache" }
  const xdg = Object.entries(fallbacks).map(([name, fallback]) =>
    join(process.env[`XDG_${name}_HOME`] ?? join(homedir(), fallback), "opencode"),
  )
  const isNew = ["-type", "f", "-newer", join(directory, "package.json"), "-size", `-${MAX_BYTES}c`]
  const namesIt = [...isNew, "-exec", "grep", "-lF", root, "{}", "+"]
  const folders = [repository, join(homedir(), ".prog"), join(homedir(), ".opencode"), ...xdg]
  // A folder that is not there, and a file that has gone, are passed over.
  const below = await run("find", ...folders, "(", "-path", root, ...SKIPPED, ")", "-prune", "-o", ...namesIt)
  const temporary = await run("find", `${tmpdir()}/.`, "!", "-name", ".", "-prune", ...namesIt)
  return (below.stdout + temporary.stdout).split("\n").filter(Boolean)
}
