import type { LruMap } from "../host/async.ts"
import type { CompactionContext } from "./context.ts"

/** Knowledge of one session that this process alone has. */
export type SessionMemo = {
  /** Loaded by the compacting hook, for the record that follows within seconds. */
  context?: CompactionContext | undefined
  /** A turn of the session ran in this process, so that its conversation is known. */
  isTurnSeen?: boolean
  /** The compacting hook ran: from 1.14 on, the next request may be the summariser's own, whose messages hold no summary. */
  isSummaryExpected?: boolean
  /** The newest turn showed no compaction: there was none, or the user reverted it. */
  isUncompacted?: boolean
  /** Resolves when reading the task for the newest user message has begun. */
  noteBegun?: Promise<unknown>
}

export const patchMemo = (memos: LruMap<SessionMemo>, sessionID: string, change: SessionMemo): void =>
  memos.set(sessionID, { ...memos.get(sessionID), ...change })
