import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { casesOf } from "../../support/opencode/ends.ts"
import { BOTH_ENDS, NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const LISTS = ["handoffs", "learned", "observe", "outbox", "passes", "state"]
const COMMANDS = [...LISTS, "trust state"]

const createProject = shareBundle()

/** Wrong command lines, and what is said of each. */
const WRONG: [line: string, said: string][] = [
  ["handoffs a b", "expected one project folder, received 2"],
  ["learned drop", "expected list, show, forget"],
  ["learned forget lrn-000000", "--reason"],
  ["observe /nonexistent", "expected a project folder, received '/nonexistent'"],
  ["observe --port", "observe: --port needs a value\n"],
  ["observe --web --port 65536", "expected --port between 1 and 65535, received '65536'"],
  ["observe --web --port 80x", "received '80x'"],
  ["observe --port 80", "together with --web"],
  ["observe --web --json", "expected --web or --json"],
  ["outbox drop", "outbox: expected list, retry or a folder, received 'drop'"],
  ["outbox list a b", "expected a project folder, received 'a b'"],
  ["passes --since yesterday", "or 30m, 12h or 7d, received 'yesterday'"],
  ["passes a b", "expected one project folder, received 2"],
  ["passes restore", "expected a pass to restore"],
  ["passes apply", "expected a pass to apply: baton passes apply ID"],
  ["passes show x --file a", "expected --file with apply or reject alone"],
  ["passes reject x --partly", "with apply alone"],
  ["passes restore x --agent y", "with restore"],
  ["state nonsense", "expected list or prune, received 'nonsense'"],
  ["trust", "expected state"],
]

describe.each(BOTH_ENDS)("on OpenCode $version", (binary) => {
  test.each(casesOf(binary, WRONG))(promised("cli.A1", "baton %s is refused with what was expected"), (line, said) => {
    const { status, stdout, stderr } = createProject(binary).baton(...line.split(" "))
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: expect.stringContaining(said) })
  })
})

describe("baton's commands", () => {
  test.each(COMMANDS)(promised("cli.A1", "baton %s refuses a folder that is not there or no project"), (line) => {
    const { project, baton, options } = createProject(NEWEST)
    const [name = "", ...what] = line.split(" ")
    const missing = baton(name, ...what, "./nowhere")
    expect([missing.status, missing.stdout]).toEqual([2, ""])
    expect(missing.stderr).toContain("nowhere")
    const elsewhere = temporaryFolder()
    const launcher = join(project, ".opencode/baton/bin/baton")
    const refused = spawnSync(launcher, [name, ...what], { ...options, cwd: elsewhere })
    expect([refused.status, refused.stdout]).toEqual([2, ""])
    expect(refused.stderr).toContain(`there is no Baton project in '${elsewhere}': expected a folder with .opencode`)
    const said = `${name}: unknown option --bogus\nTry: baton ${name} --help\n`
    expect(baton(name, "--bogus")).toMatchObject({ status: 2, stdout: "", stderr: said })
    expect(baton(name, "--help").stdout).toMatch(new RegExp(`^Usage: baton ${name}`))
  })

  test(promised("cli.A1", "a folder alone behind a command of baton's means the list"), () => {
    const { project, baton } = createProject(NEWEST)
    expect(baton("state", project)).toMatchObject({ status: 0, stderr: "" })
    for (const folder of [project, "."])
      expect(baton("outbox", folder)).toMatchObject({ status: 0, stdout: "No records\n" })
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

  test(promised("cli.A1", "baton says its version, and which command was meant"), () => {
    const { baton } = createProject(NEWEST)
    for (const flag of ["--version", "-v"]) expect(baton(flag).stdout).toMatch(/^(?:\d+\.\d+\.\d+|unknown)\n$/)
    const launcher = join(REPOSITORY, ".opencode/baton/bin/baton")
    expect(spawnSync(launcher, ["--version"], { encoding: "utf8" }).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const meant = "baton: unknown command: pases; did you mean passes?\nTry: baton --help\n"
    expect(baton("pases")).toMatchObject({ status: 2, stderr: meant })
    expect(baton("dcotor").stderr).toContain("did you mean doctor?")
    expect(baton("foo").stderr).toBe("baton: unknown command: foo\nTry: baton --help\n")
  })

  test(promised("cli.A3", "a script's words, and observe's, go into a file without escape codes"), () => {
    const script = ". ./scripts/support/set-up.sh && say hello"
    const said = spawnSync("sh", ["-c", script], { cwd: REPOSITORY, encoding: "utf8" })
    expect(said.stderr).toBe("==> hello\n")
    const { write, baton } = createProject(NEWEST)
    const state = { c2c_session_id: "one", opencode_pid: process.pid, agent: { is_idle: false } }
    const ts = "2026-01-01T00:00:00.000Z"
    write(".opencode/state/live/one.json", { event: "state.snapshot", ts, state })
    const { stdout } = baton("observe")
    expect(stdout).toContain("● one  busy")
    expect(stdout).not.toContain("\u001b")
  })

  test(promised("cli.A2", "baton env puts both commands on PATH, also from a folder with a blank"), () => {
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
