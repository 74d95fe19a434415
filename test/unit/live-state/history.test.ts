import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { eventsBetween, type HistoryEvent, type Sample } from "../../../.opencode/baton/live-state/observe/history.ts"
import { nextTask } from "../../../.opencode/baton/live-state/observe/observer.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const sample = (at: number, change: Partial<Sample> = {}): Sample => ({
  at,
  doing: { kind: "busy" },
  identity: "1 one",
  turns: 0,
  compactions: 0,
  handoffs: 0,
  ...change,
})
const idle = { doing: { kind: "idle" } } as const

describe("the history of an agent", () => {
  const asks = sample(200, { doing: { kind: "permission", text: "bash" }, since: 190, compactions: 1 })
  const over = sample(300, { ...idle, since: 290, turns: 3, compactions: 1, handoffs: 1 })
  const another = sample(200, { identity: "2 two", turns: 7 })
  test.each<[string, Sample | undefined, Sample, string[]]>([
    ["the present status at first", undefined, sample(100), ["100 busy"]],
    ["its start, if it is known", undefined, sample(100, { ...idle, since: 40 }), ["40 idle"]],
    ["nothing for a look that shows nothing new", sample(100), sample(200), []],
    ["a wait and a compaction", sample(100), asks, ["190 permission bash", "200 compaction"]],
    ["turns and a handoff", asks, over, ["290 idle", "300 handoff", "300 turn 3"]],
    ["another session, with its own turns", sample(100), another, ["200 session", "200 busy"]],
    ["its end", sample(100), sample(200, { doing: { kind: "gone" } }), ["200 gone"]],
  ])(promised("live-state.C2", "the history of an agent has %s"), (_what, before, after, events) => {
    expect(eventsBetween(before, after).map((event) => Object.values(event).join(" "))).toEqual(events)
  })

  test(promised("live-state.C2", "the history of an agent never goes back, whatever the clocks say"), () => {
    forAll(100, [fc.array(fc.tuple(fc.nat(50), fc.nat(50), fc.constantFrom("busy", "idle"), fc.nat(3)))], (looks) => {
      let before: Sample | undefined
      const all: HistoryEvent[] = []
      for (const [at, since, kind, turns] of looks) {
        const next = sample(at, { doing: { kind: kind as "busy" | "idle" }, since, turns })
        all.push(...eventsBetween(before, next, all.at(-1)?.at))
        before = next
      }
      const times = all.map(({ at }) => at)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
    })
  })
})

test(promised("live-state.C3", "tasks are read once, and again when the ledger has changed, the oldest first"), () => {
  const known = new Map([
    ["a", { news: undefined, version: "1", readAt: 2 }],
    ["b", { news: undefined, version: "1", readAt: 1 }],
  ])
  expect(nextTask(["a", "b", "c"], known, "1")).toBe("c")
  expect(nextTask(["a", "b"], known, "1")).toBeUndefined()
  expect(nextTask(["a", "b"], known, "2")).toBe("b")
})
