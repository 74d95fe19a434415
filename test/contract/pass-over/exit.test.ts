import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses, speakOn, writing } from "../../support/opencode/feature-passes.ts"

type Options = Parameters<typeof openFeaturePasses>[0]

/** A pass whose subagent has written `half.txt` and goes on; `ended` lets it end after it was stopped. */
const openHalf = async (options: Options = {}, args: Record<string, unknown> = {}) => {
  const ended = createDeferred<void>()
  const passes = openFeaturePasses({
    coder: async (turn) => {
      await turn.write("half.txt", "half\n")
      await speakOn(turn)
      await ended.promise
    },
    ...options,
  })
  const aborting = new AbortController()
  const passing = passes.pass(args, fakeToolContext(passes.opencode.rootID, aborting.signal))
  const id = await passes.reaches("waiting_for_return")
  await expect.poll(() => existsSync(passes.copy("half.txt"))).toBe(true)
  return { passes, id, passing, abort: () => aborting.abort(), endTurn: () => ended.resolve() }
}

type Passes = ReturnType<typeof openFeaturePasses>

const idle = ({ opencode }: Passes, feature: Passes["feature"]) =>
  feature.receive({ type: "session.idle", properties: { sessionID: opencode.rootID } })

const toldAtNextStart = async (passes: Passes, id: string): Promise<void> => {
  expect(passes.told()).not.toContain(`[result of ${id}]`)
  await idle(passes, passes.start())
  await expect.poll(() => passes.told()).toContain(`[result of ${id}]`)
}

const KEPT = { state: "returned", is_late: true, undecided: ["half.txt"] }

// 1.18.33 disposes plugins before it aborts their tools, 1.2.15 after that.
test.each([["before"], ["after"]])(
  promised(["pass-over.A4", "pass-over.B3"], "a pass that OpenCode's exit ends is kept, told of %s the abort"),
  async (order) => {
    const { passes, id, passing, abort, endTurn } = await openHalf()
    endTurn()
    if (order === "after") abort()
    const stopped = passes.feature.stop()
    abort()
    await Promise.all([stopped, passing])
    expect(passes.recordOf(id)).toMatchObject({ state: KEPT, announced_at: null })
    expect(existsSync(join(passes.root, "half.txt"))).toBe(false)
    await toldAtNextStart(passes, id)
  },
)

test(promised("pass-over.D2", "a pass that the user aborts is dropped"), async () => {
  const { passes, id, passing, abort, endTurn } = await openHalf()
  endTurn()
  abort()
  expect(await passing).toContain(`${id} was cancelled`)
  await passes.feature.stop()
  expect(passes.recordOf(id).state).toEqual({ state: "cancelled" })
})

test(promised(["pass-over.A4", "pass-over.B3"], "work that reached its longest time at the exit is kept"), async () => {
  const timers: (() => void)[] = []
  const startTimer = (_ms: number, act: () => void) => {
    timers.push(act)
    return () => {}
  }
  const { passes, id, passing, abort, endTurn } = await openHalf({ startTimer })
  for (const act of timers) act()
  const stopped = passes.feature.stop()
  abort()
  endTurn()
  await Promise.all([stopped, passing])
  expect(passes.recordOf(id)).toMatchObject({ state: KEPT, output: { status: "timeout" } })
})

test.each([[{ async: true }], [{}]])(
  promised("pass-over.A4", "a result that is stored after the next instance has begun is told by that, with %j"),
  async (args) => {
    const { passes, id, passing, abort, endTurn } = await openHalf({}, args)
    const stopped = passes.feature.stop()
    abort()
    const next = passes.start()
    await idle(passes, next)
    endTurn()
    await Promise.all([stopped, passing])
    expect(passes.recordOf(id).state).toMatchObject({ state: "returned", undecided: ["half.txt"] })
    await idle(passes, next)
    await expect.poll(() => passes.told()).toContain(`[result of ${id}]`)
  },
)

// 1.2.15 leaves the question open.
test.each([
  ["rejects", true],
  ["leaves open", false],
])(
  promised("pass-over.A4", "a result is told by the next start when the exit %s its user's question"),
  async (_how, rejects) => {
    const passes = openFeaturePasses({
      defaults: { auto_return: false },
      coder: writing({ "half.txt": "half\n" }, DONE),
    })
    const aborting = new AbortController()
    const asked = createDeferred<void>()
    const ask = (): Promise<void> => {
      asked.resolve()
      return new Promise((_resolve, reject) =>
        aborting.signal.addEventListener("abort", () => rejects && reject(new Error("rejected")), { once: true }),
      )
    }
    const passing = passes.pass({}, { ...fakeToolContext(passes.opencode.rootID, aborting.signal), ask })
    await asked.promise
    aborting.abort()
    await Promise.all([passes.feature.stop(), passing])
    expect(passes.recordOf(passes.id())).toMatchObject({ state: KEPT, announced_at: null })
    await toldAtNextStart(passes, passes.id())
  },
)

test(promised("pass-over.A4", "a result that is being told at OpenCode's exit is noted as told"), async () => {
  const [reached, told] = [createDeferred<void>(), createDeferred<undefined>()]
  const passes = openFeaturePasses({
    coder: writing({}),
    faults: (call) => {
      if (call !== "promptAsync") return undefined
      reached.resolve()
      return told.promise
    },
  })
  await passes.pass({ async: true })
  await reached.promise
  const stopped = passes.feature.stop()
  told.resolve(undefined)
  await stopped
  expect(passes.recordOf(passes.id()).announced_at).not.toBeNull()
})

test.each([{ async: true }, {}])(
  promised(["pass-over.A4", "pass-over.B3"], "a pass that is being set up at the exit begins no work, with %j"),
  async (args) => {
    const [reached, over] = [createDeferred<void>(), createDeferred<undefined>()]
    let isHeld = true
    const passes = openFeaturePasses({
      coder: writing({ "made.txt": "made\n" }),
      faults: (call) => {
        if (call !== "agents" || !isHeld) return undefined
        isHeld = false
        reached.resolve()
        return over.promise
      },
    })
    const aborting = new AbortController()
    const passing = passes.pass(args, fakeToolContext(passes.opencode.rootID, aborting.signal))
    await reached.promise
    const stopped = passes.feature.stop()
    over.resolve(undefined)
    await Promise.all([stopped, passing])
    await expect.poll(() => passes.recordOf(passes.id()).state).toMatchObject({ state: "returned", undecided: [] })
    expect(passes.recordOf(passes.id()).child_session_id).toBeNull()
    expect(existsSync(join(passes.root, "made.txt"))).toBe(false)
    await toldAtNextStart(passes, passes.id())
  },
)

test(
  promised(["pass-over.A4", "pass-over.D2"], "a pass within a pass is cancelled by the exit, the outer one is kept"),
  async () => {
    const inner = createDeferred<void>()
    const passes = openFeaturePasses({
      coder: async (turn) => {
        await turn.write("half.txt", "half\n")
        await passes.passOn(turn)
      },
      second: async (turn) => {
        inner.resolve()
        await speakOn(turn)
      },
    })
    const aborting = new AbortController()
    const passing = passes.pass({}, fakeToolContext(passes.opencode.rootID, aborting.signal))
    await inner.promise
    const stopped = passes.feature.stop()
    aborting.abort()
    await Promise.all([stopped, passing])
    const [outer, within] = passes.ids().map((id) => passes.recordOf(id).state)
    expect([outer, within]).toEqual([expect.objectContaining(KEPT), { state: "cancelled" }])
  },
)
