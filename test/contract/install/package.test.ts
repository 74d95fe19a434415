import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { createBarePath } from "../../support/files/doctor-patient.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { packPackage, packZod, removePackage, unpackPackage } from "../../support/files/packed-package.ts"
import { type Outcome, runScript } from "../../support/files/small-checkout.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

removePackage()

const BATON_IN_PROJECT = ".opencode/baton/bin/baton"

/** An empty folder on a machine with Node and npm alone, whose registry does not answer. */
let folder: string
let home: string
let bare: string

beforeEach(() => {
  folder = temporaryFolder()
  home = temporaryFolder()
  bare = createBarePath(home)
})

const run = (argv: readonly [string, ...string[]], environment: Record<string, string> = {}): Outcome =>
  runScript(argv, {
    cwd: folder,
    env: {
      PATH: `${dirname(process.execPath)}:${bare}`,
      HOME: home,
      npm_config_cache: join(home, "npm"),
      npm_config_registry: "http://127.0.0.1:9",
      npm_config_update_notifier: "false",
      npm_config_fetch_retries: "0",
      ...environment,
    },
  })

/** As a user does it; 2 s a call on a quiet machine, and ten times that on a busy one. */
const npx = (...args: string[]): Outcome =>
  run(["npx", "--yes", "--package", packPackage(), "--package", packZod(), "baton-opencode", ...args])

/** The package's command, installed once in the test's home. */
const baton = (args: readonly string[], environment: Record<string, string> = {}): Outcome => {
  const installed = join(home, "node_modules", "baton-opencode")
  if (!existsSync(installed)) unpackPackage(installed)
  return run([process.execPath, join(installed, "scripts/lib/cli.mjs"), ...args], environment)
}

describe("the tarball of npm pack", () => {
  test(
    promised(
      "package.A1",
      "the tarball of npm pack holds the bundle and its installer, and nothing of the rest; it depends on zod alone",
    ),
    () => {
      const list = runScript(["tar", "-tzf", packPackage()]).stdout.trim()
      const paths = list.split("\n").map((path) => path.replace(/^package\//, ""))
      const isExpected = (path: string) =>
        /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|prompts\/[\w-]+\.md|scripts\/lib\/[\w-]+\.mjs)$/.test(
          path,
        ) || /^\.opencode\/(?:index\.mjs|server\.mjs|pass-over\.json|plugins\/[\w-]+\.ts|baton\/.+)$/.test(path)
      expect(paths.filter((path) => !isExpected(path) || /test|benchmark|\.png$/.test(path))).toEqual([])
      expect(paths).toEqual(expect.arrayContaining([".opencode/baton/ignore", ".opencode/baton/bin/prog", "LICENSE"]))
      const manifest: Record<string, unknown> = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"))
      expect(manifest.dependencies).toEqual({ zod: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
      for (const key of ["private", "optionalDependencies", "peerDependencies", "bundleDependencies"])
        expect(manifest[key], key).toBeUndefined()
      // npm runs these where the package is installed.
      const scripts = Object.keys(manifest.scripts ?? {})
      expect(scripts.filter((name) => /^(?:pre|post)?install$|^prepare$/.test(name))).toEqual([])
    },
  )

  test(
    promised(
      "package.A1",
      "the tarball of npm pack installs, from an empty folder, what the checkout does, and removes it",
    ),
    () => {
      for (const name of ["project", "other", "third"]) mkdirSync(join(folder, name))
      runScript([join(REPOSITORY, "scripts/install"), join(folder, "other")])
      runScript([join(REPOSITORY, "scripts/install"), join(folder, "third"), "--auto-task"])
      expect(npx("init", "project", "--no-auto-task")).toMatchObject({ exitCode: 0, stderr: "" })
      expect(snapshotTree(join(folder, "project"))).toEqual(snapshotTree(join(folder, "other")))
      expect(existsSync(join(folder, "project/.opencode/baton/zod/core/schemas.js"))).toBe(true)
      expect(baton(["update", "project"]).stdout).toContain("Nothing to do")
      expect(baton(["uninstall", "project"])).toMatchObject({ exitCode: 0, stderr: "" })
      expect(readdirSync(join(folder, "project"))).toEqual([])
      expect(baton(["init", "project"]).exitCode).toBe(0)
      expect(snapshotTree(join(folder, "project"))).toEqual(snapshotTree(join(folder, "third")))
    },
  )

  test(
    promised("people.D2", "the tarball of npm pack says in a screen what it would do: first, later, and at the end"),
    () => {
      const dryRun = (command: string) => {
        const { exitCode, stdout } = baton([command, "--dry-run"])
        expect(exitCode).toBe(0)
        expect(stdout.split("\n").length).toBeLessThanOrEqual(24)
        return stdout
      }
      expect(dryRun("init")).toMatch(/^ {2}add {5}\.opencode\/baton\/ \(\d{3} files\)$/m)
      expect(readdirSync(folder)).toEqual([])
      baton(["init"])
      expect(dryRun("update")).toContain("Nothing to do")
      expect(dryRun("uninstall")).toMatch(/^ {2}remove {2}\.opencode\/baton\/ \(\d{3} files\)$/m)
    },
  )

  test(promised("words.D1", "the tarball of npm pack leaves doctor nothing to fix in a file that init wrote"), () => {
    baton(["init"])
    const installed = Object.keys(snapshotTree(folder)).filter((path) => statSync(join(folder, path)).isFile())
    expect(installed.length).toBeGreaterThan(100)
    const runtime = { BATON_OPENCODE: NEWEST.path }
    for (const json of [baton(["doctor", "--json"], runtime), run([BATON_IN_PROJECT, "doctor", "--json"], runtime)]) {
      const { findings } = JSON.parse(json.stdout) as { findings: { id: string; status: string; message: string }[] }
      expect(findings.filter(({ id }) => ["settings", "passes"].includes(id))).toEqual([
        {
          id: "settings",
          status: "ok",
          message: ".opencode/baton.json is in order",
        },
        { id: "passes", status: "ok", message: ".opencode/pass-over.json is in order" },
      ])
      const bad = JSON.stringify(findings.filter(({ status }) => status !== "ok"))
      expect(installed.filter((path) => bad.includes(path))).toEqual([])
    }
    writeFileSync(join(folder, ".opencode/baton.json"), '{"autoTask": true')
    expect(baton(["doctor"], runtime).stdout).toMatch(/warning +settings +\.opencode\/baton\.json cannot be used/)
  })

  test(promised("package.A1", "the tarball of npm pack does what baton does, with its help and exit codes"), () => {
    const runtime = { BATON_OPENCODE: NEWEST.path }
    baton(["init"])
    const { stdout } = baton(["doctor", "--json"], runtime)
    expect(JSON.parse(stdout)).toMatchObject({ directory: folder, summary: { broken: 0 } })
    expect(baton(["passes"], runtime)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("No passes") })
    expect(baton(["outbox", "--help"]).stdout).toMatch(/^Usage: baton outbox/)
    const unknown = expect.stringContaining("unknown command: nonsense")
    expect(baton(["nonsense"])).toMatchObject({ exitCode: 2, stderr: unknown })
    expect(baton(["doctor"])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("can run TypeScript") })
  })

  test(
    promised("package.A1", "the tarball of npm pack names every command of baton beside its own, and its version"),
    () => {
      const { stdout } = baton(["help"])
      const launcher = runScript([join(REPOSITORY, ".opencode/baton/bin/baton"), "--help"]).stdout
      const commands = (text: string) => [...text.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)
      expect(commands(stdout)).toEqual(["init", "update", "uninstall", ...commands(launcher)])
      expect(baton([])).toMatchObject({ exitCode: 2, stdout: "", stderr: stdout })
      const { version } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8"))
      expect(baton(["--version"]).stdout.trim()).toBe(version)
    },
  )
})
