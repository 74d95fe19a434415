import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { Need } from "../../support/faults/fault.ts"
import { CATALOGUE } from "../../support/faults/storm/catalogue.ts"
import { drawPlan, slotsOf } from "../../support/faults/storm/plan.ts"

const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)
const plans = SEEDS.map((seed) => drawPlan(seed, CATALOGUE))
const names = CATALOGUE.map(({ name }) => name)

describe("a plan", () => {
  test(promised("storm.B1", "is decided by its seed"), () => {
    expect(SEEDS.map((seed) => drawPlan(seed, CATALOGUE))).toEqual(plans)
    expect(new Set(plans.map((plan) => JSON.stringify({ ...plan, seed: 0 }))).size).toBe(plans.length)
  })

  test(promised("storm.B1", "of 200 seeds draws each fault on some run, one to four at once, on both ends"), () => {
    expect(new Set(names).size).toBe(names.length)
    const drawn = new Set(plans.flatMap(({ faults }) => faults.map(({ name }) => name)))
    expect(names.filter((name) => !drawn.has(name))).toEqual([])
    expect(new Set(plans.map(({ faults }) => faults.length))).toEqual(new Set([1, 2, 3, 4]))
    expect(new Set(plans.map(({ end }) => end))).toEqual(new Set(["oldest", "newest"]))
  })

  test(promised("storm.B1", "never has two faults of one slot, gives each what it needs, and always compacts"), () => {
    for (const { seed, turns, faults, features } of plans) {
      const drawn = CATALOGUE.filter(({ name }) => faults.some((fault) => fault.name === name))
      const slots = drawn.flatMap(slotsOf)
      expect(new Set(slots).size, `${seed}`).toBe(slots.length)
      expect(turns[0]?.steps).toContain("compact")
      for (const { strikes } of faults) expect(strikes.turn).toBeLessThan(turns.length)
      const steps = turns.flatMap((turn) => turn.steps)
      const isMet: Record<Need, boolean> = {
        pass: features.passOver && (steps.includes("review") || steps.includes("code")),
        code: features.passOver && steps.includes("code"),
        resume: turns.length > 1,
        liveState: features.liveState,
        handoff: turns.some(({ kind }) => kind === "handoff"),
        correction: turns.some(({ kind }) => kind === "correction"),
      }
      for (const { name, needs = [] } of drawn)
        expect(
          needs.filter((need) => !isMet[need]),
          `${seed} ${name}`,
        ).toEqual([])
    }
  })
})
