import { createRecentMap } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import type { TaskBinding, TaskRegistry } from "../task/registry.ts"
import { type GatherDeps, type Gathered, gatherIdentityAndFacts, readInstructions } from "./gather.ts"
import type { Journals } from "./journal.ts"

/** Everything for the prompt but the prior summary, which only the hook itself can tell. */
export type Prepared = { readonly binding: TaskBinding; readonly found: Gathered; readonly instructions: string }

/** What was prepared longer ago belongs to a compaction that did not come. */
export const PREPARATION_MS = 5_000

export type Preparations = {
  /** OpenCode has stored the request for a compaction; what it does until it calls the hook takes longer than reading. */
  begin(sessionID: string): void
  /** What was begun, or, when nothing fresh was, the same now. @returns undefined for a session without a task */
  take(sessionID: string): Promise<Prepared | undefined>
  forget(sessionID: string): void
}

export const createPreparations = (
  deps: GatherDeps & {
    tasks: Pick<TaskRegistry, "find">
    journals: Pick<Journals, "load">
    log: Log
    /** Milliseconds that only ever grow. */
    clock: () => number
  },
): Preparations => {
  const { tasks, journals, log, clock } = deps
  const begun = createRecentMap<{ at: number; prepared: Promise<Prepared | undefined> }>()

  const prepare = async (sessionID: string): Promise<Prepared | undefined> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return undefined
    const journal = await journals.load(sessionID)
    const [found, instructions] = await Promise.all([
      gatherIdentityAndFacts(deps, binding, journal),
      readInstructions(deps, sessionID),
    ])
    return { binding, found, instructions }
  }

  return {
    begin: (sessionID) => {
      const prepared = prepare(sessionID)
      begun.set(sessionID, { at: clock(), prepared })
      prepared.catch((error: unknown) => {
        log.warn("compaction not prepared: the hook will", { sessionID, error: describeError(error) })
        begun.delete(sessionID)
      })
    },
    take: async (sessionID) => {
      const earlier = begun.get(sessionID)
      begun.delete(sessionID)
      if (!earlier || clock() - earlier.at >= PREPARATION_MS) return prepare(sessionID)
      return earlier.prepared.catch(() => prepare(sessionID))
    },
    forget: (sessionID) => void begun.delete(sessionID),
  }
}
