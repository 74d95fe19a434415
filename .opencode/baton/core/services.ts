import type { PluginInput } from "@opencode-ai/plugin"
import { type LruMap, lazy, withDeadline } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import { createProcessRunner, type RunProcess } from "../host/process.ts"
import { hasPendingRecords } from "../host/project.ts"
import { createSessions, type Sessions } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createShownMessages } from "../host/shown-messages.ts"
import type { StateFolder } from "../host/state.ts"
import type { Notices } from "../host/tui.ts"
import { createLedger } from "../ledger/client.ts"
import type { Ledger } from "../ledger/ledger.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { openPromptFiles, type PromptFiles } from "../task/prompts.ts"
import { createTaskRegistry, type TaskRegistry } from "../task/registry.ts"
import { createTaskStore } from "../task/session-task.ts"

/** The stateful services of a directory, shared by all features. */
export type Services = {
  readonly state: StateFolder
  /** One second per call; a tool that may wait longer creates its own. */
  readonly sessions: Sessions
  /** For git and other programs; prog runs through Bun's `$` if it exists. */
  readonly run: RunProcess
  readonly tasks: TaskRegistry
  readonly prompts: PromptFiles
  readonly ledger: Ledger
  readonly outbox: Outbox
  readonly notices: Notices
  /** Deliveries begin when this work has ended, or after 3 s. */
  readonly goesFirst: (work: Promise<unknown>) => void
  /** Stops timers. */
  stop(): void
}

type ServicesDeps = {
  readonly input: PluginInput
  readonly projectRoot: string
  readonly state: StateFolder
  /** Parents of sessions, as events told them; null for none. */
  readonly parents: Pick<LruMap<string | null>, "get">
  readonly log: Log
}

/** Loads the outbox when a record is waiting or added. */
const createLazyOutbox = (projectRoot: string, create: () => Promise<Outbox>): Outbox => {
  const load = lazy(create)
  const mayHold = (): boolean => load.current !== undefined || hasPendingRecords(projectRoot)
  return {
    add: async (entry) => (await load()).add(entry),
    pending: async (key) => (mayHold() ? (await load()).pending(key) : []),
    drain: async () => {
      if (mayHold()) await (await load()).drain()
    },
    flush: async (deadlineMs, unsavedMs) => (await load.current)?.flush(deadlineMs, unsavedMs),
    status: async () => (await load()).status(),
    stop: () => void load.current?.then((outbox) => outbox?.stop()),
  }
}

const FIRST_DEADLINE_MS = 3_000

/** Lets deliveries wait for what a request waits for: on two cores two programs slow each other down. */
const createFirstWork = () => {
  const running = new Set<Promise<unknown>>()
  return {
    goesFirst: (work: Promise<unknown>): void => {
      const settled = withDeadline(work, FIRST_DEADLINE_MS).finally(() => running.delete(settled))
      running.add(settled)
    },
    firstDone: () => Promise.all(running),
  }
}

export const createServices = ({ input, projectRoot, state, parents, log }: ServicesDeps): Services => {
  const { client, directory, $ } = input
  const now = () => new Date()
  const sessions = createSessions(client)
  const ending = new AbortController()
  const loadNotices = lazy(async () => {
    const { createNotices, createTui } = await import("../host/tui.ts")
    const setting = async () => (await settingsOrDefaults(projectRoot, log)).notices
    return createNotices({ tui: createTui(client), setting, log, signal: ending.signal })
  })
  const notices: Notices = (notice) =>
    void loadNotices().then(
      (show) => show(notice),
      (error: unknown) => log.warn("a notice is not shown", { title: notice.title, error: describeError(error) }),
    )
  const ledger = createLedger({ run: createProcessRunner({ shell: $ }), directory, log, state })
  const { goesFirst, firstDone } = createFirstWork()
  const outbox = createLazyOutbox(projectRoot, async () => {
    const { createOutbox } = await import("../ledger/outbox.ts")
    return createOutbox({ ledger, state, log, notices, now, firstDone })
  })
  // Delivers records that an earlier process could not deliver.
  void outbox.drain()
  return {
    state,
    sessions,
    run: createProcessRunner({ shell: undefined }),
    tasks: createTaskRegistry({
      store: createTaskStore({ state, log }),
      sessions,
      shownMessages: createShownMessages(sessions),
      parents,
      lookUp: (id) => ledger.readTask(id),
      log,
      now,
    }),
    prompts: openPromptFiles(projectRoot),
    ledger,
    outbox,
    notices,
    goesFirst,
    stop: () => {
      outbox.stop()
      ending.abort()
    },
  }
}
