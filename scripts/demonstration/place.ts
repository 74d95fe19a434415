import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { createInterface } from "node:readline"
import { errorCode } from "../../.opencode/baton/host/log.ts"
import { signalIfThere } from "../../.opencode/baton/host/process.ts"
import { collectOutput } from "../../test/support/collect-output.ts"
import { isolatedEnvironment, linkDependencies, scriptedConfig } from "../../test/support/opencode/isolated-opencode.ts"
import { PROJECT_FILES } from "./slug-project.ts"

export type DemoOptions = {
  /** The OpenCode that runs the agent. */
  opencode: string
  /** PROVIDER/MODEL of the user's own, instead of the scripted model. */
  model: string | undefined
  /** Absolute path of an empty or missing folder in which the project is kept. */
  keep: string | undefined
  withBaton: boolean
}

type Argv = readonly [string, ...string[]]
type ChildResult = { exitCode: number | null; stdout: string; stderr: string }
type ChildOptions = {
  stdin?: string
  /** Called with each line of standard output. */
  onLine?: (line: string) => void
  /** Kills the child and all of its process group at once, as a crash would. */
  crash?: AbortSignal | undefined
}
type Surroundings = { cwd: string; env: Record<string, string>; signal: AbortSignal }

const KILL_AFTER_MS = 2_000

/**
 * Runs a program in its own process group and waits for its end. The signal ends it.
 *
 * @throws the signal's reason, or the reason why the program could not be started
 */
const runChild = async (
  [program, ...args]: Argv,
  { cwd, env, signal, stdin = "", onLine, crash }: ChildOptions & Surroundings,
): Promise<ChildResult> => {
  signal.throwIfAborted()
  const child = spawn(program, args, { cwd, env, detached: true })
  const printed = collectOutput(child)
  if (onLine) createInterface(child.stdout).on("line", onLine)
  // A child that does not read its input closes the pipe early.
  child.stdin.on("error", () => undefined)
  child.stdin.end(stdin)
  let timer: ReturnType<typeof setTimeout> | undefined
  const kill = (): void => {
    if (child.pid !== undefined) signalIfThere(-child.pid, "SIGKILL")
  }
  const stop = (): void => {
    child.kill("SIGTERM")
    timer = setTimeout(kill, KILL_AFTER_MS)
  }
  const ended = new AbortController()
  signal.addEventListener("abort", stop, { signal: ended.signal })
  crash?.addEventListener("abort", kill, { signal: ended.signal })
  try {
    const [exitCode] = (await once(child, "close")) as [number | null]
    signal.throwIfAborted()
    return { exitCode, stdout: printed.stdout(), stderr: printed.stderr() }
  } finally {
    clearTimeout(timer)
    ended.abort()
  }
}

/** Set for the demo's own process; hidden from OpenCode. */
const DEMO_VARIABLE = /^(?:BUN_|DEMO_|BATON_|PROG_|FORCE_COLOR$)/

const usersEnvironment = (): Record<string, string> => {
  const own = Object.entries(process.env).filter(([name]) => !DEMO_VARIABLE.test(name))
  return Object.fromEntries(own.map(([name, value = ""]) => [name, value]))
}

/**
 * The folders of one demo. With the user's own model, OpenCode runs in the user's environment for its keys and settings; only the
 * ledger stays in the demo's folder.
 */
export const createPlace = (options: DemoOptions, signal: AbortSignal) => {
  const { keep, opencode } = options
  const repository = join(import.meta.dirname, "..", "..")
  const isOurs = !keep || !existsSync(keep)
  if (keep) mkdirSync(keep, { recursive: true })
  const root = realpathSync(keep || mkdtempSync(join(tmpdir(), "baton-demo-")))
  const [directory, home] = [join(root, "project"), join(root, "home")]
  for (const folder of [directory, home]) mkdirSync(folder, { recursive: true })
  const isolated = { ...isolatedEnvironment({ home, directory }), BATON_RUNTIME: process.execPath }
  const ledger = isolated.PROG_DB
  const shared = { PWD: directory, BATON_LEDGER: "embedded", PROG_DB: ledger }
  const environment: Record<string, string> = options.model ? { ...usersEnvironment(), ...shared } : { ...isolated }
  // Without the bundle prog is not on the agent's PATH; the comparison is about the task, not about a missing tool.
  if (!options.withBaton)
    environment.PATH = [join(repository, ".opencode", "baton", "bin"), environment.PATH].join(delimiter)
  const run = (...argv: Argv) => runChild(argv, { cwd: directory, env: isolated, signal })
  return {
    options,
    repository,
    /** The node_modules folder with the OpenCode that runs this program, the plugin package and the mock server. */
    packages: join(process.execPath, "..", "..", ".."),
    /** Everything the demo writes is below this folder, including the project. */
    root,
    directory,
    home,
    ledger,
    /** Runs OpenCode as its user would. */
    openCode: (args: readonly string[], more?: ChildOptions) =>
      runChild([opencode, ...args], { cwd: directory, env: environment, signal, ...more }),
    /** Runs a program of the demo, isolated from the user's home. */
    run,
    /** Runs it as `run` does. @returns its output @throws when it fails */
    succeed: async (...argv: Argv): Promise<string> => {
      const { exitCode, stdout, stderr } = await run(...argv)
      if (exitCode !== 0) throw new Error(`${argv.join(" ")} exited ${exitCode}: ${stderr.trim()}`)
      return stdout
    },
    /** Removes all that the demo created, but not a folder that existed before. */
    remove: (): void => {
      for (const folder of isOurs ? [root] : [directory, home]) rmSync(folder, { recursive: true, force: true })
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

const commitAll = async (succeed: Place["succeed"]): Promise<void> => {
  try {
    await succeed("git", "init", "-q", "-b", "main")
  } catch (error) {
    // Git is not installed.
    if (errorCode(error) === "ENOENT") return
    throw error
  }
  await succeed("git", "add", "-A")
  const identity = ["user.name=Demo", "user.email=demo@example.invalid", "commit.gpgsign=false"]
  await succeed("git", ...identity.flatMap((setting) => ["-c", setting]), "commit", "-q", "-m", "Begin")
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
  const config = model ? ownModelConfig(model) : modelURL ? scriptedConfig({ modelURL }) : {}
  const files = { ...PROJECT_FILES, "opencode.json": `${JSON.stringify(config, null, 2)}\n` }
  for (const [path, text] of Object.entries(files)) writeFileSync(join(directory, path), text)
  await commitAll(succeed)
  if (options.withBaton) await succeed(join(repository, "scripts", "install"), directory)
  const manifest = readFileSync(join(packages, "@opencode-ai", "plugin", "package.json"), "utf8")
  const { version }: { version: string } = JSON.parse(manifest)
  // Another version of OpenCode would replace the linked packages; it installs its own.
  if (opencode === process.execPath) linkDependencies(join(directory, ".opencode"), version, packages)
  if (!model) linkDependencies(join(home, ".config", "opencode"), version, packages)
}
