import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { collectOutput } from "../../support/collect-output.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { endWithTest } from "../../support/files/with-test.ts"
import { findRealProg } from "../../support/ledger/ledger-real.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

const DEAD = 2 ** 22 + 1
const at = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
const snapshot = (n: number, state: Record<string, unknown>): string =>
  `${JSON.stringify({ event: "state.snapshot", ts: at(n), state })}\n`
const patch = (n: number, change: Record<string, unknown>): string =>
  `${JSON.stringify({ event: "state.patch", ts: at(n), patch: change })}\n`
const STATE = {
  c2c_session_id: "one",
  opencode_pid: process.pid,
  agent: { turn_count: 0 },
  root_opencode_session_id: null,
}

const createProject = shareBundle()

describe.each(BOTH_ENDS)("on OpenCode $version", (binary) => {
  const setUp = () => {
    const { project, baton, prog, options } = createProject(binary)
    const folder = join(project, ".opencode", "state", "live")
    const startWriter = () => {
      const argv = [".opencode/baton/bin/baton", ["state-writer"]] as const
      const writer = endWithTest(spawn(...argv, { ...options, stdio: ["pipe", "ignore", "pipe"] }))
      const { stderr } = collectOutput(writer)
      const ended = new Promise<number | null>((resolve) => writer.on("exit", resolve))
      return { stdin: writer.stdin, stderr, ended }
    }
    const read = () => JSON.parse(readFileSync(join(folder, "one.json"), "utf8"))
    return { folder, options, baton, prog, startWriter, read }
  }

  test(promised("live-state.B1", "the writer keeps the last state, and ends when its stdin does"), async () => {
    const { startWriter, read, folder } = setUp()
    const writer = startWriter()
    writer.stdin.write(snapshot(0, STATE))
    for (let turn = 1; turn <= 500; turn++) writer.stdin.write(patch(turn, { agent: { turn_count: turn } }))
    writer.stdin.end()
    expect(await writer.ended).toBe(0)
    expect(read()).toEqual({ event: "state.patch", ts: at(500), state: { ...STATE, agent: { turn_count: 500 } } })
    expect(readdirSync(folder)).toEqual(["one.json"])
  })

  test(
    promised(["live-state.B1", "live-state.D2"], "a reader never sees half a file while it is written"),
    async () => {
      const { startWriter, read, folder } = setUp()
      const writer = startWriter()
      let reads = 0
      let isOver = false
      const over = writer.ended.then(() => {
        isOver = true
      })
      writer.stdin.write(snapshot(0, { ...STATE, padding: "x".repeat(100_000) }))
      await eventually("the file", () => existsSync(join(folder, "one.json")) || undefined)
      const reading = (async () => {
        while (!isOver) {
          expect(read().state.padding).toHaveLength(100_000)
          reads++
          await new Promise((resolve) => setImmediate(resolve))
        }
      })()
      for (let turn = 1; turn <= 20; turn++) {
        writer.stdin.write(patch(turn, { agent: { turn_count: turn } }))
        await eventually(`turn ${turn}`, () => read().state.agent.turn_count === turn || undefined)
      }
      writer.stdin.end()
      await Promise.all([over, reading])
      expect(reads).toBeGreaterThan(20)
      expect(read().state.agent.turn_count).toBe(20)
    },
  )

  test(promised("live-state.B2", "what it cannot use it skips, counts and says; the file stays valid"), async () => {
    const { startWriter, read } = setUp()
    const writer = startWriter()
    writer.stdin.write(`not json\n${patch(1, { early: true })}${snapshot(2, STATE)}{"event":"other","ts":"x"}\n`)
    writer.stdin.write(Buffer.from([0xff, 0xfe, 0x0a]))
    writer.stdin.write(`${"x".repeat(2 * 1024 * 1024)}\n${patch(3, { agent: { turn_count: 3 } })}`)
    writer.stdin.end()
    await writer.ended
    expect(read().state.agent.turn_count).toBe(3)
    expect(writer.stderr()).toContain("5 lines were skipped")
  })

  test(promised("live-state.B2", "a folder that cannot be written is tried again, and said once"), async () => {
    const { startWriter, read, folder } = setUp()
    mkdirSync(join(folder, ".."), { recursive: true })
    writeFileSync(folder, "in the way")
    const writer = startWriter()
    writer.stdin.write(snapshot(0, STATE))
    await eventually("the complaint", () => writer.stderr().includes("cannot be written, trying again") || undefined)
    rmSync(folder)
    await eventually("the file", () => existsSync(join(folder, "one.json")) || undefined)
    writer.stdin.end()
    await writer.ended
    expect(read().state.c2c_session_id).toBe("one")
    expect(writer.stderr().split("cannot be written")).toHaveLength(2)
    expect(writer.stderr()).toContain("the statefile is written again")
  })

  test(promised("live-state.B3", "agents are listed as alive or gone, and pruned on request"), () => {
    const { folder, baton } = setUp()
    expect(baton("state").stdout).toBe("No agents\n")
    mkdirSync(folder, { recursive: true })
    const write = (name: string, n: number, state: Record<string, unknown>) =>
      writeFileSync(join(folder, name), JSON.stringify({ event: "state.snapshot", ts: at(n), state }))
    const focus = { ty: "permission", details: { title: "bash" } }
    const extensions = { task: { id: "ts-b54507", role: "worker" } }
    write("a.json", 0, { ...STATE, c2c_session_id: "a", opencode_pid: DEAD })
    write("b.json", 1_000, { ...STATE, c2c_session_id: "b", tui_focus: focus, extensions })
    writeFileSync(join(folder, "junk.json"), "{")
    mkdirSync(join(folder, "folder.json"))
    expect(baton("state").stdout).toBe(
      "gone   2026-01-01 00:00:00  a  no session\n" +
        "alive  2026-01-01 00:00:01  b  no session  ts-b54507  asks permission: bash\n",
    )
    expect(baton("state").stderr).toMatch(/^state: left out: .*folder\.json: .*\n$/)
    expect(baton("observe")).toMatchObject({ status: 0, stderr: expect.stringContaining("folder.json") })
    expect(JSON.parse(baton("state", "list", "--json").stdout)).toHaveLength(2)
    expect(baton("state", "prune").stdout).toBe("1 removed\n")
    expect(readdirSync(folder).sort()).toEqual(["b.json", "folder.json", "junk.json"])
    expect(baton("state", "nonsense").stderr).toContain("expected list or prune, received 'nonsense'")
    expect(baton("state", "--help").stdout).toMatch(/^Usage: baton state/)
    expect(baton("state-writer", "--help").stdout).toMatch(/^Usage: baton state-writer/)
  })

  test(
    promised("live-state.C1", "observe prints once where no terminal listens, with the task's records, and as JSON"),
    () => {
      const { folder, baton, prog } = setUp()
      expect(baton("observe").stdout).toContain("No agents")
      const added = prog("add", "A title", "-p", "x")
      const id = added.stdout.trim()
      expect(id, added.stderr).toMatch(/^ts-/)
      mkdirSync(folder, { recursive: true })
      const state = { ...STATE, extensions: { task: { id, role: "worker" }, compactions: 1 } }
      writeFileSync(join(folder, "one.json"), JSON.stringify({ event: "state.snapshot", ts: at(0), state }))
      const seen = baton("observe")
      expect(seen.status, seen.stderr).toBe(0)
      expect(seen.stdout).toContain(`${id} (worker) A title [open]`)
      expect(JSON.parse(baton("observe", "--json").stdout)).toMatchObject([
        { name: "one", task: { id }, compactions: 1 },
      ])
      expect(baton("observe", "/nonexistent").stderr).toContain("expected a project folder, received '/nonexistent'")
      expect(baton("observe", "--help").stdout).toMatch(/^Usage: baton observe/)
    },
  )

  test(promised("claim.B1", "observe shows who has claimed a task, also where the real prog is used"), () => {
    const { folder, options, baton, prog } = setUp()
    const id = prog("add", "A title", "-p", "x").stdout.trim()
    expect(prog("claim", id, "--as", "ada").stdout).toBe(`Claimed ${id}\n`)
    mkdirSync(folder, { recursive: true })
    const state = { ...STATE, extensions: { task: { id, role: "worker" } } }
    writeFileSync(join(folder, "one.json"), JSON.stringify({ event: "state.snapshot", ts: at(0), state }))
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
