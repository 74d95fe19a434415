import { basename, join } from "node:path"
import type { Instance } from "../core/core.ts"
import { withDeadline } from "../host/async.ts"
import { describeError, type Log, type LogExtra } from "../host/log.ts"
import { findExecutables } from "../host/process.ts"
import { bundleRoot } from "../host/project.ts"
import { createSessions } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createStateFolder } from "../host/state.ts"
import { createSessionTasks } from "../task/registry.ts"
import { type Observed, type RawEvent, readEvent } from "./events.ts"
import type { StreamLine } from "./protocol.ts"
import { createPublisher, type Publisher } from "./publisher.ts"
import { chooseWriter, createStreamWriter, type StreamWriter, WRITER_VARIABLE } from "./stream-writer.ts"

const HEARTBEAT_MS = 10_000
/** The two add up to less than the time dispose has: for the last events to be published, and for the writer to end. */
const LAST_EVENTS_MS = 300
const STOP_GRACE_MS = 500

export type LiveStateFeature = {
  /** Events in OpenCode's order. @param at time of arrival */
  receive(event: RawEvent, at: Date): void
  stop(): Promise<void>
}

type Running = { readonly publisher: Publisher; readonly writer: StreamWriter; readonly heartbeat: NodeJS.Timeout }

export const createLiveStateFeature = (
  { input: { client, directory }, projectRoot }: Instance,
  { log, startedAt }: { log: Log; startedAt: Date },
): LiveStateFeature => {
  const now = () => new Date()
  const sessions = createSessions(client)
  const state = createStateFolder(projectRoot)
  const bindings = createSessionTasks({ state, log })
  /** Sessions whose parent OpenCode did not tell; asked again at the user's next message. */
  const unanswered = new Set<string>()
  let running: Running | undefined
  let isStopped = false

  const begin = async (): Promise<void> => {
    const { liveState } = await settingsOrDefaults(projectRoot, log)
    if (!liveState.enabled) return log.debug("live state is switched off")
    const chosen = chooseWriter({
      variable: process.env[WRITER_VARIABLE],
      setting: liveState.writer,
      c2c: (await findExecutables("c2c", process.env.PATH))[0],
      runtime: process.versions.bun === undefined ? undefined : process.execPath,
      script: join(bundleRoot, "live-state", "state-writer.ts"),
      directory: projectRoot,
    })
    if (chosen.kind === "none") return log.warn("no state writer", { reason: chosen.reason })
    // Git ignores the embedded writer's folder like all state. The writer itself reports when it cannot write.
    if (chosen.kind === "embedded")
      await state
        .prepare("live")
        .catch((error: unknown) => log.warn("no folder for the statefile", { error: describeError(error) }))
    const strict = liveState.strict ?? chosen.kind === "foreign"
    const publisher = createPublisher({
      identity: {
        c2c_session_id: process.env.C2C_MCP_SESSION_ID || `opencode-${basename(directory)}`,
        c2c_alias: process.env.C2C_MCP_AUTO_REGISTER_ALIAS || null,
        opencode_pid: process.pid,
        plugin_started_at: startedAt.toISOString(),
      },
      strict,
      now,
    })
    const writer = createStreamWriter({
      command: chosen.command,
      directory,
      snapshot: publisher.snapshot,
      log,
      endsByItself: chosen.kind === "embedded",
    })
    const beat = (): void => publish(publisher.heartbeat())
    const heartbeat = setInterval(beat, HEARTBEAT_MS)
    heartbeat.unref()
    running = { publisher, writer, heartbeat }
    log.info("live state is published", { writer: chosen.command.argv[0], kind: chosen.kind, strict })
  }

  const publish = (line: StreamLine | undefined): void => {
    if (line && !isStopped) running?.writer.publish(line)
  }

  /** Learns the parent of a session created before the plugin was loaded: a child's events mean something else. */
  const learn = async (publisher: Publisher, sessionID: string): Promise<void> => {
    if (unanswered.has(sessionID)) return
    const parent = await sessions.parent(sessionID)
    if (parent.kind === "ok") return publisher.learn(sessionID, parent.value)
    // 1.14.41 reports messages of a session after its deletion.
    if (parent.missing) return
    unanswered.add(sessionID)
    log.warn("not published: whether this session is a child is unknown", { sessionID, reason: parent.reason })
  }

  const learnTask = async (publisher: Publisher, sessionID: string): Promise<void> => {
    const binding = await bindings.read(sessionID)
    const task = binding ? { id: binding.taskID, role: binding.role } : null
    if (task) publish(publisher.receive({ kind: "session", sessionID, seen: { kind: "task-known", task } }))
  }

  const take = async (observed: Observed, at: Date): Promise<void> => {
    if (!running) return
    const { publisher } = running
    const { sessionID } = observed
    if (observed.kind === "spoken-to" || observed.kind === "deleted") unanswered.delete(sessionID)
    if (observed.kind !== "born" && publisher.kindOf(sessionID) === "unknown") await learn(publisher, sessionID)
    publish(publisher.receive(observed, at))
    const seen = observed.kind === "session" ? observed.seen.kind : undefined
    // A user's message binds its session before OpenCode stores it.
    const mayBind = observed.kind === "spoken-to" || seen === "idle"
    if (mayBind && publisher.kindOf(sessionID) === "root") await learnTask(publisher, sessionID)
  }

  const begun = begin()
  let queue: Promise<void> = begun.catch((error: unknown) =>
    log.error("live state could not be set up", { error: describeError(error) }),
  )
  const inTurn = (failure: string, about: LogExtra, work: () => Promise<void>): void => {
    queue = queue.then(work).catch((error: unknown) => log.error(failure, { ...about, error: describeError(error) }))
  }
  return {
    receive: (event, at) => {
      for (const observed of readEvent(event))
        inTurn("an event was not published", { type: event.type }, () => take(observed, at))
    },
    stop: async () => {
      await withDeadline(queue, LAST_EVENTS_MS)
      isStopped = true
      clearInterval(running?.heartbeat)
      await running?.writer.stop(STOP_GRACE_MS)
    },
  }
}
