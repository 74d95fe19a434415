import type { PluginInput } from "@opencode-ai/plugin"
import type { Part } from "@opencode-ai/sdk"
import { withDeadline } from "../host/deadline.ts"
import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { createSessionStore } from "../host/session-store.ts"
import { createSessions } from "../host/sessions.ts"
import { createStateFolder } from "../host/state-folder.ts"
import { createLedger } from "../ledger/client.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { createPromptFiles } from "../task/prompt-files.ts"
import type { TaskRegistry } from "../task/registry.ts"
import { collectUserText } from "../task/user-text.ts"
import { type Compaction, createCompaction } from "./compaction.ts"
import { createJournals, journalSchema } from "./journal.ts"

/** As long as `guardDispose` waits. */
const FLUSH_DEADLINE_MS = 700

export type CompactionFeature = Omit<Compaction, "stop" | "userArrived"> & {
  userMessage(sessionID: string, parts: readonly Part[]): Promise<Change | undefined>
  /** Saves what is unsaved and delivers what can be delivered in 700 ms; the rest waits in the outbox. */
  stop(): Promise<void>
}

/**
 * Puts the feature together for one directory: the only place where its parts meet the host.
 *
 * @param context.tasks in use before the rest of the feature is (tasks.ts)
 */
export const createCompactionFeature = (
  { client, directory, worktree, $ }: PluginInput,
  { log, projectRoot, bundleRoot, tasks }: { log: Log; projectRoot: string; bundleRoot: string; tasks: TaskRegistry },
): CompactionFeature => {
  const now = () => new Date()
  const state = createStateFolder(projectRoot)
  const run = createProcessRunner({ shell: $ })
  const sessions = createSessions(client)
  const ledger = createLedger({ run, directory, log, state, bundleRoot })
  const outbox = createOutbox({ ledger, state, log, now })
  const journals = createJournals(createSessionStore({ state, folder: "compactions", schema: journalSchema, log }))
  const compaction = createCompaction({
    tasks,
    journals,
    outbox,
    ledger,
    prompts: createPromptFiles({ root: projectRoot }),
    sessions,
    run,
    // Outside git OpenCode calls the file system's root the worktree.
    root: worktree === "/" ? directory : worktree,
    log,
    now,
  })
  // What an earlier process could not deliver goes first.
  void outbox.drain()
  const { userArrived, ...hooks } = compaction
  return {
    ...hooks,
    userMessage: async (sessionID, parts) => {
      await tasks.userMessage(sessionID, collectUserText(parts))
      userArrived(sessionID)
      return undefined
    },
    stop: async () => {
      compaction.stop()
      // OpenCode exits right after this, in the middle of a write that nobody waits for.
      await Promise.all([outbox.flush(FLUSH_DEADLINE_MS), withDeadline(journals.saveAll(), FLUSH_DEADLINE_MS)])
      outbox.stop()
    },
  }
}
