import type { PluginInput } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { withDeadline } from "../host/deadline.ts"
import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { createModelContext } from "../host/model-context.ts"
import { createProcessRunner } from "../host/process.ts"
import { createSessionStore } from "../host/session-store.ts"
import { createSessions } from "../host/sessions.ts"
import { createStateFolder } from "../host/state-folder.ts"
import { createTui } from "../host/tui.ts"
import { createLedger } from "../ledger/client.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { createPromptFiles } from "../task/prompt-files.ts"
import { createTaskRegistry } from "../task/registry.ts"
import { storedBindings } from "../task/stored-bindings.ts"
import { collectUserText } from "../task/user-text.ts"
import { type Compaction, createCompaction } from "./compaction.ts"
import { createJournals, journalSchema } from "./journal.ts"
import { createOpenings } from "./openings.ts"

/** As long as `guardDispose` waits. */
const FLUSH_DEADLINE_MS = 700

export type CompactionFeature = Omit<Compaction, "stop" | "userArrived"> & {
  /** @param isNew the session began in this process */
  userMessage(message: UserMessage, parts: readonly Part[], isNew: boolean): Promise<Change | undefined>
  /** Saves what is unsaved and delivers what can be delivered in 700 ms; the rest waits in the outbox. */
  stop(): Promise<void>
}

/** Puts the feature together for one directory: the only place where its parts meet the host. */
export const createCompactionFeature = (
  { client, directory, worktree, $ }: PluginInput,
  { log, projectRoot, bundleRoot }: { log: Log; projectRoot: string; bundleRoot: string },
): CompactionFeature => {
  const now = () => new Date()
  const state = createStateFolder(projectRoot)
  const run = createProcessRunner({ shell: $ })
  const sessions = createSessions(client)
  const ledger = createLedger({ run, directory, log, state, bundleRoot })
  const outbox = createOutbox({ ledger, state, log, now })
  const journals = createJournals(createSessionStore({ state, folder: "compactions", schema: journalSchema, log }))
  const bindings = storedBindings({ state, log })
  const tasks = createTaskRegistry({ store: bindings, sessions, log, now })
  const prompts = createPromptFiles({ root: projectRoot })
  // Outside git OpenCode calls the file system's root the worktree.
  const root = worktree === "/" ? directory : worktree
  const modelContext = createModelContext(client)
  const tui = createTui(client)
  const openings = createOpenings({
    ledger,
    journals,
    outbox,
    bindings,
    tasks,
    modelContext,
    tui,
    prompts,
    run,
    root,
    log,
  })
  const compaction = createCompaction({
    tasks,
    journals,
    outbox,
    openings,
    ledger,
    prompts,
    sessions,
    run,
    root,
    log,
    now,
  })
  // What an earlier process could not deliver goes first.
  void outbox.drain()
  const { userArrived, ...hooks } = compaction
  return {
    ...hooks,
    userMessage: async ({ sessionID, model }, parts, isNew) => {
      // Bound before the request is sent, and on disk.
      await tasks.userMessage(sessionID, collectUserText(parts))
      userArrived(sessionID, model, isNew)
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
