import type { TaskProject } from "../opencode/task-project.ts"
import type { ProjectOptions } from "../opencode/test-project.ts"

/** Situations that a fault may need: a pass, held files, a second run, a handoff, a correction, live state. */
export type Need = "pass" | "code" | "resume" | "handoff" | "correction" | "liveState"

export type ChildBehaviour = "work" | "crash" | "crash late" | "prose" | "wrong return" | "hang" | "deeper" | "cycle"

export type RootBehaviour = "unknown subagent" | "one more pass" | "conflict" | "unknown pass" | "applied twice"

/** Command, environment and place of an OpenCode run under a fault. */
export type FaultyRunOptions = {
  readonly project?: Partial<ProjectOptions>
  readonly environment?: (task: TaskProject) => Record<string, string>
  /** A program that starts OpenCode, such as `setpriv …`. */
  readonly launcher?: readonly string[]
}

/** The project in which the storm arranges faults. */
export type Scene = TaskProject & {
  /** OpenCode's environment. */
  readonly environment: Readonly<Record<string, string>>
  /** Kills the running OpenCode with SIGKILL. */
  killOpenCode(): void
  /** Stops the running OpenCode as Ctrl-Z does. @returns lets it go on */
  suspendOpenCode(): () => void
  /** Reports a violation that the fault itself saw. */
  complain(what: string): void
  /** Adds work that must end before the clean run. */
  follow(work: Promise<unknown>): void
  /** Registers a callback for the time before the clean run. */
  onEnd(stop: () => void): void
}

export type Fault<Place extends TaskProject = Scene> = {
  /** The name in the documentation. */
  readonly name: string
  /**
   * Resources that the fault takes: two faults with a common slot are never active at once. Default: the first word of its name.
   */
  readonly slots?: readonly string[]
  /** Only before the first run (default), only between two runs, only while OpenCode runs, or at any moment. */
  readonly when?: "start" | "resume" | "running" | "any"
  readonly needs?: readonly Need[]
  /** It cannot be caused on OpenCode 2; docs/faults.md says why. */
  readonly isOf1?: true
  readonly options?: FaultyRunOptions
  /** Creates files that belong to the project from then on. */
  prepare?(place: Place): void | Promise<void>
  arrange?(place: Place, delayMs: number): void | Promise<void>
  lift?(place: Place): void | Promise<void>
  readonly child?: ChildBehaviour
  readonly root?: RootBehaviour
  /** Replaces the storm's policy for passes. */
  readonly policy?: unknown
  /** Files that the handoff requests in addition. */
  readonly handoffFiles?: readonly string[]
  /** Replaces the storm's correction by the user; must not be learned if `isSecret`. */
  readonly correction?: { readonly text: string; readonly isSecret: boolean }
  /** The place that the fault makes unwritable: with both at once the record being written may be lost. */
  readonly refuses?: "disk" | "ledger"
  /** The bundle's state is on a disk that disappears with the run. */
  readonly losesState?: boolean
  readonly kills?: boolean
  /** Number of records in the outbox that can never be delivered. */
  readonly parked?: number
}

/** A fault that a test of its own runs through one compaction, and that the storm can draw too. */
export type CompactionFault = Fault<TaskProject> & {
  /** Expected in the log while the fault is active. Absent if the fault breaks the log or has no effect to report. */
  readonly expectedLog?: RegExp
  readonly isClientFault?: boolean
  /** Place of the record when the run has ended. Default: the ledger. */
  readonly record?: "outbox"
}

/** A text that is in no file of the project: output that holds it proves a forbidden read. */
export const SECRET_TEXT = "BAIT-4f1c9a7d"

/** The user's correction if no other is planned; it is learned once. */
export const CORRECTION = "No, use tabs instead of spaces in the formatter."
