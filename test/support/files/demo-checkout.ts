import { execFileSync, spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { collectOutput } from "../collect-output.ts"
import { REPOSITORY } from "../opencode/opencode-binary.ts"

/** The parts of a clone that the demo needs, without node_modules and cache. */
const PARTS = [
  ".opencode/plugins",
  ".opencode/baton",
  "prompts",
  "scripts",
  "test/support",
  "package.json",
  "package-lock.json",
]

type DemoRun = { exitCode: number | null; stdout: string; stderr: string; lines: string[] }

type DemoRunOptions = {
  environment?: Record<string, string>
  /** Called with the demo's pid at each new output. */
  onOutput?: (stdout: string, pid: number) => void
}

/** Reads npm's own settings of this machine: the source of packages is not under test. */
const npmSetting = (name: string): string =>
  execFileSync("npm", ["config", "get", name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()

/** Files as git sees them, without installed or generated ones. */
const trackedFiles = (): string[] =>
  execFileSync("git", ["-C", REPOSITORY, "ls-files", "-z", "-co", "--exclude-standard", "--", ...PARTS], {
    encoding: "utf8",
  })
    .split("\0")
    .filter(Boolean)

/** A copy of the repository on a machine with Node and npm only: no Bun, no OpenCode, no prog on PATH. */
export const createDemoCheckout = () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "baton-demo-e2e-")))
  const [source, home, temporary] = [join(root, "checkout"), join(root, "home"), join(root, "tmp")]
  for (const folder of [source, home, temporary]) mkdirSync(folder)
  for (const path of trackedFiles()) cpSync(join(REPOSITORY, path), join(source, path))
  const environment = {
    PATH: [dirname(process.execPath), "/usr/bin", "/bin"].join(":"),
    HOME: home,
    TMPDIR: temporary,
    TERM: "xterm",
    npm_config_userconfig: npmSetting("userconfig"),
    npm_config_cache: npmSetting("cache"),
  }
  return {
    root,
    /** Replaces a fresh clone. */
    source,
    home,
    /** TMPDIR of every run. */
    temporary,
    environment,
    /** Files that the demo left in its TMPDIR. */
    leftovers: () => readdirSync(temporary).filter((name) => name.startsWith("baton-")),
    remove: () => rmSync(root, { recursive: true, force: true }),
    demo: (args: readonly string[], options: DemoRunOptions = {}): Promise<DemoRun> =>
      new Promise((resolve, reject) => {
        const child = spawn(join(source, "scripts", "demo"), args, {
          cwd: root,
          env: { ...environment, ...options.environment },
          stdio: ["ignore", "pipe", "pipe"],
          // A process group of its own, as in a terminal.
          detached: true,
        })
        const printed = collectOutput(child, (stdout) => options.onOutput?.(stdout, child.pid ?? -1))
        child.on("error", reject)
        child.on("close", (exitCode) => {
          const stdout = printed.stdout()
          resolve({ exitCode, stdout, stderr: printed.stderr(), lines: stdout.split("\n") })
        })
      }),
  }
}

export type DemoCheckout = ReturnType<typeof createDemoCheckout>
