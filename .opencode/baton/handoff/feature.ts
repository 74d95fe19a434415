import { randomBytes } from "node:crypto"
import { realpath } from "node:fs/promises"
import { isMainThread } from "node:worker_threads"
import type { PluginInput } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { readDirtyFiles, readGitState } from "../host/git.ts"
import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { createSessions } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state.ts"
import { createTui, detectInterface } from "../host/tui.ts"
import { createLedger } from "../ledger/client.ts"
import { createOutbox } from "../ledger/outbox.ts"
import { createTaskRegistry, storedBindings } from "../task/registry.ts"
import { createDelivery } from "./delivery.ts"
import type { HandoffFacts } from "./handoff-facts.ts"
import { createHandoffRecords } from "./handoff-record.ts"
import { createHandoffSession, type HandoffRequest } from "./handoff-session.ts"
import { createInjection } from "./injection.ts"
import { loadFiles } from "./load-files.ts"
import { createReadSession, type ReadRequest, type ReadResult } from "./read-session.ts"
import type { FileReference } from "./reference.ts"
import { readHistory } from "./session-history.ts"

const FLUSH_DEADLINE_MS = 700
/** A person waits for a tool, and a page of a long session may take a while. */
const CALL_DEADLINE_MS = 10_000
const HISTORY_DEADLINE_MS = 10_000

export type HandoffFeature = {
  handOver(request: HandoffRequest): Promise<string>
  readSession(reader: string, request: ReadRequest): Promise<ReadResult>
  userMessage(message: UserMessage, parts: Part[]): Promise<Change | undefined>
  isPending(sessionID: string): boolean
  forget(sessionID: string): Promise<void>
  /** Whether a draft arrived in the session. */
  isHandedOver(sessionID: string): Promise<boolean>
  stop(): Promise<void>
}

/** Puts the feature together for one directory: the only place where its parts meet the host. */
export const createHandoffFeature = (
  { client, directory, worktree, $ }: PluginInput,
  { log, projectRoot, bundleRoot }: { log: Log; projectRoot: string; bundleRoot: string },
): HandoffFeature => {
  const now = () => new Date()
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
  const startDeadline = () => {
    const over = performance.now() + HISTORY_DEADLINE_MS
    return () => performance.now() > over
  }
  // Outside git OpenCode calls the file system's root the worktree.
  const root = worktree === "/" ? directory : worktree
  const state = createStateFolder(projectRoot)
  const run = createProcessRunner({ shell: $ })
  const sessions = createSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const outbox = createOutbox({ ledger: createLedger({ run, directory, log, state, bundleRoot }), state, log, now })
  const bindings = storedBindings({ state, log })
  const tasks = createTaskRegistry({ store: bindings, sessions, log, now })
  const records = createHandoffRecords({ state, log })
  const tui = createTui(client)
  const load = async (references: readonly FileReference[], isNamedByModel: boolean) => {
    const [realRoot, base, { handoff }] = await Promise.all([
      realpath(root),
      realpath(directory),
      settingsOrDefaults(projectRoot, log),
    ])
    const budget = { maxFiles: handoff.maxFiles, maxBytes: handoff.maxKilobytes * 1024 }
    return loadFiles({ root: realRoot, base }, references, { isNamedByModel, budget })
  }

  const loadReferences = (references: readonly FileReference[]) => load(references, false)
  const injection = createInjection({ sessions, records, loadFiles: loadReferences, outbox, log, now })

  // The compaction feature binds; what it stored last is newer than anything remembered here.
  const findTask = async (sessionID: string) => (await bindings.read(sessionID)) ?? tasks.find(sessionID)
  const isSameTask = async (sessionID: string, other: string): Promise<boolean> => {
    const [own, others] = await Promise.all([findTask(sessionID), findTask(other)])
    return own !== undefined && own.taskID === others?.taskID
  }

  const gatherFacts = async (sessionID: string): Promise<HandoffFacts> => {
    const [history, todos, git, dirtyFiles] = await Promise.all([
      readHistory(sessions, sessionID, { root, isOver: startDeadline() }),
      sessions.todos(sessionID),
      readGitState(run, root),
      readDirtyFiles(run, root),
    ])
    if (todos.kind === "failed") log.warn("todos unknown", { sessionID, reason: todos.reason })
    if (git.kind === "unknown") log.debug("git state unknown", { sessionID, reason: git.reason })
    if (history.incomplete !== undefined) {
      const reason = history.incomplete
      log.warn("the session's history was not read to its beginning", { sessionID, reason })
    }
    const { activity, compactions, firstRequest } = history
    return {
      compactions,
      activity,
      todos: todos.kind === "answer" ? todos.value : [],
      ...(firstRequest === undefined ? {} : { firstRequest }),
      ...(git.kind === "found" ? { git: git.git } : {}),
      ...(dirtyFiles === undefined ? {} : { dirtyFiles }),
    }
  }

  return {
    handOver: createHandoffSession({
      gatherFacts,
      findTask,
      loadFiles: (references) => load(references, true),
      deliver: createDelivery({
        sessions,
        tui,
        userInterface: detectInterface({ argv: process.argv, isMainThread }),
        log,
        pause,
      }),
      sessions,
      records,
      log,
      now,
      random: () => randomBytes(3).toString("hex"),
    }),
    readSession: createReadSession({ sessions, records: records.list, isSameTask, log, startDeadline }),
    userMessage: injection.userMessage,
    isPending: injection.isPending,
    forget: async (sessionID) => {
      injection.forget(sessionID)
      await tasks.forget(sessionID)
    },
    isHandedOver: async (sessionID) => {
      const all = await records.list()
      return all.some(({ arrivals }) => arrivals.some((arrival) => arrival.sessionID === sessionID))
    },
    stop: async () => {
      await outbox.flush(FLUSH_DEADLINE_MS)
      outbox.stop()
    },
  }
}
