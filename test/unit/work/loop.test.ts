import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import type { Queue, RunState, Taken, WorkLedger } from "../../../.opencode/baton/work/ledger.ts"
import { createLoop, EXIT, type LoopDeps, type WorkEvent } from "../../../.opencode/baton/work/loop.ts"
import { parseWorkOptions } from "../../../.opencode/baton/work/options.ts"
import { findMarked, RUN_MARK } from "../../../.opencode/baton/work/processes.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/unit.ts"

const LATER = new Date(Date.now() + 600_000).toISOString()
const EMPTY: Queue = {
  ready: 0,
  later: 0,
  next: "",
  waiting: 0,
  at_work: 0,
  counts: {},
  blocked: [],
  tasks: [],
  begun: [],
}
/** Processes are found by it on the whole machine, where other tests run. */
const idOf = (n: number): string => `ts-${process.pid}l${n}`
const taskOf = (n: number): Taken => ({
  ...{ task: idOf(n), title: `T${n}`, definition_of_done: "", run: 1, earlier: [], answer: "" },
})
/** Works until the test says go, each agent by its task. */
const PATIENT = "#!/bin/sh\ntouch began.$BATON_RUN\nwhile [ ! -e go ] && [ ! -e go.$BATON_RUN ]; do sleep 0.02; done\n"

type Changes = Partial<Omit<LoopDeps, "ledger" | "options">> & {
  ledger?: Partial<WorkLedger>
  args?: readonly string[]
  /** The end as the ledger has it. */
  end?: Partial<RunState>
}

/** A loop over agents that are shell scripts and a ledger that hands out what `claimNext` says. */
const openLoop = ({ ledger: changes = {}, args = [], end = {}, ...others }: Changes) => {
  const directory = temporaryFolder()
  const opencode = join(directory, "opencode")
  writeFileSync(opencode, PATIENT, { mode: 0o755 })
  const told: WorkEvent[] = []
  const options = parseWorkOptions(args)
  const ledger = {
    claimNext: async () => undefined,
    queue: async () => EMPTY,
    beat: async () => ({ wanted: "active", runs: [] }),
    show: async () => ({ dependencies: [] }),
    endRun: async ({ task, n, kind, detail }) => ({
      ...{ task, n, kind, detail, session: "ses_1", ended: "now", next_try: "", tokens: 0, status: "open" },
      ...end,
    }),
    ...changes,
  } as WorkLedger
  const loop = createLoop({
    ...{ options, ledger, project: "demo", worker: { id: "w", project: "demo", directory, slots: options.slots } },
    runDeps: (slot) => ({
      ...{ opencode, directory, options, ledger, worktrees: undefined, checks: new Map(), workerID: "w" },
      ...{ holder: `w.${slot}`, prompt: () => "{{task_id}}", say: (event) => void told.push(event), nowMs: Date.now },
    }),
    probe: async () => undefined,
    tell: (event) => void told.push(event),
    nowMs: Date.now,
    ...others,
  })
  const eventsOf = (name: WorkEvent["event"]) => told.filter(({ event }) => event === name)
  return {
    loop,
    directory,
    eventsOf,
    /** Waits until so many events have been told. */
    awaitEvents: (name: WorkEvent["event"], count: number) =>
      vi.waitUntil(() => eventsOf(name).length >= count, { timeout: 15_000, interval: 5 }),
    go: (mark = "") => writeFileSync(join(directory, mark === "" ? "go" : `go.${mark}`), ""),
  }
}

/** Hands out so many tasks. */
const hands = (count: number): WorkLedger["claimNext"] => {
  let n = 0
  return async () => (n < count ? taskOf(++n) : undefined)
}

const PROVIDER = { kind: "provider", detail: "429", next_try: LATER }

test(promised("work.B2", "a loop that drains does not wait for the provider, and ends with its agents"), async () => {
  const { loop, awaitEvents, go } = openLoop({ args: ["-n", "3"], ledger: { claimNext: hands(6) }, end: PROVIDER })
  const over = loop.run()
  await awaitEvents("started", 3)
  loop.interrupt()
  go()
  await awaitEvents("ended", 3)
  expect(loop.state().state).toBe("draining")
  expect(await over).toBe(EXIT.stopped)
})

test(promised("work.B2", "a loop that is told to drain while it asks the model again goes on draining"), async () => {
  let nowMs = 0
  const { loop, eventsOf, go } = openLoop({
    ...{ args: ["-n", "3"], ledger: { claimNext: hands(3) }, end: { ...PROVIDER, next_try: "1970-01-01T00:00:01Z" } },
    nowMs: () => nowMs,
    probe: async () => {
      loop.interrupt()
      return undefined
    },
    tell: (event) => {
      // The time that the provider named has come.
      if (event.event === "state" && event.state === "waiting") nowMs = 2_000
      states.push(event)
    },
  })
  const states: WorkEvent[] = []
  go()
  expect(await loop.run()).toBe(EXIT.stopped)
  expect(states.flatMap((each) => (each.event === "state" ? each.state : []))).toEqual(["waiting", "draining"])
  expect(eventsOf("started")).toHaveLength(3)
})

test(promised("work.B3", "a pause while the provider is waited for holds, and the wait goes on after it"), async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] })
  try {
    let [wanted, nowMs, asked] = ["active", 0, 0]
    const { loop, awaitEvents, eventsOf, go } = openLoop({
      ...{ args: ["-n", "3"], end: { ...PROVIDER, next_try: "1970-01-01T00:00:01Z" }, nowMs: () => nowMs },
      ledger: { claimNext: hands(3), beat: async () => ({ wanted, runs: [] }) },
      probe: async () => void asked++,
    })
    go()
    const over = loop.run()
    await awaitEvents("ended", 3)
    for (const next of ["paused", "active"]) {
      wanted = next
      const told = eventsOf("state").length
      vi.advanceTimersByTime(5_000)
      await awaitEvents("state", told + 1)
      // It is over before the work is taken up again.
      nowMs = 2_000
    }
    expect(await over).toBe(EXIT.over)
    const states = eventsOf("state").flatMap((each) => (each.event === "state" ? each.state : []))
    expect(states).toEqual(["waiting", "paused", "waiting", "working"])
    expect(asked).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

/** Hands out so many tasks, and then fails as often as given. */
const handsThenFails = (count: number, failures: number): WorkLedger["claimNext"] => {
  const hand = hands(count)
  let [handed, failed] = [0, 0]
  return async () => {
    if (handed++ < count) return hand("", "", { attempts: 0, backoffMs: 0 })
    if (failed++ < failures) throw new Error("database is locked")
    return undefined
  }
}

test(promised("work.B1", "a ledger that fails once in the night is told and asked again"), async () => {
  const { loop, eventsOf, awaitEvents, go } = openLoop({
    args: ["-n", "2"],
    ledger: { claimNext: handsThenFails(1, 1) },
  })
  const over = loop.run()
  await awaitEvents("info", 1)
  go()
  expect(await over).toBe(EXIT.over)
  expect(eventsOf("ended")).toMatchObject([{ task: idOf(1), kind: "idle" }])
  expect(eventsOf("info")).toMatchObject([{ text: "the ledger: Error: database is locked" }])
})

test(promised("work.B3", "a ledger that stays away ends the work, and no agent goes on without it"), async () => {
  let nowMs = 0
  const claimNext = handsThenFails(2, Number.POSITIVE_INFINITY)
  const { loop, eventsOf, awaitEvents, go, directory } = openLoop({
    ...{ args: ["-n", "3"], ledger: { claimNext }, nowMs: () => nowMs },
  })
  const over = loop.run()
  await awaitEvents("info", 1)
  await vi.waitUntil(() => existsSync(join(directory, `began.${idOf(1)}.1`)), { timeout: 15_000, interval: 5 })
  nowMs = 6 * 60_000
  go(`${idOf(2)}.1`)
  await expect(over).rejects.toThrow("database is locked")
  expect(eventsOf("ended")).toMatchObject([
    { task: idOf(2), kind: "idle" },
    { task: idOf(1), kind: "stopped", detail: "the ledger does not answer" },
  ])
  expect(findMarked(RUN_MARK, `${idOf(1)}.1`)).toEqual([])
})

test(promised("work.B2", "a ledger that is missing from the start fails at once"), async () => {
  const beat = async () => {
    throw new Error("there is no ledger")
  }
  await expect(openLoop({ ledger: { beat } }).loop.run()).rejects.toThrow("there is no ledger")
})

test(
  promised("work.B3", "a task that is being taken when the work is stopped is given back without an agent"),
  async () => {
    const claimNext = async () => {
      loop.stop("it got SIGTERM")
      return taskOf(1)
    }
    const { loop, eventsOf } = openLoop({ ledger: { claimNext } })
    expect(await loop.run()).toBe(EXIT.stopped)
    expect(eventsOf("ended")).toMatchObject([{ task: idOf(1), kind: "stopped", detail: "it got SIGTERM" }])
    expect(eventsOf("started")).toEqual([])
  },
)
