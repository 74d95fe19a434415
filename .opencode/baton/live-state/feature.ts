import { basename } from "node:path"
import { isMainThread } from "node:worker_threads"
import type { Core } from "../core/core.ts"
import { lazy, withDeadline } from "../host/async.ts"
import { describeError, type Log, type LogExtra } from "../host/log.ts"
import type { Argv } from "../host/process.ts"
import type { RawEvent } from "../host/schema.ts"
import { accountSettingsPath, readAccountSettings, settingsOrDefaults } from "../host/settings.ts"
import type { SessionTask } from "../task/registry.ts"
import type { C2cSession } from "./c2c/session.ts"
import { type Observed, readEvent } from "./events.ts"
import type { Place } from "./protocol.ts"
import { createPublisher, type Publisher } from "./publisher.ts"
import { createStatefileWriter, type StateWriter } from "./statefile.ts"

const HEARTBEAT_MS = 10_000
/** For the last events to be published, and for a foreign writer to end. */
const LAST_EVENTS_MS = 300
const STOP_GRACE_MS = 500

export type LiveStateFeature = {
  /** Events in OpenCode's order. @param at time of arrival */
  receive(event: RawEvent, at: Date): void
  stop(): Promise<void>
}

type Outlet = { readonly publisher: Publisher; readonly writer: StateWriter }

type Running = {
  /** Baton's own statefile, and the stream of another writer. */
  readonly outlets: readonly [Outlet, ...Outlet[]]
  readonly place: Place
  readonly heartbeat: NodeJS.Timeout
  readonly c2c: C2cSession | undefined
}

export const createLiveStateFeature = (
  core: Core,
  { log, startedAt }: { log: Log; startedAt: Date },
): LiveStateFeature => {
  const { projectRoot, services } = core
  const { directory } = core.input
  const now = () => new Date()
  /** Sessions whose parent OpenCode did not tell; asked again at the user's next message. */
  const unanswered = new Set<string>()
  let running: Running | undefined
  let isStopped = false

  const publish = (make: (publisher: Publisher) => ReturnType<Publisher["heartbeat"]>): void => {
    for (const { publisher, writer } of running?.outlets ?? []) {
      const line = make(publisher)
      if (line && !isStopped) writer.publish(line)
    }
  }

  /** Notes the project for `baton waiting`, and finds where this process is spoken to. */
  const findPlace = async (): Promise<Place> => {
    const [{ noteProject }, { detectUi }] = await Promise.all([import("./projects.ts"), import("../host/tui.ts")])
    try {
      noteProject(projectRoot)
    } catch (error) {
      log.warn("baton waiting does not know this project", { error: describeError(error) })
    }
    // Where OpenCode is no server, nothing listens on that address.
    const isServer = detectUi({ argv: process.argv, isMainThread }) === "server"
    return { directory, server_url: isServer ? String(core.input.serverUrl) : null }
  }

  const accountWriter = async (): Promise<Argv | undefined> => {
    try {
      return (await readAccountSettings()).liveState?.writer
    } catch (error) {
      log.warn("the account's settings are unusable: no writer of theirs is run", {
        path: accountSettingsPath(),
        error: describeError(error),
      })
      return undefined
    }
  }

  const begin = async (): Promise<void> => {
    // It may still keep the statefile.
    await core.before
    const { liveState } = await settingsOrDefaults(projectRoot, log)
    if (!liveState.enabled) return log.debug("live state is switched off")
    if (liveState.writer !== undefined)
      log.warn("the project's state writer is not run: only the account's settings can name one", {
        writer: liveState.writer,
        path: accountSettingsPath(),
      })
    const { env } = process
    const setting = await accountWriter()
    const isOwn = !env.BATON_STATE_WRITER && !setting && !env.C2C_MCP_SESSION_ID
    const { foreign, openC2c } = isOwn ? {} : await (await import("./stream-writer.ts")).findWriter(core, setting, log)
    const [state, place] = await Promise.all([core.state(), findPlace()])
    const sessionID = env.C2C_MCP_SESSION_ID || `opencode-${basename(directory)}`
    const identity = {
      c2c_session_id: sessionID,
      c2c_alias: env.C2C_MCP_AUTO_REGISTER_ALIAS || null,
      opencode_pid: process.pid,
      plugin_started_at: startedAt.toISOString(),
    }
    if (isStopped) return
    // With another writer the setting is about that one's stream.
    const ownStrict = foreign === undefined && liveState.strict === true
    const own = createPublisher({ identity, strict: ownStrict, now, place })
    const { current, end } = own
    const statefile = createStatefileWriter({ state, sessionID, pid: process.pid, current, end, log })
    const strict = liveState.strict ?? true
    const others = foreign ? [createPublisher({ identity, strict, now, place })] : []
    const heartbeat = setInterval(() => publish((publisher) => publisher.heartbeat()), HEARTBEAT_MS)
    heartbeat.unref()
    running = {
      outlets: [
        { publisher: own, writer: statefile },
        ...others.flatMap((publisher) => (foreign ? { publisher, writer: foreign.start(publisher.snapshot) } : [])),
      ],
      place,
      heartbeat,
      c2c: openC2c?.(own),
    }
    // c2c is told of a session that has not begun to work.
    if (openC2c) publish((publisher) => publisher.snapshot())
    // Until a feature loads the services no session has a task.
    void services.loaded.then(({ tasks }) => tasks.onTask(publishTask))
    log.info("live state is published", { writer: foreign?.program ?? "own", strict: foreign ? strict : ownStrict })
  }

  /** Asks for the parent of a session created before the plugin was loaded: a child's events mean something else. */
  const register = async (outlets: readonly Outlet[], sessionID: string): Promise<void> => {
    if (unanswered.has(sessionID)) return
    const parent = await (await services()).sessions.parent(sessionID)
    if (parent.kind === "ok") {
      const above = parent.value
      for (const { publisher } of outlets) publisher.registerSession(sessionID, above)
      // The root above it is to be found, too.
      if (above !== undefined && outlets[0]?.publisher.kindOf(above) === "unknown") await register(outlets, above)
      return
    }
    // 1.14.41 reports messages of a session after its deletion.
    if (parent.missing) return
    unanswered.add(sessionID)
    log.warn("not published: whether this session is a child is unknown", { sessionID, reason: parent.reason })
  }

  const waitingCommand = lazy(async () => {
    const { createWaitingCommand } = await import("./on-waiting.ts")
    // Also where the statefile is strict.
    const state = () => {
      const { outlets: [own] = [], place } = running ?? {}
      return { opencode_pid: process.pid, extensions: { waiting: own?.publisher.waiting() ?? [], place } }
    }
    return createWaitingCommand({ projectRoot, state, log })
  })

  const take = async (observed: Observed, at: Date, event?: RawEvent): Promise<void> => {
    if (!running) return
    const { outlets, c2c } = running
    const [{ publisher: own }] = outlets
    const { sessionID } = observed
    if (observed.kind === "user-message" || observed.kind === "deleted") unanswered.delete(sessionID)
    if (observed.kind !== "session-created" && own.kindOf(sessionID) === "unknown") await register(outlets, sessionID)
    publish((publisher) => publisher.receive(observed, at))
    if (own.waiting().length > 0) (await waitingCommand()).look()
    if (event) c2c?.receive(observed, event)
  }

  const publishTask = ({ sessionID, taskID, role, isOff }: SessionTask): void =>
    enqueue("a task was not published", { sessionID }, () => {
      const task = isOff ? null : { id: taskID, role }
      return take({ kind: "session", sessionID, seen: { kind: "task-bound", task } }, now())
    })

  let queue: Promise<void> = begin().catch((error: unknown) =>
    log.error("live state could not be set up", { error: describeError(error) }),
  )
  const enqueue = (failure: string, about: LogExtra, work: () => Promise<void>): void => {
    queue = queue.then(work).catch((error: unknown) => log.error(failure, { ...about, error: describeError(error) }))
  }
  return {
    receive: (event, at) => {
      for (const observed of readEvent(event))
        enqueue("an event was not published", { type: event.type }, () => take(observed, at, event))
    },
    stop: async () => {
      await withDeadline(queue, LAST_EVENTS_MS)
      isStopped = true
      clearInterval(running?.heartbeat)
      running?.c2c?.stop()
      await Promise.all((running?.outlets ?? []).map(({ writer }) => writer.stop(STOP_GRACE_MS)))
    },
  }
}
