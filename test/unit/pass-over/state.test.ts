import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  isOpen,
  nextState,
  type PassEvent,
  type PassState,
  type PassStateName,
  SENT,
} from "../../../.opencode/baton/pass-over/store/record.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

/** No event can change the pass any more. */
const isSettled = ({ state }: PassState): boolean => ["applied", "rejected", "cancelled"].includes(state)

const FILES = ["a.ts", "b.ts", "c.ts"]

const started: PassEvent = { type: "started" }
const returned: PassEvent = { type: "returned", paths: FILES }
const timedOut: PassEvent = { type: "timed_out" }
const cancelled: PassEvent = { type: "cancelled" }
const collected: PassEvent = { type: "collected", paths: ["d.ts"] }
const applied = (paths?: string[], by: "policy" | "originator" = "originator"): PassEvent => ({
  type: "applied",
  paths,
  by,
})
const rejected = (paths?: string[]): PassEvent => ({ type: "rejected", paths })

/** @throws at the first event that is refused */
const run = (...events: PassEvent[]): PassState =>
  events.reduce<PassState>((state, event) => {
    const step = nextState(state, event)
    if (step.kind === "refused") throw new Error(step.error.message)
    return step.state
  }, SENT)

describe("a pass", () => {
  test.each<[PassStateName, PassEvent[]]>([
    ["waiting_for_return", [started]],
    ["waiting_for_return", [started, started]],
    ["returned", [started, returned]],
    ["returned", [returned]],
    ["applied", [started, returned, applied()]],
    ["applied", [started, returned, applied(undefined, "policy")]],
    ["rejected", [started, returned, rejected()]],
    ["returned", [started, returned, applied(["a.ts"])]],
    ["applied", [started, returned, applied(["a.ts"]), rejected()]],
    ["rejected", [started, returned, rejected(["a.ts"]), rejected(["b.ts", "c.ts"])]],
    ["applied", [started, { type: "returned", paths: [] }, applied()]],
    ["rejected", [started, { type: "returned", paths: [] }, rejected()]],
    ["timed_out", [started, timedOut]],
    ["timed_out", [started, timedOut, started]],
    ["returned", [started, timedOut, returned]],
    ["applied", [started, timedOut, returned, applied()]],
    ["cancelled", [cancelled]],
    ["cancelled", [started, timedOut, cancelled]],
  ])(promised("pass-over.E4", "a pass is %s after %j"), (state, events) => {
    expect(run(...events).state).toBe(state)
  })

  test.each<[string, PassEvent[]]>([
    ["is applied without a result", [started, applied()]],
    ["returns twice", [started, returned, returned]],
    ["is applied after it was rejected", [returned, rejected(), applied()]],
    ["is rejected after it was applied", [returned, applied(), rejected()]],
    ["returns after it was cancelled", [cancelled, returned]],
    ["is cancelled when the result is there", [returned, cancelled]],
    ["is applied late by itself", [started, timedOut, returned, applied(undefined, "policy")]],
    ["has a file applied that it did not change", [returned, applied(["z.ts"])]],
    ["is given files when it has some", [started, returned, collected]],
    ["is given files before its result", [started, collected]],
    ["has a file applied that was rejected", [returned, rejected(["a.ts"]), applied(["a.ts"])]],
  ])(promised("pass-over.E4", "a pass never %s"), (_what, events) => {
    const before = run(...events.slice(0, -1))
    const step = nextState(before, events.at(-1) ?? started)
    expect(step).toMatchObject({ kind: "refused", error: { code: "E024", recoverable: false } })
  })

  test.each<[held: object, PassEvent[]]>([
    [{ is_late: true, undecided: FILES }, [started, timedOut, returned]],
    [{ is_late: true, applied: ["a.ts"] }, [started, timedOut, returned, applied(["a.ts"])]],
    [{ state: "returned", undecided: ["d.ts"] }, [started, { type: "returned", paths: [] }, collected]],
  ])(promised("pass-over.E4", "a pass holds %j after %j"), (held, events) => {
    expect(run(...events)).toMatchObject(held)
  })
})

const anyPaths = fc.option(fc.subarray([...FILES, "unknown.ts"]), { nil: undefined })
const anyEvent: fc.Arbitrary<PassEvent> = fc.oneof(
  fc.constant(started),
  fc.subarray(FILES).map((paths): PassEvent => ({ type: "returned", paths })),
  fc.constant(timedOut),
  fc.constant(cancelled),
  fc
    .tuple(anyPaths, fc.constantFrom("policy" as const, "originator" as const))
    .map(([paths, by]) => applied(paths, by)),
  anyPaths.map((paths) => rejected(paths)),
)

/** The successors that the documentation allows; a state may also stay. */
const MAY_FOLLOW: Record<PassStateName, readonly PassStateName[]> = {
  sent: ["waiting_for_return", "returned", "timed_out", "cancelled"],
  waiting_for_return: ["returned", "timed_out", "cancelled"],
  timed_out: ["returned", "cancelled"],
  returned: ["applied", "rejected"],
  applied: [],
  rejected: [],
  cancelled: [],
}

describe("no sequence of events", () => {
  const steps = (
    events: readonly PassEvent[],
    look: (before: PassState, after: PassState, event: PassEvent) => void,
  ) => {
    let state: PassState = SENT
    for (const event of events) {
      const before = structuredClone(state)
      const step = nextState(state, event)
      expect(state, "the state that was given is not changed").toEqual(before)
      const after = step.kind === "moved" ? step.state : state
      look(state, after, event)
      state = after
    }
    return state
  }

  const sequences = fc.array(anyEvent, { maxLength: 20 })

  test(promised("pass-over.E4", "no sequence of events brings a pass into a state that may not follow"), () => {
    forAll(2000, [sequences], (events) => {
      steps(events, (before, after) => {
        if (after.state !== before.state) expect(MAY_FOLLOW[before.state]).toContain(after.state)
        if (isSettled(before)) expect(after).toEqual(before)
      })
    })
  })

  test(
    promised("pass-over.E4", "no sequence of events loses a result or a file of it, or decides on a file twice"),
    () => {
      forAll(2000, [sequences], (events) => {
        let files: readonly string[] | undefined
        steps(events, (before, after, event) => {
          if (isOpen(before) && event.type === "returned") files = event.paths
          if (files === undefined) return
          if (!("undecided" in after)) throw new Error(`the result is lost: ${after.state}`)
          expect([...after.undecided, ...after.applied, ...after.rejected].sort()).toEqual([...files].sort())
          expect(after.state === "returned" || after.undecided.length === 0).toBe(true)
          if ("undecided" in before) {
            expect(after.applied).toEqual(expect.arrayContaining([...before.applied]))
            expect(after.rejected).toEqual(expect.arrayContaining([...before.rejected]))
          }
        })
      })
    },
  )

  test(promised("pass-over.E4", "no sequence of events leaves a pass that cannot be ended"), () => {
    forAll(100, [sequences], (events) => {
      const last = steps(events, () => {})
      const end = isOpen(last) ? nextState(last, cancelled) : nextState(last, rejected())
      expect(isSettled(end.kind === "moved" ? end.state : last)).toBe(true)
    })
  })
})
