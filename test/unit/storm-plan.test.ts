import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode-binary.ts"
import { CATALOGUE, FAULTS_OF_ROWS } from "../support/storm/catalogue.ts"
import { drawPlan, type FaultFacts } from "../support/storm/plan.ts"

const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)
const plans = SEEDS.map((seed) => drawPlan(seed, CATALOGUE))
const names = CATALOGUE.map(({ name }) => name)

/** The tables in which the rows of a page stand: where they begin, and how a row's first cell is found. */
const TABLES: Readonly<Record<string, { readonly from: string; readonly row: RegExp }>> = {
  "docs/faults.md": { from: "| What is broken |", row: /^\| (.+?) \| / },
  "docs/live-state-conformance.md": { from: "| Fault |", row: /^\| (.+?) \| / },
  "docs/pass-over-reference.md": { from: "| Code |", row: /^\| (.+?) \| / },
  "docs/handoff.md": { from: "| Left out |", row: /^\| (.+?) \| / },
  "docs/outbox.md": { from: "## What is parked", row: /^- (.+)$/ },
}

const rowsOf = (page: string): string[] => {
  const { from, row } = TABLES[page] ?? { from: "no table", row: /^$/ }
  const lines = readFileSync(join(REPOSITORY, page), "utf8").split("\n")
  const first = lines.findIndex((line) => line.startsWith(from)) + 1
  if (first === 0) throw new Error(`${page} has no line that begins with '${from}'`)
  const isRow = (line: string) => row.test(line) || /^\|[- :|]*\|$/.test(line) || (line === "" && from.startsWith("#"))
  const end = lines.findIndex((line, index) => index >= first && !isRow(line))
  return lines.slice(first, end).flatMap((line) => {
    const cell = row.exec(line)?.[1]
    return cell === undefined || /^-+:?$/.test(cell) ? [] : [cell]
  })
}

/** Every list of faults that a module of the tests' support exports. */
const exportedFaults = async (): Promise<string[]> => {
  const folder = join(REPOSITORY, "test", "support")
  const files = readdirSync(folder).filter((name) => /^fault-(?:.+-)?table\.ts$/.test(name))
  const modules = await Promise.all(files.map((name) => import(join(folder, name))))
  const lists: unknown[] = modules.flatMap((module: object) => Object.values(module))
  return lists
    .flat()
    .flatMap((each) => (typeof each === "object" && each !== null && "name" in each ? [each] : []))
    .map((each) => ("folder" in each ? `stored ${String(each.folder)} ${String(each.name)}` : String(each.name)))
}

describe("the catalogue", () => {
  test.each(Object.keys(FAULTS_OF_ROWS))(promised("storm.B1", "holds every row of the tables of %s"), (page) => {
    const rows = rowsOf(page)
    expect(rows.length).toBeGreaterThan(2)
    expect(Object.keys(FAULTS_OF_ROWS[page] ?? {}).toSorted()).toEqual(rows.toSorted())
    const unknown = Object.values(FAULTS_OF_ROWS[page] ?? {})
      .flat()
      .filter((name) => !names.includes(name))
    expect(unknown).toEqual([])
  })

  test(promised("storm.B1", "holds every fault that the tests' own tables have"), async () => {
    const exported = await exportedFaults()
    expect(exported.length).toBeGreaterThan(40)
    expect(exported.filter((name) => !names.includes(name))).toEqual([])
    expect(new Set(names).size).toBe(names.length)
  })
})

describe("a plan", () => {
  test(promised("storm.B1", "is decided by its seed"), () => {
    expect(SEEDS.map((seed) => drawPlan(seed, CATALOGUE))).toEqual(plans)
    expect(new Set(plans.map((plan) => JSON.stringify({ ...plan, seed: 0 }))).size).toBe(plans.length)
  })

  test(promised("storm.B1", "of 200 seeds draws each fault on some run, one to four at once, on both ends"), () => {
    const drawn = new Set(plans.flatMap(({ faults }) => faults.map(({ name }) => name)))
    expect(names.filter((name) => !drawn.has(name))).toEqual([])
    expect(new Set(plans.map(({ faults }) => faults.length))).toEqual(new Set([1, 2, 3, 4]))
    for (const end of ["oldest", "newest"] as const)
      expect(plans.filter((plan) => plan.end === end).length).toBeGreaterThan(80)
  })

  test(promised("storm.B1", "brings faults together in pairs, two of one slot never"), () => {
    const slotsOf = new Map(CATALOGUE.map(({ name, slots }) => [name, slots]))
    const pairs = new Set<string>()
    for (const { faults } of plans) {
      const slots = faults.flatMap(({ name }) => slotsOf.get(name) ?? [])
      expect(new Set(slots).size).toBe(slots.length)
      for (const { name: one } of faults)
        for (const { name: other } of faults) if (one < other) pairs.add(`${one}+${other}`)
    }
    expect(pairs.size).toBeGreaterThan(300)
  })

  test(promised("storm.B1", "gives each fault what it needs, strikes within the work, and always compacts"), () => {
    for (const plan of plans) {
      const facts = CATALOGUE.filter(({ name }) => plan.faults.some((fault) => fault.name === name))
      const steps = plan.turns.flatMap((turn) => turn.steps)
      expect(plan.turns[0]?.steps).toContain("compact")
      const isMet = (need: NonNullable<FaultFacts["needs"]>[number]): boolean => {
        switch (need) {
          case "pass":
            return plan.features.passOver && (steps.includes("review") || steps.includes("code"))
          case "code":
            return plan.features.passOver && steps.includes("code")
          case "resume":
            return plan.turns.length > 1
          case "liveState":
            return plan.features.liveState
          case "handoff":
          case "correction":
            return plan.turns.some(({ kind }) => kind === need)
        }
      }
      for (const { name, needs = [] } of facts)
        expect(
          needs.filter((need) => !isMet(need)),
          `${plan.seed} ${name}`,
        ).toEqual([])
      for (const { strikes } of plan.faults) expect(strikes.turn).toBeLessThan(plan.turns.length)
    }
  })
})
