import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import { scriptedAgent } from "../../../scripts/demonstration/scripted-agent.ts"
import { promised } from "../../requirements.ts"
import { collectOutput } from "../../support/collect-output.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import { deadline, IS_NIGHT, NEWEST, REPOSITORY, startScriptedModel } from "../../support/index.ts"
import { linkDependencies, scriptedConfig } from "../../support/opencode/isolated-opencode.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

/** An installation and two dozen turns of OpenCode, on a busy machine. */
const DEMO_TIMEOUT_MS = deadline(400_000)

/** The parts of a clone that the demo needs, without node_modules and cache. */
const PARTS = ".opencode/plugins .opencode/baton prompts scripts test/support package.json package-lock.json".split(" ")

/** Reads npm's own settings of this machine: the source of packages is not under test. */
const npmSetting = (name: string): string =>
  execFileSync("npm", ["config", "get", name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()

/** A copy of the repository on a machine with Node and npm only: no Bun, no OpenCode, no prog on PATH. */
const createCheckout = () => {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "baton-demo-e2e-")))
  const [source, home, temporary] = [join(root, "checkout"), join(root, "home"), join(root, "tmp")]
  for (const folder of [source, home, temporary]) fs.mkdirSync(folder)
  // As git sees them, without installed or generated files.
  const listed = ["-C", REPOSITORY, "ls-files", "-z", "-co", "--exclude-standard", "--", ...PARTS]
  for (const path of execFileSync("git", listed, { encoding: "utf8" }).split("\0").filter(Boolean))
    if (fs.existsSync(join(REPOSITORY, path))) fs.cpSync(join(REPOSITORY, path), join(source, path))
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
    source,
    home,
    environment,
    /** Files that the demo left in its TMPDIR. */
    leftovers: () => fs.readdirSync(temporary).filter((name) => name.startsWith("baton-")),
    /** @param onOutput is called with all of the output so far and the demo's pid */
    demo: async (args: readonly string[], more = {}, onOutput?: (stdout: string, pid: number) => void) => {
      const env = { ...environment, ...more }
      // A process group of its own, as in a terminal.
      const child = spawn(join(source, "scripts", "demo"), args, { cwd: root, env, stdio: "pipe", detached: true })
      child.stdin.end()
      const printed = collectOutput(child, (stdout) => onOutput?.(stdout, child.pid ?? -1))
      const [exitCode] = (await once(child, "close")) as [number | null]
      return { exitCode, stdout: printed.stdout(), stderr: printed.stderr(), lines: printed.stdout().split("\n") }
    },
  }
}

let checkout: ReturnType<typeof createCheckout>
beforeAll(() => {
  checkout = createCheckout()
})
afterAll(() => fs.rmSync(checkout.root, { recursive: true, force: true }))

const claimsIn = (stdout: string): string[] =>
  stdout.slice(stdout.indexOf("  Checked\n")).match(/^ {3}[✓✗·].*$/gm) ?? []

// In this order: the first run installs the packages, the others find them.
describe("the demo on a machine with Node and npm only", () => {
  test(
    promised(
      ["repo.A2", "install.E3", "start.A6"],
      "the demo on a machine with Node and npm only sets itself up, compacts four times, goes on after kill -9, holds every claim, keeps the project",
    ),
    async () => {
      const kept = join(checkout.root, "kept")
      const { exitCode, stdout, stderr, lines } = await checkout.demo(["--keep", "kept"])
      expect(exitCode, stdout + stderr).toBe(0)
      expect(stderr).toMatch(/Installing OpenCode.*MB/)
      expect(new Set(claimsIn(stdout).map((line) => line.trim()[0]))).toEqual(new Set(["✓"]))
      for (let number = 1; number <= 4; number++) {
        expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^ {3}▼ compaction ${number} `)))
        expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^ {3}\\d\\d:\\d\\d:\\d\\d {2}${number} {2}\\S`)))
      }
      expect(stdout).toMatch(/^ {3}✗ kill -9 .* opencode run "Task: ts-[0-9a-f]{6}"$/m)
      expect(stdout).toMatch(/^ {3}after kill -9, in a new session( +✓){7}$/m)
      expect(stdout).toMatch(/^ {3}› And delete slugify\.js .*↶ undone$/m)
      expect(stdout).toMatch(/^ +user's words │ /m)
      expect(stdout).toMatch(/^scripted .*the model/m)
      expect(stderr).not.toContain("\u001b")
      expect(stdout).not.toContain("\u001b")

      const project = join(kept, "project")
      // OpenCode would have created a folder there if it had installed anything.
      expect(fs.lstatSync(join(project, ".opencode", "node_modules")).isSymbolicLink()).toBe(true)
      const { status } = spawnSync("node", ["--test"], { cwd: project, env: checkout.environment })
      expect(status).toBe(0)
      expect(fs.readFileSync(join(project, "slugify.js"), "utf8")).toContain('.replaceAll("ß", "ss")')
      const again = lines.find((line) => line.startsWith("  BATON_LEDGER=")) ?? ""
      const shown = execFileSync("sh", ["-c", again], {
        encoding: "utf8",
        env: checkout.environment,
        cwd: checkout.root,
      })
      expect(shown).toMatch(/^Status: +done$/m)
      expect(checkout.leftovers()).toEqual([])
    },
    DEMO_TIMEOUT_MS,
  )

  if (HAS_OPENCODE_2)
    test(
      promised(
        "v2.C4",
        "the demo on a machine with Node and npm only tells the same on OpenCode 2, which the first run installs",
      ),
      async () => {
        const { exitCode, stdout, stderr } = await checkout.demo(["--line", "2"])
        expect(exitCode, stdout + stderr).toBe(0)
        expect(stderr).toMatch(/Installing OpenCode 2/)
        expect(stdout).toMatch(/^real +OpenCode 2\.0\.15,/m)
        expect(new Set(claimsIn(stdout).map((line) => line.trim()[0]))).toEqual(new Set(["✓"]))
        for (const shown of ["faithful", "careless", "empty", "refuses"])
          expect(stdout).toMatch(new RegExp(`^ {3}▼ compaction \\d .*${shown}`, "m"))
        expect(stdout).toMatch(/^ {3}✗ kill -9 /m)
        expect(stdout).toMatch(/^ {3}after kill -9, in a new session( +✓){6}$/m)
        expect(stdout).toMatch(/^ +\[.*\] Verified: the definition of done holds$/m)
        expect(checkout.leftovers()).toEqual([])
      },
      DEMO_TIMEOUT_MS,
    )
})

const describeMore = (): void => {
  test(
    promised(["repo.A2", "install.E3"], "the demo starts at once again; without Baton it loses the task"),
    async () => {
      const { exitCode, stdout, stderr } = await checkout.demo(["--without-baton"])
      expect(exitCode, stdout + stderr).toBe(1)
      expect(stderr).not.toContain("Installing")
      expect(stdout).toContain("I no longer know which task I am on.")
      for (const claim of [
        /✗ .*exactly once \(0 of 2\)/,
        /✗ .*The test passes/,
        /✗ .*After kill -9 .*never came to that/,
        /✗ .*tells all of it.*\(2 of 3\)/,
      ])
        expect(claimsIn(stdout)).toContainEqual(expect.stringMatching(claim))
      expect(stdout).not.toContain("Every claim holds.")
      expect(checkout.leftovers()).toEqual([])
    },
    DEMO_TIMEOUT_MS,
  )

  test(
    promised(
      ["install.E3", "start.A6"],
      "with --model, the user's own provider works, and only Baton's promises are asserted",
    ),
    async () => {
      const used: { command: string; conversation: string }[] = []
      const own = await startScriptedModel(async (request) => {
        const reply = await scriptedAgent(request)
        const { conversation } = request
        const commands = "tool" in reply ? String(reply.input.command).match(/prog \w+ ts-[0-9a-f]{6}/g) : null
        for (const command of commands ?? []) used.push({ command, conversation })
        return "promptTokens" in reply ? { ...reply, promptTokens: 23_500 } : reply
      })
      try {
        const settings = join(checkout.home, ".config", "opencode")
        linkDependencies(settings, NEWEST.version, join(REPOSITORY, "node_modules"))
        const { scripted } = scriptedConfig({ modelURL: own.url, context: 200_000 }).provider
        fs.writeFileSync(join(settings, "opencode.json"), JSON.stringify({ provider: { mine: scripted } }))
        const { exitCode, stdout, stderr } = await checkout.demo(["--model", "mine/model"], {
          OPENCODE_DISABLE_MODELS_FETCH: "1",
          OPENCODE_DISABLE_AUTOUPDATE: "1",
        })
        expect(exitCode, stdout + stderr).toBe(0)
        expect(own.received("compaction")).toHaveLength(4)
        expect(used).toHaveLength(9)
        for (const { command, conversation } of used) expect(conversation).toContain(`\`${command}`)
        expect(stdout).not.toContain("kill -9")
        expect(stdout).toContain("the model mine/model")
        expect(stdout).not.toMatch(/^scripted /m)
        const claims = claimsIn(stdout)
        for (const claim of [
          /✓ .*exactly once \(4 of 4\)/,
          /· yes .*as it was ordered/,
          /· yes .*compacted \(4 times\)/,
        ])
          expect(claims).toContainEqual(expect.stringMatching(claim))
        expect(claims.filter((line) => line.includes("✗"))).toEqual([])
        expect(stdout).toContain("its session is out of your list again")
        expect(fs.existsSync(join(checkout.home, ".prog"))).toBe(false)
        expect(checkout.leftovers()).toEqual([])
        const { stdout: sessions } = spawnSync(NEWEST.path, ["session", "list"], {
          cwd: checkout.source,
          env: { ...checkout.environment, OPENCODE_DISABLE_MODELS_FETCH: "1" },
          encoding: "utf8",
        })
        expect(sessions).not.toContain("Baton demo")
      } finally {
        await own.close()
      }
    },
    DEMO_TIMEOUT_MS,
  )

  test(
    promised("install.E3", "an interrupted demo ends what it started"),
    async () => {
      let listed: ReturnType<typeof readProcesses> | undefined
      let demo = -1
      const { exitCode, stderr } = await checkout.demo([], {}, (stdout, pid) => {
        if (listed || !stdout.includes("compaction 1")) return
        demo = pid
        listed = readProcesses(process.platform).finally(() => process.kill(-pid, "SIGINT"))
      })
      const children = (await listed)?.filter(({ parent }) => parent === demo) ?? []
      expect(children.length).toBeGreaterThan(0)
      expect(exitCode, stderr).toBe(130)
      expect(stderr).toContain("interrupted")
      expect(children.filter(({ pid }) => isAlive(pid))).toEqual([])
      expect(checkout.leftovers()).toEqual([])
    },
    DEMO_TIMEOUT_MS,
  )
}

if (IS_NIGHT) describe("the demo once more", describeMore)
