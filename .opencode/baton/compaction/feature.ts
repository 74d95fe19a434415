import type { PluginInput } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { loadOnce, withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { createModelContext, createSessions } from "../host/sessions.ts"
import { createSessionStore, createStateFolder } from "../host/state.ts"
import { createTui } from "../host/tui.ts"
import { createLedger } from "../ledger/client.ts"
import { hasWaitingRecords } from "../ledger/waiting-records.ts"
import { collectUserText } from "../task/parse.ts"
import { createPromptFiles } from "../task/prompts.ts"
import { createTaskRegistry, storedBindings } from "../task/registry.ts"
import { createOpenings } from "./openings.ts"
import { createJournals, journalSchema } from "./session-state.ts"
import { createTurns, type Turns, type TurnsDeps } from "./turns.ts"

/** As long as `guardDispose` waits. */
const FLUSH_DEADLINE_MS = 700

export type CompactionFeature = Omit<Turns, "stop" | "userArrived"> & {
  userMessage(message: UserMessage, parts: readonly Part[]): Promise<Change | undefined>
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
  // A quarter of the feature, and needed only where a record waits or is made.
  const outbox = loadOnce(async () => {
    const { createOutbox } = await import("../ledger/outbox.ts")
    return createOutbox({ ledger, state, log, now })
  })
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
    waiting: async (taskID) => (hasWaitingRecords(projectRoot) ? (await outbox()).waiting(taskID) : []),
    bindings,
    tasks,
    modelContext,
    tui,
    prompts,
    run,
    root,
    log,
  })
  const loadCompaction: TurnsDeps["loadCompaction"] = async (seen) => {
    const { createCompaction } = await import("./compaction.ts")
    return createCompaction({
      tasks,
      journals,
      outbox: await outbox(),
      ledger,
      prompts,
      sessions,
      run,
      root,
      log,
      now,
      seen,
    })
  }
  const turns = createTurns({ tasks, journals, openings, loadCompaction, root, log })
  // What an earlier process could not deliver goes first.
  if (hasWaitingRecords(projectRoot)) void outbox().then((loaded) => loaded.drain())
  const { userArrived, ...hooks } = turns
  return {
    ...hooks,
    userMessage: async ({ sessionID, model }, parts) => {
      // Bound before the request is sent, and on disk.
      await tasks.userMessage(sessionID, collectUserText(parts))
      userArrived(sessionID, model)
      return undefined
    },
    stop: async () => {
      turns.stop()
      const records = outbox.loaded()
      // OpenCode exits right after this, in the middle of a write that nobody waits for.
      await Promise.all([records?.flush(FLUSH_DEADLINE_MS), withDeadline(journals.saveAll(), FLUSH_DEADLINE_MS)])
      records?.stop()
    },
  }
}
