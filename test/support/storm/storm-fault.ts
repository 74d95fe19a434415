import type { FaultyRunOptions } from "../fault-sequence.ts"
import type { TaskProject } from "../task-project.ts"
import type { FaultFacts } from "./plan.ts"

/** Where faults are arranged. */
export type Scene = {
  readonly task: TaskProject
  /** What OpenCode is started with. */
  readonly environment: Readonly<Record<string, string>>
  /** Ends the OpenCode that runs now, with SIGKILL. */
  killOpenCode(): void
  /** Something wrong that the fault itself saw. */
  complain(what: string): void
  /** Waited for before the clean run. */
  follow(work: Promise<unknown>): void
  /** Called before the clean run. */
  onEnd(stop: () => void): void
}

/** How a subagent answers instead of doing its work. */
export type ChildBehaviour = "crash" | "crash late" | "prose" | "wrong return" | "hang" | "deeper" | "cycle"

/** How the root agent goes wrong with a pass. */
export type RootBehaviour = "unknown subagent" | "one more pass" | "conflict" | "unknown pass" | "applied twice"

export type StormFault = FaultFacts & {
  /** Makes files that belong to the project from then on. */
  prepare?(scene: Scene): void | Promise<void>
  arrange?(scene: Scene, delayMs: number): void | Promise<void>
  lift?(scene: Scene): void | Promise<void>
  readonly options?: FaultyRunOptions
  readonly child?: ChildBehaviour
  readonly root?: RootBehaviour
  /** Instead of the storm's own policy for passes. */
  readonly policy?: unknown
  /** What the handoff asks for in addition. */
  readonly handoffFiles?: readonly string[]
  /** What the user says instead of the storm's own correction; it is not to be learned when `isSecret`. */
  readonly correction?: { readonly text: string; readonly isSecret: boolean }
  /** What it keeps from working: both at once may cost the record that was being written. */
  readonly refuses?: "disk" | "ledger"
  /** The bundle's state is on a disk that goes with the run. */
  readonly losesState?: boolean
  readonly kills?: boolean
  /** Records in the outbox that can never be delivered. */
  readonly parked?: number
}

/** A text that no file of the project holds: whoever has it has read what it must not. */
export const SECRET_TEXT = "BAIT-4f1c9a7d"

/** What the user says when nothing else is planned; it is learned once. */
export const CORRECTION = "No, use tabs instead of spaces in the formatter."
