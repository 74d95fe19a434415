import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createOutbox } from "../../../.opencode/baton/ledger/outbox.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createScriptedLedger } from "../../support/ledger/scripted-ledger.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { testRandom } from "../../support/test-random.ts"

const TASK = "ts-000001"
const FIXTURES = join(REPOSITORY, "test", "fixtures")
/** Far longer than the fixture's write takes, even on a busy machine. */
const ORPHAN_GRACE_MS = 1500

const setUp = async (messages: readonly string[]) => {
  const folder = temporaryFolder()
  const programs = join(folder, "programs")
  const ledgerFile = join(folder, "ledger")
  mkdirSync(programs)
  copyFileSync(join(FIXTURES, "slow-prog.sh"), join(programs, "prog"))
  const { ledger, script } = createScriptedLedger()
  script.readable = false
  const outbox = createOutbox({ ledger, state: createStateFolder(folder), log: createRecordedLog() })
  for (const message of messages) await outbox.add({ kind: "log", taskID: TASK, message })
  await outbox.flush(5000)
  outbox.stop()
  const read = () => (existsSync(ledgerFile) ? readFileSync(ledgerFile, "utf8").split("\n").slice(0, -1) : [])
  const waiting = () =>
    readdirSync(join(folder, ".opencode", "state", "outbox")).filter((name) => name.endsWith(".json")).length
  const env = {
    ...process.env,
    PATH: `${programs}:${process.env.PATH}`,
    SLOW_PROG_LOG: ledgerFile,
    ORPHAN_GRACE_MS: String(ORPHAN_GRACE_MS),
    BATON_LEDGER: "real",
    BUN_BE_BUN: "1",
  }
  const drainer = join(FIXTURES, "drain-outbox.ts")
  const startDrain = () => {
    const argv = ["--no-env-file", "--config=/dev/null", "run", drainer, folder]
    const child = spawn(NEWEST.path, argv, { env, stdio: "inherit" })
    return { kill: () => child.kill("SIGKILL"), ended: once(child, "exit") }
  }
  return { read, waiting, startDrain }
}

test(promised(["ledger.D2", "faults.F2"], "each record comes once and in order through many kill -9"), async () => {
  const KILLS = runs(3)
  // More than the killed processes can write.
  const messages = Array.from({ length: 8 * KILLS }, (_, at) => `record ${at % 5}`)
  const { read, waiting, startDrain } = await setUp(messages)
  const random = testRandom()
  const moments: number[] = []
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = read().length
    const { kill, ended } = startDrain()
    await vi.waitFor(() => expect(read().length).toBeGreaterThan(before), { timeout: 20_000, interval: 2 })
    // At any point of the next write: before it, in it, after it, or before the record is removed.
    const moment = random() * 60
    moments.push(moment)
    await new Promise((resolve) => setTimeout(resolve, moment))
    kill()
    await ended
  }
  await startDrain().ended
  expect(waiting()).toBe(0)
  expect(read(), `killed after ${moments.join(", ")} ms`).toEqual(messages)
}, 120_000)
