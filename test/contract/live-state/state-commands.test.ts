import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { describe, expect } from "vitest"
import { noteProject } from "../../../.opencode/baton/live-state/projects.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { findRealProg } from "../../support/ledger/ledger-real.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"

const DEAD = 2 ** 22 + 1
const at = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
const agent = { turn_count: 0 }
const STATE = { c2c_session_id: "one", opencode_pid: process.pid, agent, root_opencode_session_id: null }

const PLACE = { directory: "/a b", server_url: "http://127.0.0.1:4096/" }
const asked = (id: string, n: number, subagent: string | null = null) => ({
  ...{ kind: "permission", id, title: "bash", type: "bash", subject: id },
  ...{ session_id: "ses_1", root_session_id: "ses_1", root_title: "CRLF", subagent, since: at(n) },
})

const createProject = shareBundle()

describe.each(BOTH_ENDS)("on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const created = createProject(binary)
    /** Leaves an agent's statefile, of a moment after the beginning of 2026. */
    const leave = (name: string, n: number, state: Record<string, unknown>): void =>
      created.write(`.opencode/state/live/${name}.json`, { event: "state.snapshot", ts: at(n), state })
    return { ...created, leave, folder: join(created.project, ".opencode", "state", "live") }
  }

  once(promised("live-state.B1", "the statefile has the last change although the process exits at once"), () => {
    const { folder, write, options } = setUp()
    const script = `
      import { createStateFolder } from "./.opencode/baton/host/state.ts"
      import { createStatefileWriter } from "./.opencode/baton/live-state/statefile.ts"
      let turn = 0
      const log = { debug() {}, info() {}, warn() {}, error() {} }
      const end = () => undefined
      const deps = { state: createStateFolder(process.cwd()), sessionID: "one", pid: 1, end, log }
      const writer = createStatefileWriter({ ...deps, current: () => ({ turn }) })
      const publish = () => writer.publish({ event: "state.patch", ts: "T" + ++turn, patch: {} })
      publish()
      setImmediate(() => { publish(); publish(); process.exit(0) })`
    write("script.ts", script)
    const run = { ...options, env: { ...options.env, BUN_BE_BUN: "1" }, encoding: "utf8" } as const
    const ran = spawnSync(binary.path, ["run", "script.ts"], run)
    expect(ran.status, ran.stderr).toBe(0)
    const written = JSON.parse(readFileSync(join(folder, "one.json"), "utf8"))
    expect(written).toEqual({ event: "state.patch", ts: "T3", state: { turn: 3 } })
    expect(readdirSync(folder)).toEqual(["one.json"])
  })

  once(promised("live-state.B3", "agents are listed as alive or gone, and pruned on request"), () => {
    const { folder, baton, leave, write } = setUp()
    expect(baton("state").stdout).toBe("No agents\n")
    const focus = { ty: "permission", details: { title: "bash" } }
    const extensions = { task: { id: "ts-b54507", role: "worker" } }
    const cutOff = { opencode_pid: DEAD, agent: { is_idle: false }, extensions: {} }
    leave("a", 0, { ...STATE, ...cutOff, c2c_session_id: "a" })
    const b = { c2c_session_id: "b", root_opencode_session_id: "ses_1", tui_focus: focus, extensions }
    leave("b", 1_000, { ...STATE, ...b })
    write(".opencode/state/live/junk.json", "{")
    mkdirSync(join(folder, "folder.json"))
    expect(baton("state").stdout).toBe(
      "crashed  2026-01-01 00:00  a  no session\n" +
        "alive    2026-01-01 00:00  b  ses_1  ts-b54507  asks permission: bash\n",
    )
    expect(baton("state").stderr).toMatch(/^state: left out: .*folder\.json: .*\n$/)
    expect(baton("observe")).toMatchObject({ status: 0, stderr: expect.stringContaining("folder.json") })
    expect(JSON.parse(baton("state", "list", "--json").stdout)).toMatchObject([
      { name: "a", doing: { kind: "crashed" } },
      { name: "b", doing: { kind: "permission" }, task: { id: "ts-b54507" }, pid: process.pid },
    ])
    expect(baton("state", "prune").stdout).toBe("1 removed\n")
    expect(readdirSync(folder).sort()).toEqual(["b.json", "folder.json", "junk.json"])
  })

  once(promised("live-state.C1", "observe prints once where no terminal listens, with records, and as JSON"), () => {
    const { baton, prog, leave } = setUp()
    expect(baton("observe").stdout).toContain("No agents")
    const id = prog("add", "A title", "-p", "x").stdout.trim()
    leave("one", 0, { ...STATE, extensions: { task: { id, role: "worker" }, compactions: 1 } })
    const seen = baton("observe")
    expect(seen.status, seen.stderr).toBe(0)
    expect(seen.stdout).toContain(`${id} (worker) A title [open]`)
    const shown = [{ name: "one", task: { id }, compactions: 1 }]
    expect(JSON.parse(baton("observe", "--json").stdout)).toMatchObject(shown)
  })

  once(promised("waiting.B2", "all that waits is listed from any folder, the longest first, with what to do"), () => {
    const { project, options, leave, baton } = setUp()
    const launcher = join(project, ".opencode/baton/bin/baton")
    const elsewhere = { ...options, cwd: temporaryFolder() }
    const waiting = (...args: string[]) => spawnSync(launcher, ["waiting", ...args], elsewhere)
    leave("a", 0, {
      ...STATE,
      extensions: { waiting: [asked("per_1", 2), asked("per_2", 1, "Look around")], place: PLACE },
    })
    expect(waiting()).toMatchObject({ status: 0, stdout: "Nothing waits\n", stderr: "" })
    noteProject(project, options.env)
    const { stdout, stderr } = waiting()
    expect(stderr).toBe("")
    const heading = `${basename(project)} · CRLF: asks permission, `
    const way = "    opencode attach http://127.0.0.1:4096 --dir '/a b' --session ses_1"
    const blocks = [
      [heading, "    bash: per_2", "    subagent Look around", way, "    curl /per_2"],
      [heading, "    bash: per_1", way, "    curl /per_1"],
    ]
    const shortened = stdout.replaceAll(/(permission, ).*/g, "$1").replaceAll(/(curl ).*permissions(\S+)\?.*/g, "$1$2")
    expect(shortened).toBe(`${blocks.flat().join("\n")}\n`)
    expect(JSON.parse(waiting("--json").stdout)).toMatchObject([
      { id: "per_2", folder: project, subagent: "Look around", rootSession: "ses_1" },
      { id: "per_1", pid: process.pid },
    ])
    expect(waiting("here")).toMatchObject({ status: 2, stderr: expect.stringContaining("Try: baton waiting --help") })
    expect(baton("waiting", "--help").stdout).toContain("onWaiting")
  })

  once(promised("claim.B1", "observe shows who has claimed a task, also where the real prog is used"), () => {
    const { options, baton, prog, leave } = setUp()
    const id = prog("add", "A title", "-p", "x").stdout.trim()
    expect(prog("claim", id, "--as", "ada").stdout).toBe(`Claimed ${id}\n`)
    leave("one", 0, { ...STATE, extensions: { task: { id, role: "worker" } } })
    const real = findRealProg()
    for (const folder of real.kind === "found" ? ["", `${dirname(real.program.command)}:`] : [""]) {
      Object.assign(options.env, { PATH: `${folder}${process.env.PATH}`, BATON_LEDGER: undefined })
      expect(baton("observe").stdout).toMatch(/^ {4}claimed by ada \(on \S+ in \/.*\) since 2/m)
      expect(JSON.parse(baton("observe", "--json").stdout)).toMatchObject([
        { news: { claim: expect.stringContaining("ada (on ") } },
      ])
    }
  })
})
