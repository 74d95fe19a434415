import type { TaskProject } from "../opencode/task-project.ts"
import type { ProjectOptions } from "../opencode/test-project.ts"

/** What a fault can only meet where it is: a pass, held files, a second run, a handoff, a correction, live state. */
export type Need = "pass" | "code" | "resume" | "handoff" | "correction" | "liveState"

/** How a subagent goes on. */
export type ChildBehaviour = "work" | "crash" | "crash late" | "prose" | "wrong return" | "hang" | "deeper" | "cycle"

/** How the root agent goes wrong with a pass. */
export type RootBehaviour = "unknown subagent" | "one more pass" | "conflict" | "unknown pass" | "applied twice"

/** How OpenCode is started, and where. */
export type FaultyRunOptions = {
  readonly project?: Partial<ProjectOptions>
  readonly environment?: (task: TaskProject) => Record<string, string>
  /** A program that runs OpenCode, such as `setpriv …`. */
  readonly launcher?: readonly string[]
}

/** Where the storm arranges faults. */
export type Scene = TaskProject & {
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

/** One thing that is broken. */
export type Fault<Place extends TaskProject = Scene> = {
  /** As the documentation names it. */
  readonly name: string
  /** What it takes for itself: two faults that share one of these never stand at once. The first word of its name, unless given. */
  readonly slots?: readonly string[]
  /** Only before the first run (which is the default), only between two runs, only while OpenCode runs, or at any moment. */
  readonly when?: "start" | "resume" | "running" | "any"
  readonly needs?: readonly Need[]
  readonly options?: FaultyRunOptions
  /** Makes files that belong to the project from then on. */
  prepare?(place: Place): void | Promise<void>
  arrange?(place: Place, delayMs: number): void | Promise<void>
  lift?(place: Place): void | Promise<void>
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

/** A fault under which a test of its own has a session compacted once, and the storm whatever it draws. */
export type CompactionFault = Fault<TaskProject> & {
  /** What the log says while the fault stands. Absent where the log is what is broken, or nothing is missed. */
  readonly expectedLog?: RegExp
  readonly isClientFault?: boolean
  /** Where the record is when the run has ended. */
  readonly record: "ledger" | "outbox"
}

/** A text that no file of the project holds: whoever has it has read what it must not. */
export const SECRET_TEXT = "BAIT-4f1c9a7d"

/** What the user says when nothing else is planned; it is learned once. */
export const CORRECTION = "No, use tabs instead of spaces in the formatter."
