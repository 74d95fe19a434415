import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const LISTS = ["handoffs", "learned", "observe", "outbox", "passes", "state"]
const COMMANDS = [...LISTS.map((name) => [name]), ["trust", "state"], ["trust", "writer"]]

const createProject = shareBundle()

describe("baton's commands", () => {
  test.each(COMMANDS)(promised("cli.A1", "%s %s refuses a folder that is not there or no project"), (name, ...what) => {
    const { project, baton, options } = createProject(NEWEST)
    const missing = baton(name, ...what, "./nowhere")
    expect([missing.status, missing.stdout]).toEqual([2, ""])
    expect(missing.stderr).toContain("nowhere")
    const elsewhere = temporaryFolder()
    const launcher = join(project, ".opencode/baton/bin/baton")
    const refused = spawnSync(launcher, [name, ...what], { ...options, cwd: elsewhere })
    expect([refused.status, refused.stdout]).toEqual([2, ""])
    expect(refused.stderr).toContain(`there is no Baton project in '${elsewhere}': expected a folder with .opencode`)
    if (name === "observe") expect(baton(name, "--port").stderr).toContain("observe: --port needs a value\n")
    const unknown = baton(name, "--bogus")
    expect([unknown.status, unknown.stderr]).toEqual([
      2,
      `${name}: unknown option --bogus\nTry: baton ${name} --help\n`,
    ])
  })

  test(promised("cli.A1", "a folder alone means the list"), () => {
    const { project, baton } = createProject(NEWEST)
    for (const name of ["learned", "state"]) {
      const listed = baton(name, project)
      expect([listed.status, listed.stderr], name).toEqual([0, ""])
    }
  })

  test(promised("cli.A1", "right after an installation nothing is learned, and nothing is wrong"), () => {
    const { project, baton } = createProject(NEWEST)
    const bundle = join(project, ".opencode/baton")
    rmSync(bundle)
    // Without node_modules, as before OpenCode's first start.
    mkdirSync(join(project, "elsewhere"))
    spawnSync("cp", ["-R", join(REPOSITORY, ".opencode/baton"), bundle])
    mkdirSync(join(project, ".opencode/state/learning"), { recursive: true })
    baton("learned")
    const learned = baton("learned")
    expect([learned.stdout, learned.stderr, learned.status]).toEqual(["Nothing learned\n", "", 0])
  })

  test(promised("cli.A1", "says its version, and which command was meant"), () => {
    const { baton } = createProject(NEWEST)
    for (const flag of ["--version", "-v"]) expect(baton(flag).stdout).toMatch(/^(?:\d+\.\d+\.\d+|unknown)\n$/)
    const launcher = join(REPOSITORY, ".opencode/baton/bin/baton")
    expect(spawnSync(launcher, ["--version"], { encoding: "utf8" }).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const meant = baton("pases")
    expect([meant.status, meant.stderr]).toEqual([
      2,
      "baton: unknown command: pases; did you mean passes?\nTry: baton --help\n",
    ])
    expect(baton("dcotor").stderr).toContain("did you mean doctor?")
    expect(baton("foo").stderr).toBe("baton: unknown command: foo\nTry: baton --help\n")
  })

  test(promised("cli.A3", "a script's words, and observe's, go into a file without escape codes"), () => {
    const said = spawnSync("sh", ["-c", ". ./scripts/support/set-up.sh && say hello"], {
      cwd: REPOSITORY,
      encoding: "utf8",
    })
    expect(said.stderr).toBe("==> hello\n")
    const { project, baton } = createProject(NEWEST)
    const live = join(project, ".opencode/state/live")
    mkdirSync(live, { recursive: true })
    const state = { c2c_session_id: "one", opencode_pid: process.pid, agent: { is_idle: false } }
    const ts = "2026-01-01T00:00:00.000Z"
    writeFileSync(join(live, "one.json"), JSON.stringify({ event: "state.snapshot", ts, state }))
    const { stdout } = baton("observe")
    expect(stdout).toContain("● one  busy")
    expect(stdout).not.toContain("\u001b")
  })

  test(promised("cli.A2", "env puts both commands on PATH, also from a folder with a blank"), () => {
    const { project, options } = createProject(NEWEST)
    const odd = join(project, "a b$c")
    mkdirSync(odd)
    symlinkSync(join(project, ".opencode/baton"), join(odd, "baton"))
    const script = 'eval "$("./a b\\$c/baton/bin/baton" env)" && command -v baton && command -v prog'
    const found = spawnSync("sh", ["-c", script], options)
    expect(found.stderr).toBe("")
    expect(found.stdout).toMatch(/\/bin\/baton\n.*\/bin\/prog\n$/)
  })
})
