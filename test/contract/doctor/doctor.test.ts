import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { createBarePath, createPatient, type Patient } from "../../support/files/doctor-patient.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { SYSTEM_PATH } from "../../support/ledger/ledger-process.ts"
import { BOTH_ENDS, NEWEST, OLDEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const DOCTOR = join(REPOSITORY, "scripts", "doctor")
const BATON = join(REPOSITORY, ".opencode/baton/bin/baton")

let patient: Patient

beforeEach(() => {
  patient = createPatient()
})

describe("a healthy project", () => {
  test.each(BOTH_ENDS)(
    promised("install.E2", "a healthy project has only ok findings, seen by OpenCode $version itself"),
    (binary) => {
      const { exitCode, report } = patient.examine({ BATON_OPENCODE: binary.path })
      expect(report.findings.filter(({ status }) => status !== "ok")).toEqual([])
      expect(exitCode).toBe(0)
      const opencode = report.findings.find(({ id }) => id === "opencode")
      expect(opencode?.message).toContain(`OpenCode ${binary.version} (${binary.path})`)
    },
  )

  test(promised("install.E2", "the report is one JSON document of a stated shape"), () => {
    const { report } = patient.examine()
    expect(Object.keys(report)).toEqual(["version", "directory", "findings", "summary"])
    expect(report).toMatchObject({ version: 1, directory: patient.project, summary: { warning: 0, broken: 0 } })
    expect(report.summary.ok).toBe(report.findings.length)
    const ids = [...new Set(report.findings.map(({ id }) => id))]
    const expected = ["opencode", "environment", "files", "plugins", "copies", "dependencies", "prompts", "ledger"]
    expect(ids).toEqual(expect.arrayContaining([...expected, "database", "outbox", "state"]))
  })

  test(promised("install.E2", "the report is told to a person without colour, from a sub-folder, too"), () => {
    mkdirSync(join(patient.project, "src/deep"), { recursive: true })
    const options = { cwd: join(patient.project, "src/deep"), env: patient.environment }
    const { exitCode, stdout, stderr } = runScript([DOCTOR], options)
    expect(stdout).toContain(`Baton in ${patient.project}\n`)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" })
    expect(stdout).toMatch(/^Baton in .*\n\n {2}ok {7}opencode {6}OpenCode 1\.18\.33/)
    expect(stdout).toMatch(/0 broken, 0 warnings, \d+ ok\n$/)
    expect(stdout).not.toContain("\u001b")
  })
})

describe("doctor", () => {
  test(promised("install.E2", "doctor changes nothing in the project, the home or the temporary folder"), () => {
    patient.write(".opencode/plugins/thing.ts", 'import "../baton/nothing.ts"\n')
    patient.write("prompts/worker.md", "mine\n")
    patient.write(".env", "PROG_DB=/nonexistent/prog.db\n")
    patient.write("bunfig.toml", 'preload = ["./preload.ts"]\n')
    patient.write("preload.ts", 'import { writeFileSync } from "node:fs"\nwriteFileSync("preloaded", "")\n')
    patient.install()
    const before = snapshotTree(patient.root)
    for (const environment of [{}, { BATON_OPENCODE: OLDEST.path }]) {
      const env = { ...patient.environment, ...environment }
      expect(runScript([DOCTOR, "--json"], { cwd: patient.project, env }).exitCode).toBe(1)
    }
    expect(snapshotTree(patient.root)).toEqual(before)
  })

  test(
    promised(
      "install.E2",
      "doctor works from inside a project, through a link to its launcher, and runs none of its files",
    ),
    () => {
      const project = join(patient.root, "real project")
      mkdirSync(project)
      expect(runScript([join(REPOSITORY, "scripts/install"), project]).exitCode).toBe(0)
      symlinkSync(join(project, ".opencode/baton/bin/baton"), join(patient.root, "baton"))
      // Bun would take these for the packages that Baton loads.
      const paths = { zod: ["./evil.ts"], "@opencode-ai/plugin/tool": ["./evil.ts"] }
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: { paths } }))
      const evil = 'import { writeFileSync } from "node:fs"\nwriteFileSync(`${import.meta.dirname}/ran`, "")\n'
      writeFileSync(join(project, "evil.ts"), `${evil}export const tool = {}\n`)
      writeFileSync(join(project, ".opencode/baton.json"), "{}\n")
      const before = snapshotTree(project)
      const options = { cwd: project, env: patient.environment }
      const { exitCode, stdout, stderr } = runScript([join(patient.root, "baton"), "doctor", "--json"], options)
      expect(stderr).toBe("")
      const report = JSON.parse(stdout)
      expect(report.findings.filter(({ status }: { status: string }) => status === "broken")).toEqual([])
      expect({ exitCode, directory: report.directory }).toEqual({ exitCode: 0, directory: project })
      // The settings say which project the task is for.
      const ledger = { ...patient.environment, BATON_LEDGER: "embedded" }
      const added = runScript([join(project, ".opencode/baton/bin/prog"), "add", "A task"], { ...options, env: ledger })
      expect(added).toMatchObject({ exitCode: 0, stderr: "" })
      expect(snapshotTree(project)).toEqual(before)
    },
  )
})

describe("the runtime", () => {
  test(promised("install.E2", "the runtime may be Bun alone, and then OpenCode is what is missing"), () => {
    const bare = createBarePath(patient.root)
    symlinkSync(NEWEST.path, join(bare, "bun"))
    const { exitCode, report } = patient.examine({ PATH: bare })
    expect(exitCode).toBe(1)
    const broken = report.findings.filter(({ status }) => status === "broken")
    expect(broken).toMatchObject([{ id: "opencode", message: "no OpenCode found on PATH" }])
  })

  /** Runs doctor with the usual programs of a shell and these folders on PATH. */
  const runBare = (bare: string, args: readonly string[] = [], folders: readonly string[] = []) => {
    const env = { HOME: patient.home, PATH: [...folders, bare].join(":") }
    return runScript([DOCTOR, ...args], { cwd: patient.project, env })
  }

  test(promised("install.E2", "a missing runtime is named, and help needs none"), () => {
    const { exitCode, stdout, stderr } = runBare(createBarePath(patient.root))
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" })
    expect(stderr).toContain("nothing here can run TypeScript")
    expect(stderr).toContain("BATON_OPENCODE")
    const env = { PATH: join(patient.root, "bare") }
    const run = (...argv: [string, ...string[]]) => runScript(argv, { cwd: patient.root, env })
    expect(run(DOCTOR, "--help")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("--json") })
    expect(run(BATON, "--help")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("doctor") })
    expect(run(BATON)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Usage: baton") })
    expect(run(BATON, "dance")).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("command: dance") })
  })

  test(
    promised("install.E2", "the runtime may be Node where it reads TypeScript by itself, and never an older one"),
    () => {
      const bare = createBarePath(patient.root)
      symlinkSync(process.execPath, join(bare, "node"))
      const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
      const readsTypes = major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)
      const { exitCode, stdout, stderr } = runBare(bare, ["--json"])
      expect(exitCode).toBe(1)
      expect(stdout.startsWith("{")).toBe(readsTypes)
      expect(stderr.includes("node 22.18 or newer")).toBe(!readsTypes)
    },
  )

  test(promised("install.E2", "the runtime is never a program called opencode that does not act as Bun"), () => {
    patient.program("opencode", 'echo "$@" >>"$HOME/calls"\necho 1.18.33\n')
    expect(runBare(createBarePath(patient.root), [], [join(patient.root, "programs")]).exitCode).toBe(1)
    expect(readFileSync(join(patient.home, "calls"), "utf8")).toBe("--revision\n")
  })

  /** Runs `baton state list` of a project without agents, which any runtime can do. */
  const listAgents = (cwd: string, environment: Record<string, string>) =>
    runScript([BATON, "state", "list", patient.project, "--json"], {
      cwd,
      env: { ...patient.environment, ...environment },
    })

  test("the runtime runs nothing from a relative folder of PATH, and goes on to an absolute one", () => {
    const named = { PATH: SYSTEM_PATH, BATON_OPENCODE: `./${basename(NEWEST.path)}` }
    expect(listAgents(dirname(NEWEST.path), named)).toMatchObject({ exitCode: 0, stdout: "[]\n" })
    const folder = temporaryFolder()
    const started = join(folder, "started")
    for (const name of ["opencode", "bun", "node"])
      writeFileSync(join(folder, name), `#!/bin/sh\ntouch '${started}'\n`, { mode: 0o755 })
    const PATH = `.::${join(patient.root, "programs")}:${SYSTEM_PATH}`
    expect(listAgents(folder, { PATH })).toMatchObject({ exitCode: 0, stdout: "[]\n" })
    expect(existsSync(started)).toBe(false)
  })
})

test.each([
  [["--fix"], "unknown option --fix"],
  [["a", "b"], "expected one project folder, received 2"],
  [["absent"], "received 'absent', which is not a folder"],
  [[""], "received an empty name"],
  [["--", "--json"], "received '--json', which is not a folder"],
])(promised("install.E2", "doctor refuses the arguments %j with exit code 2"), (args, message) => {
  const { exitCode, stdout, stderr } = patient.doctor(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" })
  expect(stderr).toContain(message)
})
