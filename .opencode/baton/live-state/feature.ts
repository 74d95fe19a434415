import { basename } from "node:path"
import type { Core } from "../core/core.ts"
import { withDeadline } from "../host/async.ts"
import { describeError, type Log, type LogExtra } from "../host/log.ts"
import type { RawEvent } from "../host/schema.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import type { SessionTask } from "../task/registry.ts"
import type { C2cSession } from "./c2c/session.ts"
import { type Observed, readEvent } from "./events.ts"
import type { StreamLine } from "./protocol.ts"
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

type Running = {
  readonly publisher: Publisher
  readonly writer: StateWriter
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

  const publish = (line: StreamLine | undefined): void => {
    if (line && !isStopped) running?.writer.publish(line)
  }

  const begin = async (): Promise<void> => {
    // It may still keep the statefile.
    await core.before
    const { liveState } = await settingsOrDefaults(projectRoot, log)
    if (!liveState.enabled) return log.debug("live state is switched off")
    const { env } = process
    const isOwn = !env.BATON_STATE_WRITER && !liveState.writer && !env.C2C_MCP_SESSION_ID
    const found = isOwn ? {} : await (await import("./stream-writer.ts")).findWriter(core, liveState.writer, log)
    if (!found) return
    const { foreign, openC2c } = found
    const state = await core.state()
    const strict = liveState.strict ?? foreign !== undefined
    const sessionID = env.C2C_MCP_SESSION_ID || `opencode-${basename(directory)}`
    const publisher = createPublisher({
      identity: {
        c2c_session_id: sessionID,
        c2c_alias: env.C2C_MCP_AUTO_REGISTER_ALIAS || null,
        opencode_pid: process.pid,
        plugin_started_at: startedAt.toISOString(),
      },
      strict,
      now,
    })
    const { current, snapshot, root } = publisher
    if (isStopped) return
    const writer =
      foreign?.start(snapshot) ??
      createStatefileWriter({ state, sessionID, pid: process.pid, current, end: publisher.end, log })
    const heartbeat = setInterval(() => publish(publisher.heartbeat()), HEARTBEAT_MS)
    heartbeat.unref()
    running = { publisher, writer, heartbeat, c2c: openC2c?.(root) }
    // Until a feature loads the services no session has a task.
    void services.loaded.then(({ tasks }) => tasks.onTask(publishTask))
    log.info("live state is published", { writer: foreign?.program ?? "own", strict })
  }

  /** Asks for the parent of a session created before the plugin was loaded: a child's events mean something else. */
  const register = async (publisher: Publisher, sessionID: string): Promise<void> => {
    if (unanswered.has(sessionID)) return
    const parent = await (await services()).sessions.parent(sessionID)
    if (parent.kind === "ok") return publisher.registerSession(sessionID, parent.value)
    // 1.14.41 reports messages of a session after its deletion.
    if (parent.missing) return
    unanswered.add(sessionID)
    log.warn("not published: whether this session is a child is unknown", { sessionID, reason: parent.reason })
  }

  const take = async (observed: Observed, at: Date, event?: RawEvent): Promise<void> => {
    if (!running) return
    const { publisher, c2c } = running
    const { sessionID } = observed
    if (observed.kind === "user-message" || observed.kind === "deleted") unanswered.delete(sessionID)
    if (observed.kind !== "session-created" && publisher.kindOf(sessionID) === "unknown")
      await register(publisher, sessionID)
    publish(publisher.receive(observed, at))
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
      await running?.writer.stop(STOP_GRACE_MS)
    },
  }
}
