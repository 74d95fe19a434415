import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  type ActiveEvent,
  type ActiveState,
  nextActiveState,
  type Outcome,
  outcomeOf,
  startingState,
} from "../../../.opencode/baton/pass-over/child/active-pass.ts"
import { passOverError } from "../../../.opencode/baton/pass-over/errors.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const READY = Promise.resolve(undefined)
const ERROR = passOverError("E011", { message: "It failed", cause: "" })
const FAILED: Outcome = { kind: "failed", error: ERROR }
const VALUE = { status: "completed", summary: "Done.", findings: [], recommendations: [], artifacts: [] } as const
const ACCEPTED: Outcome = { kind: "accepted", value: VALUE }
const STARTED: ActiveEvent = { type: "session_started", sessionID: "ses_1" }
const RETURNED: ActiveEvent = { type: "returned", outcome: ACCEPTED }
const ENDED: ActiveEvent = { type: "ended" }
const RENEWED: ActiveEvent = { type: "renewed", ready: READY }

const stateAfter = (...events: ActiveEvent[]): ActiveState => events.reduce(nextActiveState, startingState(READY))

describe("an active pass", () => {
  test("an active pass goes from its start through work and return to its end", () => {
    expect(stateAfter().kind).toBe("starting")
    expect(stateAfter(STARTED)).toMatchObject({
      kind: "working",
      childSessionID: "ses_1",
      refusals: 0,
      callsOfStep: [],
    })
    expect(stateAfter(STARTED, RETURNED)).toMatchObject({ kind: "returned", outcome: ACCEPTED })
    expect(stateAfter(STARTED, RETURNED, ENDED)).toMatchObject({
      kind: "over",
      outcome: ACCEPTED,
      childSessionID: "ses_1",
    })
    expect(stateAfter(STARTED, ENDED)).toMatchObject({ kind: "over", outcome: undefined })
  })

  test("an active pass counts the refusals of one attempt and the calls of one step", () => {
    const refused = { type: "return_refused" } as const
    const began = (callID: string) => ({ type: "call_began", callID }) as const
    const worked = [STARTED, refused, refused, began("a"), began("b")]
    expect(stateAfter(...worked)).toMatchObject({ refusals: 2, callsOfStep: ["a", "b"] })
    expect(stateAfter(...worked, { type: "step_began" })).toMatchObject({ refusals: 2, callsOfStep: [] })
    const renewed = stateAfter(...worked, RENEWED)
    expect(renewed).toMatchObject({ kind: "starting", childSessionID: "ses_1" })
    expect(nextActiveState(renewed, { type: "session_started", sessionID: "ses_2" })).toMatchObject({
      kind: "working",
      childSessionID: "ses_2",
      refusals: 0,
      callsOfStep: [],
    })
  })

  test(
    promised("pass-over.A2", "an active pass keeps its first return, also one under way when the child was stopped"),
    () => {
      const second: ActiveEvent = { type: "returned", outcome: FAILED }
      expect(outcomeOf(stateAfter(STARTED, RETURNED, second))).toBe(ACCEPTED)
      expect(outcomeOf(stateAfter(STARTED, RETURNED, ENDED, second))).toBe(ACCEPTED)
      expect(stateAfter(STARTED, ENDED, RETURNED)).toMatchObject({ kind: "over", outcome: ACCEPTED })
      expect(outcomeOf(stateAfter(STARTED, RETURNED, ENDED, { type: "lost", error: ERROR }))).toEqual(FAILED)
    },
  )

  test(
    promised("pass-over.A4", "an active pass keeps why it was cancelled first, and that its originator's time was out"),
    () => {
      const cancelled = (reason: "max_time" | "cancelled") => ({ type: "cancelled", reason }) as const
      expect(stateAfter(STARTED, cancelled("max_time"), cancelled("cancelled")).cancelReason).toBe("max_time")
      expect(stateAfter(STARTED, ENDED, cancelled("cancelled")).cancelReason).toBe("cancelled")
      expect(stateAfter({ type: "originator_left" }).originator).toBe("left")
      expect(stateAfter({ type: "originator_timed_out" }, { type: "originator_left" }).originator).toBe("timed_out")
    },
  )

  test("an active pass is never at work again once it has returned or is over, in any order of events", () => {
    const events = fc.constantFrom<ActiveEvent>(
      RENEWED,
      STARTED,
      RETURNED,
      ENDED,
      { type: "set_up_failed", error: ERROR },
      { type: "call_began", callID: "call" },
      { type: "step_began" },
      { type: "return_refused" },
      { type: "cancelled", reason: "max_time" },
      { type: "originator_left" },
      { type: "originator_timed_out" },
      { type: "lost", error: ERROR },
    )
    const rank = { starting: 0, working: 0, returned: 1, over: 2 }
    forAll(500, [fc.array(events, { maxLength: 20 })], (list) => {
      let state = startingState(READY)
      for (const event of list) {
        const next = nextActiveState(state, event)
        expect(rank[next.kind]).toBeGreaterThanOrEqual(rank[state.kind])
        if (outcomeOf(state)) expect(outcomeOf(next)).toBeDefined()
        if (state.originator !== "waiting") expect(next.originator).not.toBe("waiting")
        state = next
      }
    })
  })
})
