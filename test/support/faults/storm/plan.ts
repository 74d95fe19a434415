import { createRandom } from "../../test-random.ts"
import type { Fault, Need } from "../fault.ts"

/** One action of the root agent. `code` passes over work that changes files, and applies it. */
export type Step = "write" | "compact" | "review" | "code"

/** One `opencode run`: the kind of the user's message, and the agent's actions. */
export type Turn = { readonly kind: "task" | "resume" | "correction" | "handoff"; readonly steps: readonly Step[] }

/** The moment before the request of this number in this turn is answered; request 0 is before OpenCode starts. */
export type Moment = { readonly turn: number; readonly request: number }

export type PlannedFault = {
  readonly name: string
  readonly strikes: Moment
  /** Absent: the fault stays until the clean run. */
  readonly lifts?: Moment
  /** Delay after its moment, in milliseconds. */
  readonly delayMs: number
}

/** Everything that determines a run. */
export type StormPlan = {
  readonly seed: number
  readonly end: "oldest" | "newest"
  readonly features: { readonly liveState: boolean; readonly learning: boolean; readonly passOver: boolean }
  readonly turns: readonly Turn[]
  readonly faults: readonly PlannedFault[]
  /** Trace file accesses, if this machine can. */
  readonly isTraced: boolean
}

/** The facts about a fault that the generator needs. */
export type FaultFacts = Pick<Fault, "name" | "slots" | "when" | "needs">

const MOST_FAULTS = 4
const LONGEST_DELAY_MS = 700
const SHARE_LIFTED = 0.3
const SHARE_TRACED = 0.25
const SHARE_OF_A_FEATURE = 0.75
const SHARE_OF_A_SECOND_TURN = 0.3

type Random = () => number

const below = (random: Random, end: number): number => Math.floor(random() * end)

const pick = <T>(random: Random, from: readonly T[]): T => {
  const found = from[below(random, from.length)]
  if (found === undefined) throw new Error("nothing to pick from")
  return found
}

export const slotsOf = ({ name, slots }: FaultFacts): readonly string[] => slots ?? name.split(" ").slice(0, 1)

/** The first fault follows the catalogue from seed to seed, so that each is used; the others are drawn at random. */
const drawFaults = (seed: number, random: Random, catalogue: readonly FaultFacts[]): FaultFacts[] => {
  const count = 1 + below(random, MOST_FAULTS)
  const first = catalogue[seed % catalogue.length]
  const drawn = first ? [first] : []
  while (drawn.length < count) {
    const taken = new Set(drawn.flatMap(slotsOf))
    const free = catalogue.filter((fault) => !slotsOf(fault).some((slot) => taken.has(slot)))
    if (free.length === 0) break
    drawn.push(pick(random, free))
  }
  return drawn
}

/** Every first turn compacts once, so that each run owes a record. */
const drawTurns = (random: Random, needs: ReadonlySet<Need>, passOver: boolean): Turn[] => {
  const others: Step[] = passOver ? ["write", "review", "code"] : ["write"]
  const wanted: Step[] = [...(needs.has("code") ? (["code"] as const) : needs.has("pass") ? (["review"] as const) : [])]
  const steps: Step[] = [...wanted, ...(wanted.length === 0 || random() < 0.3 ? [pick(random, others)] : [])]
  steps.splice(below(random, steps.length + 1), 0, "compact")
  const turns: Turn[] = [{ kind: "task", steps }]
  const draw = (): Step[] => [pick<Step>(random, ["write", "compact"])]
  if (needs.has("correction")) turns.push({ kind: "correction", steps: draw() })
  if (needs.has("handoff")) turns.push({ kind: "handoff", steps: [] })
  if (turns.length === 1 && (needs.has("resume") || random() < SHARE_OF_A_SECOND_TURN)) {
    const kind = pick(random, ["resume", "correction", "handoff"] as const)
    turns.push({ kind, steps: kind === "handoff" ? [] : draw() })
  }
  return turns
}

const drawStrike = (random: Random, when: Fault["when"], turns: readonly Turn[]): Moment => {
  if (when === "start") return { turn: 0, request: 0 }
  if (when === "resume") return { turn: 1, request: 0 }
  const turn = below(random, turns.length)
  const requests = (turns[turn]?.steps.length ?? 0) + 1
  const first = when === "running" ? 1 : 0
  return { turn, request: first + below(random, requests + 1 - first) }
}

const drawLift = (random: Random, { turn, request }: Moment): { lifts?: Moment } =>
  random() < SHARE_LIFTED ? { lifts: { turn, request: request + 1 + below(random, 2) } } : {}

/** Draws the run of a seed, with the end of OpenCode's range. The same seed and catalogue give the same plan. */
export const drawPlan = (seed: number, catalogue: readonly FaultFacts[]): StormPlan => {
  const random = createRandom(seed)
  const drawn = drawFaults(seed, random, catalogue)
  const needs = new Set(drawn.flatMap((fault) => fault.needs ?? []))
  const isOn = (isNeeded: boolean): boolean => isNeeded || random() < SHARE_OF_A_FEATURE
  const features = {
    liveState: isOn(needs.has("liveState")),
    learning: isOn(needs.has("correction")),
    passOver: isOn(needs.has("pass") || needs.has("code")),
  }
  const turns = drawTurns(random, needs, features.passOver)
  const faults = drawn.map(({ name, when = "start" }): PlannedFault => {
    const strikes = drawStrike(random, when, turns)
    const delayMs = Math.round(random() * LONGEST_DELAY_MS)
    return { name, strikes, ...(when === "start" ? {} : drawLift(random, strikes)), delayMs }
  })
  return { seed, end: random() < 0.5 ? "oldest" : "newest", features, turns, faults, isTraced: random() < SHARE_TRACED }
}

const describeMoment = ({ turn, request }: Moment): string => `${turn + 1}.${request}`

export const describePlan = ({ end, features, turns, faults, isTraced }: StormPlan): string => {
  const work = turns.map(({ kind, steps }) => `${kind}${steps.length > 0 ? `(${steps.join(" ")})` : ""}`).join(" + ")
  const off = Object.entries(features).flatMap(([name, isOn]) => (isOn ? [] : [`no ${name}`]))
  const broken = faults.map(
    ({ name, strikes, lifts }) =>
      `${name} @${describeMoment(strikes)}${lifts === undefined ? "" : `–${describeMoment(lifts)}`}`,
  )
  return [`${end}: ${[work, ...off, ...(isTraced ? ["traced"] : [])].join(", ")}`, ...broken].join(" | ")
}
