import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { createStreamWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const TS = "2026-01-01T00:00:00.000Z"

/** Its snapshots hold the number of patches at the time of the call. */
const setUp = (script: string, { firstRestartMs = 20, shell = "/bin/sh" } = {}) => {
  const folder = temporaryFolder()
  const out = join(folder, "out.jsonl")
  const log = createRecordedLog()
  let sent = 0
  let snapshots = 0
  const writer = createStreamWriter({
    argv: [shell, "-c", script.replaceAll("OUT", out)],
    directory: folder,
    snapshot: () => {
      snapshots++
      return { event: "state.snapshot", ts: TS, state: { n: sent } } as unknown as StreamLine
    },
    log,
    firstRestartMs,
    longestRestartMs: 100,
  })
  onTestFinished(() => writer.stop(0))
  const publish = (padding = ""): void => {
    sent++
    writer.publish({ event: "state.patch", ts: TS, patch: { n: sent, padding } })
  }
  /** Text after the last line break is still being written. */
  const linesOf = (path: string) => (existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [])
  const lines = () =>
    linesOf(out).map((line): StreamLine & { state?: { n: number }; patch?: { n: number } } => JSON.parse(line))
  const pids = () => linesOf(`${out}.pids`).map(Number)
  const said = (message: string) => log.lines.filter((line) => line.message === message)
  return { writer, publish, lines, pids, said, snapshots: () => snapshots, log }
}

describe("the stream writer", () => {
  test(
    promised("live-state.A3", "the stream writer begins with a snapshot and keeps the order of the patches"),
    async () => {
      const { writer, publish, lines } = setUp("exec cat >> OUT")
      for (let n = 0; n < 100; n++) publish()
      await writer.stop(5_000)
      const [first, ...rest] = lines()
      expect(first).toMatchObject({ event: "state.snapshot", state: { n: 1 } })
      expect(rest.map((line) => line.patch?.n)).toEqual(Array.from({ length: 99 }, (_, index) => index + 2))
    },
  )

  test(promised("live-state.A3", "a writer that ends is started again, each life with a snapshot first"), async () => {
    const { publish, lines, said } = setUp("head -n 2 >> OUT; exit 7")
    await eventually("three lives", () => {
      publish()
      return lines().filter(({ event }) => event === "state.snapshot").length >= 3 || undefined
    })
    const events = lines().map(({ event }) => event)
    expect(events.filter((_, index) => index % 2 === 0)).not.toContain("state.patch")
    expect(said("the state writer ended and is started again")).not.toEqual([])
  })

  test(promised("live-state.A3", "a writer that does not read costs bounded memory, has the newest then"), async () => {
    const { writer, publish, lines, snapshots } = setUp("sleep 1; exec cat >> OUT")
    const padding = "x".repeat(10_000)
    for (let n = 0; n < 2_000; n++) publish(padding)
    await eventually("the end of the stream", () => lines().at(-1)?.state?.n === 2_000 || undefined)
    expect(lines().length).toBeLessThan(200)
    expect(snapshots()).toBe(2)
    await writer.stop(5_000)
  })

  test(promised("live-state.A3", "a program that is not there is not tried again"), async () => {
    const { publish, log, snapshots } = setUp("", { shell: "/nonexistent/writer", firstRestartMs: 1 })
    const warnings = () => log.lines.filter(({ level }) => level === "warn")
    publish()
    await eventually("the warning", () => warnings()[0])
    for (let n = 0; n < 10; n++) publish()
    expect(warnings()).toHaveLength(1)
    expect(snapshots()).toBeLessThanOrEqual(1)
  })

  test(
    promised("live-state.D2", "a writer killed again and again is one at a time, and the newest arrives"),
    async () => {
      const KILLS = runs(5)
      const { publish, lines, pids } = setUp("echo $$ >> OUT.pids; exec cat >> OUT", { firstRestartMs: 1 })
      for (let kills = 0; kills < KILLS; kills++) {
        publish()
        const alive = await eventually("a writer", () => pids().filter(isAlive).at(-1))
        expect(pids().filter(isAlive)).toHaveLength(1)
        process.kill(alive, "SIGKILL")
        await eventually("its end", () => !isAlive(alive) || undefined)
      }
      await eventually("the last state", () => {
        publish()
        const last = lines().at(-1)
        return (last?.state?.n ?? last?.patch?.n ?? 0) > KILLS || undefined
      })
    },
  )

  test(promised("live-state.A3", "what a writer says on stderr is logged, five times at most"), async () => {
    const { publish, said } = setUp("for i in 1 2 3 4 5 6 7 8 9; do echo complaint $i >&2; sleep 0.02; done")
    publish()
    await eventually("two lives of it", () => said("the state writer ended and is started again")[1])
    expect(said("the state writer says")).toHaveLength(5)
  })

  test(promised("live-state.A3", "stopping the stream writer ends a writer that would not end"), async () => {
    const { writer, publish, pids } = setUp("trap '' TERM; echo $$ >> OUT.pids; while :; do sleep 1; done")
    publish()
    const pid = await eventually("its start", () => pids()[0])
    await writer.stop(200)
    await eventually("its end", () => !isAlive(pid) || undefined)
  })
})
