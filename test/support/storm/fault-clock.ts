import type { Moment, PlannedFault, StormPlan } from "./plan.ts"
import type { Scene, StormFault } from "./storm-fault.ts"

const isAt = (moment: Moment, turn: number, request: number): boolean =>
  moment.turn === turn && moment.request === request

/** Lets the faults of a plan strike and lifts them, each when its moment comes. */
export const createFaultClock = (plan: StormPlan, faults: readonly StormFault[], scene: Scene) => {
  const standing = new Set<string>()
  const struck = new Set<string>()
  const known = new Map(faults.map((fault) => [fault.name, fault]))

  const attempt = async (what: string, work: () => void | Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      scene.complain(`storm: ${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }
  const strike = async ({ name, delayMs }: PlannedFault): Promise<void> => {
    struck.add(name)
    standing.add(name)
    await attempt(`${name} could not be arranged`, () => known.get(name)?.arrange?.(scene, delayMs))
  }
  const lift = async (name: string): Promise<void> => {
    if (standing.delete(name)) await attempt(`${name} could not be lifted`, () => known.get(name)?.lift?.(scene))
  }

  return {
    prepare: async (): Promise<void> => {
      for (const { name, prepare } of faults) await attempt(`${name} could not be prepared`, () => prepare?.(scene))
    },
    reach: async (turn: number, request: number): Promise<void> => {
      for (const fault of plan.faults) {
        if (fault.lifts && isAt(fault.lifts, turn, request)) await lift(fault.name)
        if (isAt(fault.strikes, turn, request)) await strike(fault)
      }
    },
    liftAll: async (): Promise<void> => {
      for (const { name } of plan.faults.toReversed()) await lift(name)
    },
    /** Names of those that struck; a run that ended early does not reach every moment. */
    struck: (): readonly string[] => [...struck],
  }
}
