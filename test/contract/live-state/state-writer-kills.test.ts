import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { chooseWriter, createStreamWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { promised } from "../../requirements.ts"
import { EFFORT, runs, SEED } from "../../support/effort.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import { createStatefileFolder } from "../../support/opencode/observed-page.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

/** One end, chosen by the seed; at night both. */
const ENDS = EFFORT > 1 ? BOTH_ENDS : BOTH_ENDS.slice(SEED % BOTH_ENDS.length).slice(0, 1)

const KILLS = runs(5)
const NAMED = { variable: undefined, setting: undefined, c2c: undefined }

describe.each(ENDS)("on OpenCode $version", (binary) => {
  test(promised(
    ["live-state.A3", "live-state.B1", "live-state.B3", "live-state.D2"],
    "an embedded writer killed again and again at any moment is one at a time, and its file is whole at every read",
  ), async () => {
    const { project } = createStatefileFolder()
    const script = join(project, ".opencode/baton/live-state/state-writer.ts")
    const chosen = chooseWriter({ ...NAMED, runtime: binary.path, script, directory: project })
    if (chosen.kind === "none") throw new Error(chosen.reason)
    let turn = 0
    const padding = "x".repeat(50_000)
    const time = () => new Date(Date.UTC(2026, 0, 1) + turn).toISOString()
    const state = () => ({ c2c_session_id: "one", opencode_pid: process.pid, turn, padding })
    const writer = createStreamWriter({
      command: chosen.command,
      directory: project,
      snapshot: () => ({ event: "state.snapshot", ts: time(), state: state() }) as unknown as StreamLine,
      log: createRecordedLog(),
      endsByItself: true,
      firstRestartMs: 1,
      longestRestartMs: 1,
    })
    onTestFinished(() => writer.stop(0))
    const publish = (): void => {
      turn++
      writer.publish({ event: "state.patch", ts: time(), patch: { turn } })
    }
    const running = async () =>
      (await readProcesses(process.platform)).filter(({ args }) => args.includes(script)).map(({ pid }) => pid)

    const folder = join(project, ".opencode/state/live")
    const file = join(folder, "one.json")
    let reads = 0
    const readWhole = (): number | undefined => {
      if (!existsSync(file)) return undefined
      const seen = JSON.parse(readFileSync(file, "utf8")).state
      expect(seen.padding).toHaveLength(padding.length)
      reads++
      return seen.turn
    }
    for (let kill = 0; kill < KILLS; kill++) {
      // Some are killed before they have read a line, some during a write, some while idle.
      const patches = (kill * 7) % 13
      for (let patch = 0; patch <= patches; patch++) {
        publish()
        readWhole()
        await new Promise((resolve) => setImmediate(resolve))
      }
      const [pid] = await eventually("a writer", async () => {
        const found = await running()
        return found.length > 0 ? found : undefined
      })
      expect((await running()).length).toBeLessThanOrEqual(1)
      if (kill % 3 === 0) {
        publish()
        await eventually("the state on disk", () => readWhole() === turn || undefined)
      }
      if (pid !== undefined) process.kill(pid, "SIGKILL")
      await eventually("its end", async () => ((await running()).includes(pid ?? -1) ? undefined : true))
    }
    publish()
    await eventually("the newest state", () => readWhole() === turn || undefined)
    await writer.stop(5_000)
    await eventually("the last writer's end", async () => ((await running()).length === 0 ? true : undefined))
    expect(readWhole()).toBe(turn)
    expect(reads).toBeGreaterThan(KILLS)
    expect(readdirSync(folder).filter((name) => name.endsWith(".json"))).toEqual(["one.json"])
  }, 120_000)
})
