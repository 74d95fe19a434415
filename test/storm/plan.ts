import type { Fault, Need } from "../support/faults/fault.ts"
import { createRandom } from "../support/test-random.ts"

/** One action of the root agent. `code` passes over work that changes files, and applies it. */
export type Step = "write" | "compact" | "review" | "code"

/** One `opencode run`: the kind of the user's message, and the agent's actions. */
export type Turn = { readonly kind: "task" | "resume" | "correction" | "handoff"; readonly steps: readonly Step[] }

/** The moment before the request of this number in this turn is answered; request 0 is before OpenCode starts. */
export type Moment = { readonly turn: number; readonly request: number }

/** Without `lifts` the fault stays until the clean run; `delayMs` is counted from its moment. */
export type PlannedFault = { name: string; strikes: Moment; lifts?: Moment; delayMs: number }

/** The ends of OpenCode 1, and OpenCode 2. */
export type End = "oldest" | "newest" | "two"

/** Everything that determines a run; `isTraced`: file accesses are traced, if this machine can. */
export type StormPlan = {
  readonly seed: number
  readonly end: End
  readonly features: Readonly<Record<"liveState" | "learning" | "passOver", boolean>>
  readonly turns: readonly Turn[]
  readonly faults: readonly PlannedFault[]
  readonly isTraced: boolean
}

/** The facts about a fault that the generator needs. */
type FaultFacts = Pick<Fault, "name" | "slots" | "when" | "needs" | "isOf1">

/** Not there yet on OpenCode 2. */
const NEEDS_OF_1: readonly Need[] = ["pass", "code", "handoff", "liveState"]
const isOn2 = ({ isOf1, needs = [] }: FaultFacts): boolean => !isOf1 && !needs.some((need) => NEEDS_OF_1.includes(need))

const MOST_FAULTS = 4
const LONGEST_DELAY_MS = 700
const SHARE_LIFTED = 0.3
const SHARE_TRACED = 0.25
const SHARE_OF_A_FEATURE = 0.75
const SHARE_OF_A_SECOND_TURN = 0.3

const slotsOf = ({ name, slots }: FaultFacts): readonly string[] => slots ?? name.split(" ").slice(0, 1)

/** Draws the run of a seed, with the OpenCode that it is on. The same seed and faults give the same plan. */
export const drawPlan = (seed: number, faultsOf1: readonly FaultFacts[]): StormPlan => {
  const random = createRandom(seed)
  const below = (end: number): number => Math.floor(random() * end)
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T

  const end = pick<End>(["oldest", "newest", "two"])
  const catalogue = end === "two" ? faultsOf1.filter(isOn2) : faultsOf1
  // The first fault follows the catalogue from seed to seed, so that each is used; the others are drawn at random.
  const count = 1 + below(MOST_FAULTS)
  const drawn = catalogue.slice(seed % catalogue.length).slice(0, 1)
  while (drawn.length < count) {
    const taken = new Set(drawn.flatMap(slotsOf))
    const free = catalogue.filter((fault) => !slotsOf(fault).some((slot) => taken.has(slot)))
    if (free.length === 0) break
    drawn.push(pick(free))
  }
  const needs = new Set<Need>(drawn.flatMap((fault) => fault.needs ?? []))
  const isOn = (...by: Need[]): boolean => by.some((need) => needs.has(need)) || random() < SHARE_OF_A_FEATURE
  const features = { liveState: isOn("liveState"), learning: isOn("correction"), passOver: isOn("pass", "code") }
  if (end === "two") Object.assign(features, { liveState: false, passOver: false })

  // Every first turn compacts once, so that each run owes a record.
  const others: readonly Step[] = features.passOver ? ["write", "review", "code"] : ["write"]
  const steps: Step[] = needs.has("code") ? ["code"] : needs.has("pass") ? ["review"] : []
  if (steps.length === 0 || random() < 0.3) steps.push(pick(others))
  steps.splice(below(steps.length + 1), 0, "compact")
  const turns: Turn[] = [{ kind: "task", steps }]
  const turnOf = (kind: Turn["kind"]): Turn => ({
    kind,
    steps: kind === "handoff" ? [] : [pick(["write", "compact"] as const)],
  })
  if (needs.has("correction")) turns.push(turnOf("correction"))
  if (needs.has("handoff")) turns.push(turnOf("handoff"))
  if (turns.length === 1 && (needs.has("resume") || random() < SHARE_OF_A_SECOND_TURN))
    turns.push(turnOf(pick<Turn["kind"]>(["resume", "correction", ...(end === "two" ? [] : ["handoff" as const])])))

  const strikeOf = (when: Fault["when"]): Moment => {
    if (when === "start") return { turn: 0, request: 0 }
    if (when === "resume") return { turn: 1, request: 0 }
    const turn = below(turns.length)
    const requests = (turns[turn]?.steps.length ?? 0) + 1
    const first = when === "running" ? 1 : 0
    return { turn, request: first + below(requests + 1 - first) }
  }
  const faults = drawn.map(({ name, when = "start" }): PlannedFault => {
    const strikes = strikeOf(when)
    const delayMs = Math.round(random() * LONGEST_DELAY_MS)
    if (when === "start" || random() >= SHARE_LIFTED) return { name, strikes, delayMs }
    return { name, strikes, lifts: { ...strikes, request: strikes.request + 1 + below(2) }, delayMs }
  })
  // OpenCode 2's plugins run in a process below, whose look-ups were never told apart from its own.
  const isTraced = random() < SHARE_TRACED && end !== "two"
  return { seed, end, features, turns, faults, isTraced }
}

export const describePlan = ({ end, features, turns, faults, isTraced }: StormPlan): string => {
  const work = turns.map(({ kind, steps }) => `${kind}${steps.length > 0 ? `(${steps.join(" ")})` : ""}`).join(" + ")
  const off = Object.entries(features).flatMap(([name, isOn]) => (isOn ? [] : [`no ${name}`]))
  const shown = ({ turn, request }: Moment): string => `${turn + 1}.${request}`
  const broken = faults.map(
    ({ name, strikes, lifts }) => `${name} @${shown(strikes)}${lifts ? `–${shown(lifts)}` : ""}`,
  )
  return [`${end}: ${[work, ...off, ...(isTraced ? ["traced"] : [])].join(", ")}`, ...broken].join(" | ")
}
