import type { LearningEntry, RetireEntry } from "./learning-record.ts"

/** One write that must reach the ledger. A new kind is a new member here and a new case in outbox-delivery.ts. */
export type OutboxEntry =
  | { readonly kind: "log"; readonly taskID: string; readonly message: string }
  | {
      readonly kind: "handoff"
      readonly taskID: string
      readonly sessionID: string
      /** The handoff text, without markers. */
      readonly section: string
      /** The original specification as the session knows it; restores one that an agent's `prog desc` removed. */
      readonly specification?: string | undefined
    }
  | LearningEntry
  | RetireEntry

/** Entries about one thing are delivered in their order; one that has to wait holds up its own and no others. */
export const subjectOf = (entry: { readonly taskID: string } | { readonly project: string }): string =>
  "taskID" in entry ? entry.taskID : `the learnings of ${entry.project}`

/** What the log says of an entry. */
export const aboutEntry = (entry: OutboxEntry): { kind: OutboxEntry["kind"]; taskID?: string; project?: string } =>
  "taskID" in entry ? { kind: entry.kind, taskID: entry.taskID } : { kind: entry.kind, project: entry.project }

export type ParkedEntry = {
  /** Absolute path of the parked file; moved back into the outbox folder, it is tried again. */
  readonly file: string
  /** Absent when the file could not be read as an entry. */
  readonly entry?: OutboxEntry
  readonly reason: string
  /** ISO 8601. */
  readonly since: string
}

export type OutboxStatus = {
  readonly waiting: number
  /** Why the last delivery failed; absent when it did not. */
  readonly lastFailure?: string
  readonly parked: readonly ParkedEntry[]
}

/** Ledger writes that are on disk before they are tried, and reach the ledger later, in order, once. */
export type Outbox = {
  /** Resolves when the entry is durably on disk (or, when the disk refuses, was tried directly). Never rejects. */
  add(entry: OutboxEntry): Promise<void>
  /**
   * The same, unless an equal entry waits or the ledger turns out to have its log line already: for a caller that was
   * killed once and cannot know how far it got.
   */
  addUnlessKnown(entry: OutboxEntry): Promise<void>
  /** What waits for this task (see `subjectOf`), oldest first; empty when the folder cannot be read. */
  waiting(subject: string): Promise<OutboxEntry[]>
  /** Delivers what waits, in the background; never rejects and may be called at any time. */
  drain(): Promise<void>
  /** Delivers what waits until nothing is left, nothing more can be done now, or the deadline (ms) passes. */
  flush(deadlineMs: number): Promise<void>
  status(): Promise<OutboxStatus>
  /** Stops the retry timer. What waits stays on disk. */
  stop(): void
}
