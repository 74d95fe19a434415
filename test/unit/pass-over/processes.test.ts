import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { isAuditEntry } from "../../../.opencode/baton/pass-over/audit/log.ts"
import { queryAudit } from "../../../.opencode/baton/pass-over/audit/query.ts"
import { isUnfinished } from "../../../.opencode/baton/pass-over/store/record.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { PASS_ID, passRecord } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { testRandom } from "../../support/test-random.ts"

const setUp = () => {
  const root = temporaryFolder()
  const log = createRecordedLog()
  return { root, log, store: createPassStore({ state: createStateFolder(root), log }) }
}

const start = (fixture: string, ...args: string[]) => {
  const script = join(REPOSITORY, "test", "fixtures", fixture)
  const argv = ["--no-env-file", "--config=/dev/null", "run", script, ...args]
  const child = spawn(NEWEST.path, argv, { env: { ...process.env, BUN_BE_BUN: "1" }, stdio: "inherit" })
  return { child, ended: new Promise<number | null>((resolve) => child.once("exit", resolve)) }
}

/** Kills a program some time after what it leaves behind has begun to grow. */
const killOnce = async (
  { child, ended }: ReturnType<typeof start>,
  { size, afterMs = 0 }: { size: () => number | Promise<number>; afterMs?: number },
): Promise<void> => {
  const before = await size()
  await vi.waitFor(async () => expect(await size()).toBeGreaterThan(before), { timeout: 10_000, interval: 1 })
  if (afterMs > 0) await new Promise((resolve) => setTimeout(resolve, afterMs))
  child.kill("SIGKILL")
  await ended
}

test(promised("pass-over.E4", "a pass loses no change of many at once, in one process and in several"), async () => {
  const { store, root } = setUp()
  await store.create(passRecord())
  const own = Array.from({ length: 30 }, () =>
    store.update(PASS_ID, (record) => ({ ...record, attempts: record.attempts + 1 })),
  )
  const others = [1, 2].map(() => start("change-pass.ts", root, PASS_ID, "30").ended)
  await Promise.all(own)
  expect(await Promise.all(others)).toEqual([0, 0])
  expect((await store.read(PASS_ID))?.attempts).toBe(90)
  expect(readdirSync(join(root, ".opencode", "state", "pass-over", PASS_ID))).toEqual(["pass.json"])
})

test(promised(
  "pass-over.E3",
  "the audit is valid in every line after kill -9 in the middle, again and again",
), async () => {
  const { root } = setUp()
  const month = new Date().toISOString().slice(0, 7)
  const file = join(root, ".opencode", "pass-over-logs", month, "session-ses_root-passes.jsonl")
  const size = () => (existsSync(file) ? statSync(file).size : 0)
  for (let kills = 0; kills < runs(2); kills++) {
    await killOnce(start("append-audit.ts", root), { size })
    const lines = readFileSync(file, "utf8").split("\n").slice(0, -1)
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.filter((line) => !isAuditEntry(JSON.parse(line)))).toEqual([])
  }
}, 60_000)

test(promised(
  ["pass-over.E4", "pass-over.E3"],
  "no pass is lost, half-written or unlisted, and the audit is at most one line behind, after kill -9 again and again",
), async () => {
  const { root, log, store } = setUp()
  const random = testRandom()
  const kills = runs(4)
  const size = async () => (await store.idsOfRoot("ses_root")).length
  for (let life = 0; life < kills; life++) {
    // Far fewer passes are made in a life; the moment is at any point of the four changes of a pass.
    const firstNumber = String(life * 100_000)
    await killOnce(start("work-on-passes.ts", root, firstNumber), { size, afterMs: random() * 30 })
  }

  const records = await store.listOfSession("ses_root")
  // A kill may hit between a pass's entry in the lists and the pass itself.
  expect((await size()) - records.length).toBeLessThanOrEqual(kills)
  expect(log.lines).toEqual([])
  expect(await store.listUnfinished()).toEqual(records.filter(isUnfinished))

  const { passes, unreadable } = await queryAudit(root)
  expect(unreadable).toEqual([])
  const behind = records.filter(({ request, history }) => {
    const audited = passes.find(({ pass_over_id: id }) => id === request.pass_over_id)?.history ?? []
    const states = history.map(({ state }) => state)
    expect(states.slice(0, audited.length)).toEqual(audited.map(({ state }) => state))
    expect(states.length - audited.length).toBeLessThanOrEqual(1)
    return states.length > audited.length
  })
  expect(behind.length).toBeLessThanOrEqual(kills)

  for (const { request } of records.filter(isUnfinished))
    expect(await store.update(request.pass_over_id, (record) => record)).toBeDefined()
}, 60_000)
