import { spawn } from "node:child_process"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { queryAudit } from "../../../.opencode/baton/pass-over/audit/query.ts"
import { isUnfinished } from "../../../.opencode/baton/pass-over/store/record.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { testRandom } from "../../support/test-random.ts"

const KILLS = runs(4)
/** Far more passes than a process makes before it is killed. */
const NUMBERS_OF_A_LIFE = 100_000

const setUp = () => {
  const random = testRandom()
  const folder = temporaryFolder()
  const log = createRecordedLog()
  const store = createPassStore({ state: createStateFolder(folder), log })
  const count = async (): Promise<number> => (await store.idsOfRoot("ses_root")).length
  const killOnce = async (life: number): Promise<void> => {
    const before = await count()
    const script = join(REPOSITORY, "test", "fixtures", "work-on-passes.ts")
    const argv = ["--no-env-file", "--config=/dev/null", "run", script, folder, String(life * NUMBERS_OF_A_LIFE)]
    const child = spawn(NEWEST.path, argv, { env: { ...process.env, BUN_BE_BUN: "1" }, stdio: "inherit" })
    const ended = new Promise((resolve) => child.once("exit", resolve))
    await vi.waitFor(async () => expect(await count()).toBeGreaterThan(before), { timeout: 10_000, interval: 1 })
    // At any point of the four changes of a pass.
    await new Promise((resolve) => setTimeout(resolve, random() * 30))
    child.kill("SIGKILL")
    await ended
  }
  return { folder, log, store, killOnce }
}

test(promised(
  ["pass-over.E4", "pass-over.E3"],
  "no pass is lost, half-written or unlisted, and the audit is at most one line behind, after kill -9 again and again",
), async () => {
  const { folder, log, store, killOnce } = setUp()
  for (let life = 0; life < KILLS; life++) await killOnce(life)

  const records = await store.listOfSession("ses_root")
  const counted = await store.idsOfRoot("ses_root")
  // A kill may hit between a pass's entry in the lists and the pass itself.
  expect(counted.length - records.length).toBeLessThanOrEqual(KILLS)
  expect(log.lines).toEqual([])
  expect(await store.listUnfinished()).toEqual(records.filter(isUnfinished))

  const { passes, unreadable } = await queryAudit(folder)
  expect(unreadable).toEqual([])
  const behind = records.filter(({ request, history }) => {
    const audited = passes.find(({ pass_over_id: id }) => id === request.pass_over_id)?.history ?? []
    const states = history.map(({ state }) => state)
    expect(states.slice(0, audited.length)).toEqual(audited.map(({ state }) => state))
    expect(states.length - audited.length).toBeLessThanOrEqual(1)
    return states.length > audited.length
  })
  expect(behind.length).toBeLessThanOrEqual(KILLS)

  for (const { request } of records.filter(isUnfinished))
    expect(await store.update(request.pass_over_id, (record) => record)).toBeDefined()
}, 60_000)
