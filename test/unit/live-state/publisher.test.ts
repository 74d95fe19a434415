import { tool } from "@opencode-ai/plugin/tool"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { READ_EVENTS, readEvent } from "../../../.opencode/baton/live-state/events.ts"
import { OBSERVED_EVENTS } from "../../../.opencode/baton/live-state/hooks.ts"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { createPublisher } from "../../../.opencode/baton/live-state/publisher.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"
import { reduceStream, streamLineSchema } from "../../support/live-protocol.ts"

const ROOT = "ses_root"
const IDENTITY = {
  c2c_session_id: "opencode-project",
  c2c_alias: null,
  opencode_pid: 42,
  plugin_started_at: "2026-01-01T00:00:00.000Z",
}
const line = streamLineSchema(tool.schema)

const setUp = ({ strict = false } = {}) => {
  let ms = Date.parse(IDENTITY.plugin_started_at)
  const publisher = createPublisher({ identity: IDENTITY, strict, now: () => new Date(ms++) })
  const lines: StreamLine[] = [publisher.snapshot()]
  const send = (type: string, properties: Record<string, unknown>): StreamLine[] => {
    const sent = readEvent({ type, properties }).flatMap((observed) => publisher.receive(observed) ?? [])
    lines.push(...sent)
    return sent
  }
  /** The present state of a consumer of the stream. */
  const state = () => JSON.parse(JSON.stringify(reduceStream(lines)))
  const created = (id = ROOT, parentID?: string) =>
    send("session.created", { sessionID: id, info: { id, ...(parentID ? { parentID } : {}) } })
  const idle = (sessionID = ROOT) => send("session.idle", { sessionID })
  const turn = () => {
    send("session.status", { sessionID: ROOT, status: { type: "busy" } })
    return idle()
  }
  const speak = (sessionID: string, id = "msg_1") => send("message.updated", { info: { id, sessionID, role: "user" } })
  return { publisher, lines, send, state, created, idle, turn, speak }
}

/** With the root session. */
const start = (options?: { strict?: boolean }) => {
  const live = setUp(options)
  live.created()
  return live
}

const eventsOf = (lines: readonly StreamLine[]): string[] => lines.map(({ event }) => event)
const permission = { id: "per_1", sessionID: ROOT, permission: "bash", patterns: ["ls"] }

test(promised("live-state.A4", "the events that reach the feature are those it can read"), () => {
  expect([...OBSERVED_EVENTS].sort()).toEqual([...READ_EVENTS].sort())
})

const question = (id: string) => ({
  id,
  sessionID: ROOT,
  questions: [{ question: `Which ${id}?`, header: "Choice", options: [{ label: "A", description: "a" }, "B"] }],
})

describe("the published state", () => {
  test(
    promised("live-state.A1", "the published state begins with every field of the protocol, unknown ones null"),
    () => {
      const { lines } = setUp({ strict: true })
      expect(lines[0]).toEqual({
        event: "state.snapshot",
        ts: "2026-01-01T00:00:00.001Z",
        state: {
          ...IDENTITY,
          root_opencode_session_id: null,
          state_last_updated_at: "2026-01-01T00:00:00.001Z",
          agent: { is_idle: null, turn_count: 0, step_count: 0, last_step: null, provider_id: null, model_id: null },
          tui_focus: { ty: "unknown", details: null },
          prompt: { has_text: null },
          pendingQuestion: null,
        },
      })
    },
  )

  test(
    promised(
      ["live-state.A4", "live-state.A5"],
      "the published state counts turns on idle alone, and steps on the four events",
    ),
    () => {
      const { send, state, turn, idle } = start()
      turn()
      idle()
      send("session.status", { sessionID: ROOT, status: { type: "busy" } })
      send("permission.asked", permission)
      send("permission.replied", { sessionID: ROOT, requestID: "per_1", reply: "once" })
      send("session.compacted", { sessionID: ROOT })
      idle()
      const last_step = { event_type: "session.idle", details: { session_id: ROOT } }
      const agent = { is_idle: true, turn_count: 2, step_count: 4, last_step }
      expect(state()).toMatchObject({ agent, extensions: { compactions: 1 } })
    },
  )

  test(
    promised("live-state.A4", "the published state has provider and model when told, and tokens once a message"),
    () => {
      const { send, state } = start()
      const time = { created: 1 }
      const info = { id: "msg_1", sessionID: ROOT, role: "assistant", providerID: "p", modelID: "m", time }
      send("message.updated", { info })
      expect(state().agent).toMatchObject({ provider_id: "p", model_id: "m", is_idle: false })
      const tokens = { input: 100, output: 10, reasoning: 0, cache: { read: 1_000, write: 5 } }
      const finished = { info: { ...info, time: { created: 1, completed: 2 }, tokens } }
      expect(send("message.updated", finished)).toHaveLength(1)
      expect(send("message.updated", finished)).toHaveLength(0)
      expect(state().extensions.context_tokens).toBe(1_115)
    },
  )

  test(promised("live-state.A5", "the published state is the root's: a child session never touches it"), () => {
    const { send, state, created, speak } = start({ strict: true })
    const before = state()
    created("ses_child", ROOT)
    for (const type of ["session.idle", "session.compacted"]) send(type, { sessionID: "ses_child" })
    send("session.status", { sessionID: "ses_child", status: { type: "busy" } })
    send("permission.asked", { ...permission, sessionID: "ses_child" })
    speak("ses_child")
    expect(state()).toEqual(before)
  })

  test(
    promised(
      "waiting.B1",
      "the published state tells what waits below the root and in other roots, whose it is, and since when",
    ),
    () => {
      const { send, state, created, speak, idle } = start()
      speak(ROOT)
      send("session.updated", { info: { id: ROOT, title: "The root" } })
      created("ses_child", ROOT)
      created("ses_grandchild", "ses_child")
      send("session.updated", { info: { id: "ses_grandchild", title: "Look around" } })
      created("ses_other")
      send("question.asked", { ...question("que_1"), sessionID: "ses_other" })
      const asked = { ...permission, sessionID: "ses_grandchild", metadata: { command: "ls -l" } }
      send("permission.asked", asked)
      send("permission.asked", asked)
      send("permission.updated", { ...permission, id: "per_2", sessionID: "ses_child" })
      const rooted = { root_session_id: ROOT, root_title: "The root", since: expect.any(String) }
      expect(state().extensions.waiting).toEqual([
        {
          ...{ kind: "permission", id: "per_1", title: "bash", type: "bash", subject: "ls -l" },
          ...{ ...rooted, session_id: "ses_grandchild", subagent: "Look around" },
        },
        expect.objectContaining({ ...rooted, id: "per_2", session_id: "ses_child", subagent: "ses_child" }),
        expect.objectContaining({ kind: "question", id: "que_1", root_session_id: "ses_other", subagent: null }),
      ])
      expect(state()).toMatchObject({ tui_focus: { ty: "prompt" }, pendingQuestion: null, agent: { step_count: 1 } })
      const ids = () => state().extensions.waiting.map(({ id }: { id: string }) => id)
      send("permission.replied", { sessionID: "ses_grandchild", requestID: "per_1" })
      expect(ids()).toEqual(["per_2", "que_1"])
      idle("ses_child")
      expect(ids()).toEqual(["que_1"])
      send("session.deleted", { info: { id: "ses_other" } })
      expect(ids()).toEqual([])
    },
  )

  test(
    promised(
      "waiting.B1",
      "the published state tells of a provider that is asked again until it answers or the turn ends",
    ),
    () => {
      const { send, state, created, idle } = start()
      created("ses_child", ROOT)
      created("ses_other")
      const status = (sessionID: string, type: string, about = {}) =>
        send("session.status", { sessionID, status: { type, ...about } })
      const failed = { message: "Too many", attempt: 1, next: Date.parse("2026-01-02T00:00:00.000Z") }
      status("ses_other", "retry", failed)
      expect(state().extensions.retry).toBeNull()
      status("ses_child", "retry", failed)
      const first = { message: "Too many", attempt: 1, next_at: "2026-01-02T00:00:00.000Z", subagent: "ses_child" }
      const { retry } = state().extensions
      expect(retry).toEqual({ ...first, since: expect.any(String) })
      status("ses_child", "retry", { ...failed, attempt: 2, next: 9e15 })
      expect(state().extensions.retry).toEqual({ ...retry, attempt: 2, next_at: null })
      status("ses_child", "busy")
      expect(state().extensions.retry).toBeNull()
      status(ROOT, "retry", failed)
      expect(state()).toMatchObject({ agent: { is_idle: false }, extensions: { retry: { subagent: null } } })
      idle()
      expect(state().extensions.retry).toBeNull()
    },
  )

  test(promised("live-state.A5", "attached late, the first idle of a session that is no child gives the root"), () => {
    const { publisher, state, idle } = setUp()
    publisher.registerSession("ses_child", "ses_other")
    idle("ses_child")
    idle("ses_stranger")
    expect(state().root_opencode_session_id).toBeNull()
    publisher.registerSession(ROOT, undefined)
    idle()
    expect(state()).toMatchObject({ root_opencode_session_id: ROOT, agent: { turn_count: 1, is_idle: true } })
  })

  test(promised("live-state.A5", "a second root takes over when spoken to, and the first keeps its counters"), () => {
    const { state, created, turn, speak } = start()
    speak(ROOT, "msg_1")
    turn()
    created("ses_second")
    expect(state().root_opencode_session_id).toBe(ROOT)
    speak("ses_second", "msg_2")
    expect(state()).toMatchObject({ root_opencode_session_id: "ses_second", agent: { turn_count: 0 } })
    turn()
    expect(state().agent.turn_count).toBe(0)
    // A change of an older message is no speaking.
    expect(speak(ROOT, "msg_1")).toEqual([])
    expect(state().root_opencode_session_id).toBe("ses_second")
    speak(ROOT, "msg_3")
    expect(state()).toMatchObject({ root_opencode_session_id: ROOT, agent: { turn_count: 2 } })
  })

  const OLD_PERMISSION = { id: "per_1", sessionID: ROOT, type: "bash", title: "bash", pattern: "rm *" }
  test.each([
    ["permission.asked", { ...permission, metadata: { command: "ls && rm x" }, patterns: ["ls"] }, "ls && rm x"],
    ["permission.asked", { ...permission, metadata: { secret: "x" }, patterns: ["ls", "rm x"] }, "ls, rm x"],
    ["permission.asked", { ...permission, patterns: [] }, null],
    ["permission.updated", OLD_PERMISSION, null],
  ])(promised(["live-state.A6", "live-state.A8"], "%s shows what waits until answered: %j"), (type, asked, subject) => {
    const { send, state } = start()
    send(type, asked)
    expect(state().tui_focus).toEqual({ ty: "permission", details: { id: "per_1", title: "bash", type: "bash" } })
    expect(state().agent.last_step.event_type).toBe(type)
    expect(state().extensions.permission_subject).toBe(subject)
    send("permission.replied", { sessionID: ROOT, requestID: "per_1", reply: "reject" })
    expect(state().tui_focus).toEqual({ ty: "prompt", details: null })
    expect(state().extensions.permission_subject).toBeNull()
  })

  test(promised("live-state.A6", "questions come and go with a snapshot each, the first first, then the next"), () => {
    const { send, state } = start()
    expect(eventsOf(send("question.asked", question("que_1")))).toEqual(["state.snapshot"])
    const shown = { id: "que_1", text: "Which que_1?", header: "Choice", options: ["A", "B"] }
    expect(state().pendingQuestion).toEqual(shown)
    send("question.asked", question("que_2"))
    expect(state().pendingQuestion).toEqual(shown)
    expect(eventsOf(send("question.replied", { sessionID: ROOT, requestID: "que_1" }))).toEqual(["state.snapshot"])
    expect(state().pendingQuestion.id).toBe("que_2")
    send("question.rejected", { sessionID: ROOT, requestID: "que_2" })
    expect(state()).toMatchObject({ pendingQuestion: null, tui_focus: { ty: "prompt" } })
  })

  test.each([
    ["session.idle", { sessionID: ROOT }],
    ["session.deleted", { info: { id: ROOT } }],
  ])(promised("live-state.A6", "a turn's end clears what was not answered (%s)"), (type, properties) => {
    const { send, state } = start()
    send("session.status", { sessionID: ROOT, status: { type: "busy" } })
    send("question.asked", question("que_1"))
    send("permission.asked", permission)
    expect(eventsOf(send(type, properties))).toEqual(["state.snapshot"])
    expect(state()).toMatchObject({ pendingQuestion: null, tui_focus: { ty: "prompt" }, agent: { is_idle: true } })
  })

  test(promised("soak.B4", "a deleted root is shown until another takes its place, and forgotten then"), () => {
    const { publisher, send, state, created, idle, speak } = start()
    idle()
    send("session.deleted", { info: { id: ROOT } })
    expect(state().agent.turn_count).toBe(1)
    created("ses_next")
    speak("ses_next")
    publisher.registerSession(ROOT, undefined)
    speak(ROOT)
    expect(state()).toMatchObject({ root_opencode_session_id: ROOT, agent: { turn_count: 0 } })
  })

  const STRICT = "in strict mode no extension is published, not even a heartbeat, and no prompt or raw payload"
  test(promised(["live-state.A1", "live-state.A8"], STRICT), () => {
    const { publisher, lines, send } = start({ strict: true })
    send("session.compacted", { sessionID: ROOT })
    send("command.executed", { sessionID: ROOT, name: "handoff" })
    send("message.updated", { info: { id: "m", sessionID: ROOT, role: "user", summary: { title: "PRIVATE" } } })
    send("permission.asked", { ...permission, metadata: { command: "PRIVATE" }, patterns: ["PRIVATE"] })
    expect(publisher.heartbeat()).toBeUndefined()
    expect(JSON.stringify(lines)).not.toMatch(/extensions|heartbeat|compactions|PRIVATE/)
  })

  test(promised("live-state.A8", "the extensions tell task, compactions, handoffs and a sign of life"), () => {
    const { publisher, lines, send, state } = start()
    const task = { id: "ts-1", role: "worker" }
    send("command.executed", { sessionID: ROOT, name: "handoff" })
    publisher.receive({ kind: "session", sessionID: ROOT, seen: { kind: "task-bound", task } })
    lines.push(publisher.snapshot())
    const before = state().extensions.heartbeat_at
    const beat = publisher.heartbeat()
    expect(beat).toMatchObject({ event: "state.patch", patch: { extensions: { heartbeat_at: expect.any(String) } } })
    if (beat) lines.push(beat)
    expect(state().extensions).toMatchObject({ task, handoffs: 1 })
    expect(state().extensions.heartbeat_at > before).toBe(true)
  })

  test(promised("live-state.A8", "since when an agent is busy, idle or waits is told to the moment"), () => {
    const { publisher, lines, send, state } = start()
    const since = (): string => {
      lines.push(publisher.snapshot())
      return state().extensions.status_since
    }
    send("session.status", { sessionID: ROOT, status: { type: "busy" } })
    const [{ ts: busyAt } = { ts: "" }] = lines.slice(-1)
    send("session.compacted", { sessionID: ROOT })
    expect(since()).toBe(busyAt)
    const [asked] = send("question.asked", question("que_1"))
    expect(since()).toBe(asked?.ts)
    send("question.asked", question("que_2"))
    expect(since()).toBe(asked?.ts)
    const [next] = send("question.replied", { sessionID: ROOT, requestID: "que_1" })
    expect(since()).toBe(next?.ts)
  })

  test(promised("live-state.A8", "the session's title is told once OpenCode has made one"), () => {
    const { send, state } = start()
    const titled = (title: string) => send("session.updated", { info: { id: ROOT, title } })
    titled("New session - 2026-11-25T21:30:10.806Z")
    expect(state().extensions.title).toBeNull()
    titled("CRLF in the parser")
    expect(state().extensions.title).toBe("CRLF in the parser")
    expect(titled("CRLF in the parser")).toEqual([])
  })

  test(promised("live-state.A8", "a turn is one that the model answered, a manual compaction is none"), () => {
    const { send, state, idle } = start()
    const info = {
      id: "msg_2",
      sessionID: ROOT,
      role: "assistant",
      providerID: "p",
      modelID: "m",
      time: { created: 1 },
    }
    send("message.updated", { info })
    send("message.updated", { info: { ...info, id: "msg_3", summary: true } })
    idle()
    send("message.updated", { info: { ...info, id: "msg_4", summary: true } })
    idle()
    expect(state()).toMatchObject({ agent: { turn_count: 2 }, extensions: { turns: 1 } })
  })

  test(promised("live-state.A8", "an agent that ends does nothing and waits for nobody"), () => {
    const { publisher, lines, send, state } = start()
    send("permission.asked", permission)
    const last = publisher.end()
    if (last) lines.push(last)
    expect(state()).toMatchObject({ agent: { is_idle: true }, tui_focus: { ty: "prompt" } })
    expect(publisher.end()).toBeUndefined()
  })

  test(promised("live-state.A1", "the protocol is published as the JSON schema that tests use"), async () => {
    const schema = tool.schema.toJSONSchema(line)
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot("../../../docs/live-state.schema.json")
  })

  const partial = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { requiredKeys: [] })
  const anyInfo = partial({
    id: fc.constantFrom(ROOT, "ses_b", "ses_c"),
    parentID: fc.constantFrom(undefined, ROOT),
    role: fc.constantFrom("user", "assistant"),
    providerID: fc.string(),
    modelID: fc.string(),
    time: fc.jsonValue(),
    tokens: fc.jsonValue(),
  })
  const anyOptions = fc.array(fc.record({ label: fc.string() }))
  const anyQuestion = fc.record({ question: fc.string(), header: fc.string(), options: anyOptions })
  const anyProperties = partial({
    sessionID: fc.constantFrom(ROOT, "ses_b", "ses_c"),
    id: fc.constantFrom("x1", "x2"),
    requestID: fc.constantFrom("x1", "x2"),
    permission: fc.string(),
    title: fc.string(),
    status: fc.record({ type: fc.constantFrom("busy", "idle", "retry") }),
    info: anyInfo,
    questions: fc.oneof(fc.jsonValue(), fc.array(anyQuestion)),
  })
  const anyEvent = fc.record({
    type: fc.constantFrom(...OBSERVED_EVENTS, "message.part.delta", "nonsense"),
    properties: fc.oneof(fc.jsonValue(), anyProperties),
  })

  const KEEPS = "whatever happens, every line keeps the schema and the stream gives the state (strict: %s)"
  test.each([true, false])(promised(["live-state.A1", "live-state.D2"], KEEPS), (strict) => {
    forAll(300, [fc.array(anyEvent, { maxLength: 40 })], (events) => {
      const { publisher, lines, send, state } = setUp({ strict })
      for (const { type, properties } of events) send(type, properties as Record<string, unknown>)
      for (const each of lines) line.parse(JSON.parse(JSON.stringify(each)))
      const streamed = state()
      const { state: whole } = publisher.snapshot() as Extract<StreamLine, { event: "state.snapshot" }>
      const comparable = (value: unknown) =>
        JSON.parse(JSON.stringify(value, (key, each) => (/_at$/.test(key) && key !== "at" ? null : each)))
      expect(comparable(streamed)).toEqual(comparable(whole))
    })
  })
})
