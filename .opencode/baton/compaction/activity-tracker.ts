import { type Activity, afterSnapshot, afterToolUse, type ToolUse } from "../task/activity.ts"
import type { TaskRegistry } from "../task/registry.ts"
import type { Journals } from "./journal.ts"

/** Tool calls come in bursts; the journal is written once a burst is over. */
const SAVE_DELAY_MS = 500

/** Keeps the activity of sessions that have a task; sees nothing of the others. */
export type ActivityTracker = {
  toolUsed(sessionID: string, use: ToolUse): void
  /** @param files paths that a step's snapshot saw change */
  snapshotTaken(sessionID: string, files: readonly string[]): void
  forget(sessionID: string): void
  /** Stops the timers; what they would have saved stays in memory only. */
  stop(): void
}

/** @param root folder that file paths in the facts are relative to */
export const createActivityTracker = ({
  tasks,
  journals,
  root,
}: {
  tasks: Pick<TaskRegistry, "peek">
  journals: Journals
  root: string
}): ActivityTracker => {
  const saving = new Map<string, ReturnType<typeof setTimeout>>()

  const saveSoon = (sessionID: string): void => {
    if (saving.has(sessionID)) return
    const timer = setTimeout(() => {
      saving.delete(sessionID)
      void journals.save(sessionID)
    }, SAVE_DELAY_MS)
    timer.unref()
    saving.set(sessionID, timer)
  }

  const update = (sessionID: string, change: (activity: Activity) => Activity): void => {
    if (!tasks.peek(sessionID)) return
    void journals.update(sessionID, (journal) => ({ ...journal, activity: change(journal.activity) }))
    saveSoon(sessionID)
  }

  return {
    toolUsed: (sessionID, use) => update(sessionID, (activity) => afterToolUse(activity, use, root)),
    snapshotTaken: (sessionID, files) => update(sessionID, (activity) => afterSnapshot(activity, files, root)),
    forget: (sessionID) => {
      clearTimeout(saving.get(sessionID))
      saving.delete(sessionID)
    },
    stop: () => {
      for (const timer of saving.values()) clearTimeout(timer)
      saving.clear()
    },
  }
}
