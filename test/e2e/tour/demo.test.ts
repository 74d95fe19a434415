import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process.ts"
import { scriptedAgent } from "../../../scripts/demonstration/scripted-agent.ts"
import { promised } from "../../requirements.ts"
import { createDemoCheckout, type DemoCheckout } from "../../support/files/demo-checkout.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import { deadline, IS_NIGHT, NEWEST, REPOSITORY, startScriptedModel } from "../../support/index.ts"
import { linkDependencies, scriptedConfig } from "../../support/opencode/isolated-opencode.ts"

/** An installation and two dozen turns of OpenCode, on a busy machine. */
const DEMO_TIMEOUT_MS = deadline(400_000)

let checkout: DemoCheckout
beforeAll(() => {
  checkout = createDemoCheckout()
})
afterAll(() => checkout.remove())

const claimsIn = (stdout: string): string[] =>
  stdout.slice(stdout.indexOf("  Checked\n")).match(/^ {3}[✓✗·].*$/gm) ?? []

// In this order: the first run installs the packages, the others find them.
describe("the demo on a machine with Node and npm only", { timeout: DEMO_TIMEOUT_MS }, () => {
  test(promised(["repo.A2", "install.E3", "start.A6"], "sets itself up and holds every claim"), async () => {
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
    expect(stdout).toMatch(/^ {3}after kill -9, in a new session( +✓){5}$/m)
    expect(stdout).toMatch(/^ +first brief │ slugify\.test\.js is frozen/m)
    expect(stdout).toMatch(/^scripted .*the model/m)
    expect(stderr).not.toContain("\u001b")
    expect(stdout).not.toContain("\u001b")

    const project = join(kept, "project")
    // OpenCode would have created a folder there if it had installed anything.
    expect(lstatSync(join(project, ".opencode", "node_modules")).isSymbolicLink()).toBe(true)
    const { status } = spawnSync("node", ["--test"], { cwd: project, env: checkout.environment })
    expect(status).toBe(0)
    expect(readFileSync(join(project, "slugify.js"), "utf8")).toContain('.replaceAll("ß", "ss")')
    const again = lines.find((line) => line.startsWith("  BATON_LEDGER=")) ?? ""
    const options = { encoding: "utf8", env: checkout.environment, cwd: checkout.root } as const
    const shown = execFileSync("sh", ["-c", again], options)
    expect(shown).toMatch(/^Status: +done$/m)
    expect(checkout.leftovers()).toEqual([])
  })
})

const describeMore = (): void => {
  test(promised(["repo.A2", "install.E3"], "starts at once; without Baton it loses the task and fails"), async () => {
    const { exitCode, stdout, stderr } = await checkout.demo(["--without-baton"])
    expect(exitCode, stdout + stderr).toBe(1)
    expect(stderr).not.toContain("Installing")
    expect(stdout).toContain("I no longer know which task I am on.")
    const failing = [/exactly once \(0 of 2\)/, /The test passes/, /After kill -9 .*never came to that/]
    for (const { source } of [...failing, /tells task, role, specification, .*\(2 of 3\)/])
      expect(claimsIn(stdout)).toContainEqual(expect.stringMatching(new RegExp(`✗ .*${source}`)))
    expect(stdout).not.toContain("Every claim holds.")
    expect(checkout.leftovers()).toEqual([])
  })

  test(promised(["install.E3", "start.A6"], "with --model, the user's own provider works"), async () => {
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
      writeFileSync(join(settings, "opencode.json"), JSON.stringify({ provider: { mine: scripted } }))
      const { exitCode, stdout, stderr } = await checkout.demo(["--model", "mine/model"], {
        environment: { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" },
      })
      expect(exitCode, stdout + stderr).toBe(0)
      expect(own.received("compaction")).toHaveLength(4)
      expect(used).toHaveLength(9)
      for (const { command, conversation } of used) expect(conversation).toContain(`\`${command}`)
      expect(stdout).not.toContain("kill -9")
      expect(stdout).toContain("the model mine/model")
      expect(stdout).not.toMatch(/^scripted /m)
      const claims = claimsIn(stdout)
      for (const claim of [/✓ .*exactly once \(4 of 4\)/, /· yes .*as it was ordered/, /· yes .*compacted \(4 times\)/])
        expect(claims).toContainEqual(expect.stringMatching(claim))
      expect(claims.filter((line) => line.includes("✗"))).toEqual([])
      expect(stdout).toContain("its session is out of your list again")
      expect(existsSync(join(checkout.home, ".prog"))).toBe(false)
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
  })

  test(promised("install.E3", "interrupted, it ends what it started and removes what it wrote"), async () => {
    let listed: ReturnType<typeof readProcesses> | undefined
    let demo = -1
    const { exitCode, stderr } = await checkout.demo([], {
      onOutput: (stdout, pid) => {
        if (listed || !stdout.includes("compaction 1")) return
        demo = pid
        listed = readProcesses(process.platform).finally(() => process.kill(-pid, "SIGINT"))
      },
    })
    const children = (await listed)?.filter(({ parent }) => parent === demo) ?? []
    expect(children.length).toBeGreaterThan(0)
    expect(exitCode, stderr).toBe(130)
    expect(stderr).toContain("interrupted")
    expect(children.filter(({ pid }) => isAlive(pid))).toEqual([])
    expect(checkout.leftovers()).toEqual([])
  })
}

if (IS_NIGHT) describe("the demo once more", { timeout: DEMO_TIMEOUT_MS }, describeMore)
