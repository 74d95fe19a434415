import { basename } from "node:path"
import type { Core } from "../core/core.ts"
import { withDeadline } from "../host/async.ts"
import { createConsent } from "../host/consent.ts"
import { describeError, type Log, type LogExtra } from "../host/log.ts"
import { ownOrShared } from "../host/project.ts"
import { SETTINGS_FILE, settingsOrDefaults } from "../host/settings.ts"
import { readC2c } from "./c2c/identity.ts"
import type { C2cSession } from "./c2c/session.ts"
import { type Observed, type RawEvent, readEvent } from "./events.ts"
import type { StreamLine } from "./protocol.ts"
import { createPublisher, type Publisher } from "./publisher.ts"
import { createStatefileWriter, type StateWriter } from "./statefile.ts"
import { chooseWriter, createStreamWriter, TRUST_WRITER, WRITER_VARIABLE } from "./stream-writer.ts"

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
  { input, projectRoot, services }: Core,
  { log, startedAt }: { log: Log; startedAt: Date },
): LiveStateFeature => {
  const now = () => new Date()
  const { directory } = input
  /** Sessions whose parent OpenCode did not tell; asked again at the user's next message. */
  const unanswered = new Set<string>()
  let running: Running | undefined
  let isStopped = false

  const publish = (line: StreamLine | undefined): void => {
    if (line && !isStopped) running?.writer.publish(line)
  }

  const begin = async (): Promise<void> => {
    const { liveState } = await settingsOrDefaults(projectRoot, log)
    if (!liveState.enabled) return log.debug("live state is switched off")
    const c2c = await readC2c({ environment: process.env, folders: [directory, projectRoot] })
    if (c2c.kind === "own-plugin") log.info("c2c's own plugin is there: Baton runs no c2c here", { path: c2c.path })
    const chosen = chooseWriter({
      variable: process.env[WRITER_VARIABLE],
      setting: liveState.writer,
      isAllowed: (command) => createConsent(projectRoot).isAllowed(command, ownOrShared(projectRoot, SETTINGS_FILE)),
      c2c: c2c.kind === "session" ? c2c.program : undefined,
    })
    if (chosen.kind === "none") return log.warn("no state writer", { reason: chosen.reason })
    if (chosen.waiting)
      log.warn("the project's state writer is not run until you allow it", {
        writer: chosen.waiting,
        allow: TRUST_WRITER,
      })
    const loaded = await services()
    const { state, tasks } = loaded
    const strict = liveState.strict ?? chosen.kind === "foreign"
    const sessionID = process.env.C2C_MCP_SESSION_ID || `opencode-${basename(directory)}`
    const publisher = createPublisher({
      identity: {
        c2c_session_id: sessionID,
        c2c_alias: process.env.C2C_MCP_AUTO_REGISTER_ALIAS || null,
        opencode_pid: process.pid,
        plugin_started_at: startedAt.toISOString(),
      },
      strict,
      now,
    })
    const { current, snapshot, root } = publisher
    const open = c2c.kind === "session" ? (await import("./c2c/session.ts")).openC2cSession : undefined
    if (isStopped) return
    const writer =
      chosen.kind === "foreign"
        ? createStreamWriter({ argv: chosen.argv, directory, snapshot, log })
        : createStatefileWriter({ state, sessionID, pid: process.pid, current, log })
    const heartbeat = setInterval(() => publish(publisher.heartbeat()), HEARTBEAT_MS)
    heartbeat.unref()
    const session =
      c2c.kind === "session" ? open?.({ c2c, input, services: loaded, environment: process.env, root, log }) : undefined
    running = { publisher, writer, heartbeat, c2c: session }
    tasks.onTask(({ sessionID, taskID, role, isOff }) =>
      enqueue("a task was not published", { sessionID }, () => {
        const task = isOff ? null : { id: taskID, role }
        return take({ kind: "session", sessionID, seen: { kind: "task-bound", task } }, now())
      }),
    )
    log.info("live state is published", { writer: chosen.kind === "foreign" ? chosen.argv[0] : "own", strict })
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
    if (event && sessionID === publisher.root()?.sessionID) c2c?.receive(observed, event)
  }

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
