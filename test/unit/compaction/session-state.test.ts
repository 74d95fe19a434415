import { expect, test, vi } from "vitest"
import { createSessionStates, type SessionState } from "../../../.opencode/baton/compaction/session-state.ts"
import { promised } from "../../requirements.ts"
import { createSlowStore } from "../../support/memory-store.ts"

/** Session states on a disk whose writes end on command, in any order. */
const setUp = () => {
  const store = createSlowStore<SessionState>()
  const read = vi.fn(store.read)
  const { values: disk, endWrites } = store
  return { disk, read, endWrites, sessionStates: createSessionStates({ ...store, read }) }
}

const count = (to: number) => (sessionState: SessionState) => ({ ...sessionState, count: to })

test(promised(["compaction.C7", "faults.F2"], "of two saves at once the newer state ends up on disk"), async () => {
  const { disk, endWrites, sessionStates } = setUp()
  await sessionStates.update("ses_1", count(1))
  const first = sessionStates.save("ses_1")
  await new Promise((resolve) => setImmediate(resolve))
  await sessionStates.update("ses_1", count(2))
  const second = sessionStates.save("ses_1")
  await endWrites()
  expect(await Promise.all([first, second])).toEqual([true, true])
  expect(disk.get("ses_1")?.count).toBe(2)
})

test(promised("faults.F2", "saving all waits for a write that is under way and begins what is missing"), async () => {
  const { disk, endWrites, sessionStates } = setUp()
  await sessionStates.update("ses_1", count(1))
  void sessionStates.save("ses_1")
  await sessionStates.update("ses_2", count(2))
  const all = sessionStates.saveAll().then(() => [...disk.values()].map((sessionState) => sessionState.count))
  await endWrites()
  expect(new Set(await all)).toEqual(new Set([1, 2]))
})

test(promised("compaction.C5", "a state that falls out of memory is saved first, and read back"), async () => {
  const { disk, read, endWrites, sessionStates } = setUp()
  await sessionStates.update("ses_0", count(7))
  for (let at = 1; at <= 2_000; at++) await sessionStates.load(`ses_${at}`)
  expect((await sessionStates.load("ses_0")).count).toBe(7)
  await endWrites()
  expect(disk.get("ses_0")?.count).toBe(7)
  for (let at = 1; at <= 2_000; at++) await sessionStates.load(`ses_${at}`)
  read.mockClear()
  expect((await sessionStates.load("ses_0")).count).toBe(7)
  expect(read.mock.calls).toEqual([["ses_0"]])
})

test(promised("task.B3", "a forgotten session does not come back with a write that was under way"), async () => {
  const { disk, endWrites, sessionStates } = setUp()
  await sessionStates.update("ses_1", count(1))
  void sessionStates.save("ses_1")
  const forgotten = sessionStates.forget("ses_1")
  await endWrites()
  await forgotten
  expect(disk.size).toBe(0)
})
