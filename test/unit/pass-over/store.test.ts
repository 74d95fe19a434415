import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { queryAudit } from "../../../.opencode/baton/pass-over/audit/query.ts"
import {
  createPassID,
  isPassID,
  isUnfinished,
  type PassRecord,
  type PassState,
  SENT,
} from "../../../.opencode/baton/pass-over/store/record.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { endWithTest, temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import {
  builtInPolicy,
  PASS_ID,
  passMetadata,
  passRecord,
  passRequest,
  returnedState,
  workOutput,
} from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { testRandom } from "../../support/test-random.ts"

const setUp = () => {
  const root = temporaryFolder()
  const log = createRecordedLog()
  const store = createPassStore({ state: createStateFolder(root), log })
  return { root, log, store, folder: join(root, ".opencode", "state", "pass-over") }
}

const recordOf = (passID: string, rootSession = "ses_root") =>
  passRecord({
    request: passRequest({ pass_over_id: passID, metadata: passMetadata({ root_session_id: rootSession }) }),
  })

describe("a stored pass", () => {
  test(promised("pass-over.E4", "a pass is read as it was written, and unknown ones are not there"), async () => {
    const { store, log, folder } = setUp()
    const record = passRecord({ child_session_id: "ses_child", output: workOutput() })
    await store.create(record)
    expect(await store.read(PASS_ID)).toEqual(record)
    expect(statSync(join(folder, PASS_ID, "pass.json")).mode & 0o777).toBe(0o600)
    for (const id of ["pass_20260101102030000_none", "", "../../etc/passwd", `${PASS_ID}/..`])
      expect(await store.read(id)).toBeUndefined()
    expect(log.lines).toEqual([])
  })

  test(
    promised("pass-over.E4", "a pass of a newer version is read after a downgrade, keeps what it has more"),
    async () => {
      const { store, folder } = setUp()
      const path = join(folder, PASS_ID, "pass.json")
      await store.create(passRecord())
      const { policy, request, ...record } = passRecord()
      const newer = { ...record, new: 1, request: { ...request, new: 1 }, policy: { ...policy, new: 1 } }
      writeFileSync(path, JSON.stringify(newer))
      expect(await store.update(PASS_ID, (before) => ({ ...before, attempts: 2 }))).toMatchObject({ attempts: 2 })
      expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ ...newer, attempts: 2 })
    },
  )

  test(promised("pass-over.E4", "a stored pass that is damaged is named in the log and taken for absent"), async () => {
    const { store, log, folder } = setUp()
    await store.create(passRecord())
    for (const text of ["", "{", '{"version":2}']) {
      writeFileSync(join(folder, PASS_ID, "pass.json"), text)
      expect(await store.read(PASS_ID)).toBeUndefined()
      expect(await store.update(PASS_ID, (record) => record)).toBeUndefined()
    }
    expect(log.lines.map(({ level }) => level)).toEqual(Array(6).fill("warn"))
  })

  test(
    promised("pass-over.E4", "a stored pass stays as it is when a change gives nothing or throws, and goes on"),
    async () => {
      const { store } = setUp()
      const record = passRecord()
      await store.create(record)
      expect(await store.update(PASS_ID, () => undefined)).toEqual(record)
      const thrown = store.update(PASS_ID, () => {
        throw new Error("no")
      })
      await expect(thrown).rejects.toThrow("no")
      expect(await store.read(PASS_ID)).toEqual(record)
      expect(await store.update(PASS_ID, (before) => ({ ...before, attempts: 2 }))).toMatchObject({ attempts: 2 })
    },
  )

  test(promised("pass-over.E4", "a pass can be changed soon after a crash that cut its lock short"), async () => {
    const { store, folder } = setUp()
    await store.create(passRecord())
    writeFileSync(join(folder, PASS_ID, "pass.lock"), "")
    expect(await store.update(PASS_ID, (before) => ({ ...before, attempts: 2 }))).toMatchObject({ attempts: 2 })
    expect(readdirSync(join(folder, PASS_ID))).toEqual(["pass.json"])
  })

  test(
    promised("pass-over.D1", "a stored pass is not made under a name that is none, nor where none can be counted"),
    async () => {
      const { store, folder } = setUp()
      await expect(store.create(recordOf("pass_x"))).rejects.toThrow("expected a pass id and session ids")
      await expect(store.create(recordOf(PASS_ID, "../x"))).rejects.toThrow("received pass_")
      mkdirSync(join(folder, "by-root"), { recursive: true })
      writeFileSync(join(folder, "by-root", "ses_a"), "")
      expect(() => store.idsOfRoot("ses_a")).toThrow("ENOTDIR")
      await expect(store.create(recordOf(PASS_ID, "ses_a"))).rejects.toThrow()
      expect(await store.read(PASS_ID)).toBeUndefined()
    },
  )

  test(
    promised("pass-over.D1", "a stored pass is counted for its root session; its last place goes to one of two"),
    async () => {
      const { store } = setUp()
      const policy = builtInPolicy({ max_passes_per_session: 2 })
      const [other, ...ids] = [0, 1, 2, 3].map((n) => `pass_2026010110203000${n}_abcd`)
      await store.create(recordOf(other ?? "", "ses_b"))
      const made = await Promise.all(ids.map((id) => store.create({ ...recordOf(id), policy })))
      expect(made.map(({ kind }) => kind)).toEqual(["created", "created", "full"])
      expect(["ses_root", "ses_b", "ses_none"].map(store.idsOfRoot)).toEqual([ids.slice(0, 2), [other], []])
    },
  )

  test(
    promised("pass-over.E4", "a pass that a crash kept from being written is removed, and counts no more"),
    async () => {
      const { store, folder } = setUp()
      await store.create(recordOf(PASS_ID))
      await store.removeUnwritten(PASS_ID)
      expect(await store.read(PASS_ID)).toBeDefined()
      rmSync(join(folder, PASS_ID, "pass.json"))
      await store.removeUnwritten(PASS_ID)
      expect([store.idsOfRoot("ses_root"), store.idsOfSession("ses_root"), store.idsUnfinished()]).toEqual([[], [], []])
      expect(existsSync(join(folder, PASS_ID))).toBe(false)
    },
  )
})

describe("passes", () => {
  const ID = (day: number) => createPassID(new Date(Date.UTC(2026, 0, day)), "abcd")
  const stored = (day: number, state: PassState, change: Partial<PassRecord> = {}): PassRecord =>
    passRecord({
      request: passRequest({ pass_over_id: ID(day), originating_session_id: day % 2 === 0 ? "ses_even" : "ses_odd" }),
      history: [{ at: new Date(Date.UTC(2026, 0, day)).toISOString(), state: state.state }],
      state,
      ...change,
    })
  const idsOf = (records: readonly PassRecord[]) => records.map(({ request }) => request.pass_over_id)

  test(
    promised("pass-over.E4", "passes that are not at their end are listed, or one session's, oldest first"),
    async () => {
      const { store, folder } = setUp()
      const [undecided, late] = [returnedState({ undecided: ["a.ts"] }), returnedState({ is_late: true })]
      const states: PassState[] = [SENT, returnedState(), undecided, late, { state: "timed_out" }]
      for (const [at, state] of states.entries()) await store.create(stored(at + 1, state))
      writeFileSync(join(folder, "unfinished", ID(9)), "")
      expect(idsOf(await store.listUnfinished())).toEqual([1, 3, 4, 5].map(ID))
      expect(idsOf(await store.listOfSession("ses_even"))).toEqual([2, 4].map(ID))
      expect(store.idsOfSession("ses_odd")).toEqual([1, 3, 5].map(ID))
      expect(store.idsOfSession("../ses_odd")).toEqual([])

      const state = returnedState({ state: "applied", applied: ["a.ts"] })
      await store.update(ID(3), (record) => ({ ...record, state }))
      await store.update(ID(4), (record) => ({ ...record, announced_at: record.history[0]?.at ?? "" }))
      expect(idsOf(await store.listUnfinished())).toEqual([1, 5].map(ID))
      expect(readdirSync(join(folder, "unfinished"))).toEqual([1, 2, 5, 9].map(ID))
    },
  )

  test(promised("pass-over.B3", "passes that are finished and old are removed; nothing that waits is"), async () => {
    const { store, folder, log } = setUp()
    const cancelled: PassState = { state: "cancelled" }
    const history = [{ at: "2026-01-07T00:00:00.000Z", state: "applied" }] as const
    await store.create(stored(1, SENT))
    await store.create(stored(2, returnedState({ undecided: ["a.ts"] })))
    await store.create(stored(3, returnedState({ state: "applied" }), { history }))
    await store.create(stored(4, cancelled))
    await store.create(stored(5, returnedState()))
    await store.create(stored(8, cancelled))
    await store.removeFinished(new Date(Date.UTC(2026, 0, 6)))
    expect(readdirSync(folder).filter(isPassID)).toEqual([1, 2, 3, 8].map(ID))
    expect(store.idsOfRoot("ses_root")).toEqual([1, 2, 3, 8].map(ID))
    expect(log.lines).toEqual([])
  })
})

describe("a stored answer", () => {
  const KEY = "a".repeat(64)
  const answered = passRecord({ output: workOutput(), cache_key: KEY })

  test(promised("pass-over.A7", "a stored answer is found by its question, and by no other"), async () => {
    const { store } = setUp()
    await store.create(answered)
    expect(await store.findAnswer(KEY)).toBeUndefined()
    await store.keepAnswer(answered)
    expect(await store.findAnswer(KEY)).toEqual(answered)
    for (const key of ["b".repeat(64), "../x", ""]) expect(await store.findAnswer(key)).toBeUndefined()
  })

  test(
    promised("pass-over.A7", "a stored answer is none when the output is not whole, is gone, or is another's"),
    async () => {
      const { store, folder } = setUp()
      const partial = passRecord({ ...answered, output: workOutput({ status: "partial" }) })
      await store.create(partial)
      await store.keepAnswer(partial)
      expect(await store.findAnswer(KEY)).toBeUndefined()
      await store.keepAnswer(answered)
      expect(await store.findAnswer(KEY)).toBeUndefined()
      await store.update(PASS_ID, () => ({ ...answered, cache_key: "b".repeat(64) }))
      expect(await store.findAnswer(KEY)).toBeUndefined()
      writeFileSync(join(folder, "cache", KEY), "pass_20260101102030000_gone\n")
      expect(await store.findAnswer(KEY)).toBeUndefined()
    },
  )
})

test("ids sort by time and are told from anything else", () => {
  const ids = [0, 1, 1000].map((ms) => createPassID(new Date(Date.UTC(2026, 0, 1) + ms), "abcd1234"))
  expect(ids).toEqual([...ids].sort())
  expect(ids.every(isPassID)).toBe(true)
  expect(["pass_", "pass_20260101102030000_../x", `x${PASS_ID}`, `${PASS_ID}\n`].some(isPassID)).toBe(false)
})

const start = (fixture: string, ...args: string[]) => {
  const script = join(REPOSITORY, "test", "fixtures", fixture)
  const argv = ["--no-env-file", "--config=/dev/null", "run", script, ...args]
  const child = endWithTest(spawn(NEWEST.path, argv, { env: { ...process.env, BUN_BE_BUN: "1" }, stdio: "inherit" }))
  return { child, ended: new Promise<number | null>((resolve) => child.once("exit", resolve)) }
}

test(promised("pass-over.E4", "a pass loses no change of many at once, in one process and in several"), async () => {
  const { store, root, folder } = setUp()
  await store.create(passRecord())
  const own = Array.from({ length: 30 }, () =>
    store.update(PASS_ID, (record) => ({ ...record, attempts: record.attempts + 1 })),
  )
  const others = [1, 2].map(() => start("change-pass.ts", root, PASS_ID, "30").ended)
  await Promise.all(own)
  expect(await Promise.all(others)).toEqual([0, 0])
  expect((await store.read(PASS_ID))?.attempts).toBe(90)
  expect(readdirSync(join(folder, PASS_ID))).toEqual(["pass.json"])
}, 60_000)

test(promised("pass-over.E4", "a result whose files are found later is unfinished again"), async () => {
  const { store } = setUp()
  await store.create(recordOf(PASS_ID))
  const becomes = (undecided: string[]) =>
    store.update(PASS_ID, (record) => ({ ...record, state: returnedState({ undecided }) }))
  await becomes([])
  expect(store.idsUnfinished()).toEqual([])
  await becomes(["a.ts"])
  expect(store.idsUnfinished()).toEqual([PASS_ID])
})

test(promised(["pass-over.E4", "pass-over.E3"], "kill -9 loses no pass, and a line of the audit at most"), async () => {
  const { root, log, store } = setUp()
  const random = testRandom()
  const kills = runs(4)
  const made = () => store.idsOfRoot("ses_root").length
  for (let life = 0; life < kills; life++) {
    // Far fewer passes are made in a life, which is killed at any point of the four changes of a pass.
    const firstNumber = String(life * 100_000)
    const { child, ended } = start("work-on-passes.ts", root, firstNumber)
    const before = made()
    await vi.waitFor(() => expect(made()).toBeGreaterThan(before), { timeout: 30_000, interval: 1 })
    await new Promise((resolve) => setTimeout(resolve, random() * 30))
    child.kill("SIGKILL")
    await ended
  }

  const records = await store.listOfSession("ses_root")
  // A kill may hit between a pass's entry in the lists and the pass itself.
  expect(made() - records.length).toBeLessThanOrEqual(kills)
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
