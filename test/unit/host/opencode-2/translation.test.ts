import { describe, expect, test } from "vitest"
import { isSummaryRequest, latestCompaction } from "../../../../.opencode/baton/host/messages.ts"
import { toEvents } from "../../../../.opencode/baton/host/opencode-2/events.ts"
import { renderEntry } from "../../../../.opencode/baton/host/opencode-2/log.ts"
import { standing, toStoredMessages } from "../../../../.opencode/baton/host/opencode-2/messages.ts"
import { toolArguments, toolName } from "../../../../.opencode/baton/host/opencode-2/names.ts"
import { readRequest } from "../../../../.opencode/baton/host/opencode-2/request.ts"
import { inputSchema } from "../../../../.opencode/baton/host/opencode-2/tools.ts"
import { ARGUMENT_TYPES } from "../../../../.opencode/baton/host/schema.ts"
import { promised } from "../../../requirements.ts"

const SPEAKING = { agent: "build", model: { id: "m", providerID: "p" } }

/** As `session.context` gave them on 2.0.15. */
const USER = { id: "msg_1", type: "user", time: { created: 10 }, text: "go", files: [] }
const COMPACTION = {
  id: "msg_2",
  type: "compaction",
  time: { created: 20 },
  status: "completed",
  reason: "auto",
  summary: "## Done\n- all",
  recent: "[User]: go",
}
const ANSWER = {
  id: "msg_3",
  type: "assistant",
  time: { created: 30, completed: 40 },
  agent: "build",
  model: { id: "m", providerID: "p" },
  content: [
    { type: "text", text: "Done." },
    {
      type: "tool",
      id: "call_1",
      name: "shell",
      state: {
        status: "completed",
        input: { command: "false" },
        content: [{ type: "text", text: "no" }],
        metadata: { exit: 1 },
      },
      time: { created: 31, completed: 32 },
    },
  ],
}

describe(promised("v2.A1", "what OpenCode 2 stores, as OpenCode 1 would"), () => {
  test("a compaction is a request and its summary, and an idle mark is nothing", () => {
    const entries = [USER, COMPACTION, ANSWER, { id: "msg_4", type: "idle" }, { type: "user" }, "?"]
    const messages = toStoredMessages("ses_1", entries, SPEAKING)
    expect(messages.map(({ info }) => `${info.role} ${info.id}`)).toEqual([
      "user msg_1",
      "user msg_2",
      "assistant msg_2z",
      "assistant msg_3",
    ])
    expect(latestCompaction(messages)).toEqual({
      requestID: "msg_2",
      summaryID: "msg_2z",
      createdAt: 20,
      summary: "## Done\n- all",
    })
    expect(messages.at(-1)?.parts[1]).toMatchObject({
      type: "tool",
      tool: "bash",
      state: { status: "completed", input: { command: "false" }, output: "no", metadata: { exit: 1 } },
    })
  })

  test(promised("v2.B3", "the model's own summary counts where another text stands in for it"), () => {
    const summaryOf = (metadata: object) =>
      latestCompaction(toStoredMessages("ses_1", [{ ...COMPACTION, metadata }], SPEAKING))?.summary
    expect(summaryOf({ baton: "rescued", answer: "Some." })).toBe("Some.")
    expect(summaryOf({ baton: "rescued" })).toBe("")
  })

  test(
    promised("v2.B3", "a compaction gives the message that set the task, which OpenCode does not show any more"),
    () => {
      const metadata = { baton: "summary", task: { id: "msg_0", text: "Task: ts-b54507" } }
      const [first, request] = toStoredMessages("ses_1", [{ ...COMPACTION, metadata }], SPEAKING)
      expect(first).toMatchObject({ info: { id: "msg_0", role: "user" }, parts: [{ text: "Task: ts-b54507" }] })
      expect(request?.info.id).toBe("msg_2")
    },
  )

  test("a compaction that is under way has no summary yet", () => {
    const messages = toStoredMessages("ses_1", [{ ...COMPACTION, status: "running" }], SPEAKING)
    expect(messages.map(({ info }) => info.id)).toEqual(["msg_2"])
    expect(latestCompaction(messages)).toBeUndefined()
  })

  test(
    promised("v2.B1", "a compaction that failed is nothing: later requests are turns, in answer to the user"),
    () => {
      const failed = { ...COMPACTION, status: "failed", error: { type: "aborted", message: "" } }
      const messages = toStoredMessages("ses_1", [USER, failed, ANSWER], SPEAKING)
      expect(messages.map(({ info }) => info.id)).toEqual(["msg_1", "msg_3"])
      expect(messages[1]?.info).toMatchObject({ parentID: "msg_1" })
      expect(isSummaryRequest(messages)).toBe(false)
    },
  )
})

test(promised("v2.A1", "a command in the background has not ended, any other call has"), () => {
  const statusOf = (name: string) => {
    const state = { status: "completed", input: {}, metadata: { status: "running" } }
    const entry = { ...ANSWER, content: [{ type: "tool", id: "call_1", name, state }] }
    const [part] = toStoredMessages("ses_1", [entry], SPEAKING)[0]?.parts ?? []
    return part?.type === "tool" ? part.state.status : undefined
  }
  expect(["shell", "mcp_server"].map(statusOf)).toEqual(["running", "completed"])
})

test(promised("v2.B9", "an undo in a fork leaves the copies before it, by their numbers"), () => {
  const entries = ["msg_0a_4", "msg_0a_132", "msg_0a_133", "msg_0b"].map((id) => ({ ...USER, id }))
  const left = standing(entries, { messageID: "msg_0a_132" })
  expect(left).toEqual([entries[0]])
})

describe("names", () => {
  test.each([
    ["shell", { command: "x" }, "bash", { command: "x" }],
    ["subagent", { agent: "general" }, "task", { subagent_type: "general" }],
    ["write", { path: "a", content: "" }, "write", { filePath: "a", content: "" }],
    ["grep", { path: "a" }, "grep", { path: "a" }],
    ["edit", "no object", "edit", "no object"],
  ])(promised("v2.A1", "the tool %s and its arguments have the names of OpenCode 1"), (name, given, tool, expected) => {
    expect(toolName(name)).toBe(tool)
    expect(toolArguments(tool, given)).toEqual(expected)
  })
})

describe("events", () => {
  const raw = (type: string, data: object) => ({ type, created: 5, location: { directory: "/here" }, data })
  const typesOf = (type: string, data: object, directory = "/here") =>
    toEvents(raw(type, { sessionID: "ses_1", ...data }), directory).map((event) => event.type)

  test.each([
    ["session.execution.started", {}, ["session.status"]],
    ["session.execution.succeeded", {}, ["session.idle"]],
    ["session.execution.failed", { error: { type: "x", message: "no" } }, ["session.error", "session.idle"]],
    ["session.compaction.ended", {}, ["session.compacted"]],
    ["session.step.ended", { files: [] }, ["message.updated"]],
    ["session.step.ended", { files: ["a"] }, ["message.updated", "message.part.updated"]],
    ["session.text.delta", {}, []],
    ["session.revert.staged", { revert: { messageID: "msg_1" } }, ["session.updated"]],
    ["session.revert.committed", { to: "msg_1" }, ["session.updated"]],
  ])("the event %s %j is %j", (type, data, expected) => {
    expect(typesOf(type, data)).toEqual(expected)
  })

  test(promised("v2.A3", "events of another folder are left out, and the end of this one is told"), () => {
    expect(typesOf("session.execution.started", {}, "/elsewhere")).toEqual([])
    const end = (directory: string) =>
      toEvents({ type: "location.shutdown", location: { directory }, data: {} }, "/here")
    expect(end("/here")).toMatchObject([{ type: "server.instance.disposed" }])
    expect(end("/elsewhere")).toEqual([])
    for (const strange of [undefined, null, "x", {}, { type: 1 }, { type: "session.created" }])
      expect(toEvents(strange, "/here")).toEqual([])
  })

  test("a new session has its parent and its time", () => {
    const [event] = toEvents(raw("session.created", { sessionID: "ses_2", parentID: "ses_1" }), "/here")
    expect(event).toMatchObject({ properties: { info: { id: "ses_2", parentID: "ses_1", time: { created: 5 } } } })
  })
})

describe("a request", () => {
  const send = (sent: { id?: string; role: string; content: { type: string; text?: string }[] }[]) =>
    readRequest(
      { session: { context: async () => [USER, COMPACTION] } } as unknown as Parameters<typeof readRequest>[0],
      { sessionID: "ses_1", ...SPEAKING, messages: sent, tools: { mine: {}, shell: {} } },
    )
  const note = { id: "n", sessionID: "ses_1", messageID: "", type: "text" as const, text: "a note" }

  test(
    promised("v2.B1", "a request gets each text once, beside its message, and loses the tools that are off"),
    async () => {
      const sent = [{ id: "msg_2", role: "user", content: [{ type: "text", text: "<summary>" }] }]
      const tools: Record<string, unknown> = { mine: {}, shell: {} }
      const request = await readRequest(
        { session: { context: async () => [COMPACTION] } } as unknown as Parameters<typeof readRequest>[0],
        { sessionID: "ses_1", ...SPEAKING, messages: sent, tools },
      )
      request.messages[1]?.parts.push(note)
      Object.assign(request.messages[0]?.info ?? {}, { tools: { mine: false, other: true } })
      request.apply()
      request.apply()
      expect(sent[0]?.content.map(({ text }) => text)).toEqual(["<summary>", "\n\na note"])
      expect(Object.keys(tools)).toEqual(["shell"])
    },
  )

  test(promised("v2.B1", "a message whose own id ends like a summary's keeps its text"), async () => {
    const own = { ...USER, id: "msg_1z" }
    const sent = ["msg_1z", "msg_9"].map((id) => ({ id, role: "user", content: [{ type: "text", text: "hi" }] }))
    const request = await readRequest(
      { session: { context: async () => [own] } } as unknown as Parameters<typeof readRequest>[0],
      { sessionID: "ses_1", ...SPEAKING, messages: sent, tools: {} },
    )
    request.messages[0]?.parts.push(note)
    request.apply()
    expect(sent.map(({ content }) => content.length)).toEqual([2, 1])
  })

  test("without the message, the newest of the user's gets the text; without any, a message of its own", async () => {
    const others = [{ id: "msg_9", role: "user", content: [{ type: "text", text: "hi" }] }]
    const request = await send(others)
    request.messages[0]?.parts.push(note)
    request.apply()
    expect(others[0]?.content).toHaveLength(2)
    const none: Parameters<typeof send>[0] = []
    const empty = await send(none)
    empty.messages[0]?.parts.push(note)
    empty.apply()
    expect(none).toEqual([{ role: "user", content: [{ type: "text", text: "a note" }] }])
  })
})

test(promised("v2.B4", "a tool's arguments are a JSON Schema, and what is optional is not required"), () => {
  const args = { message: ARGUMENT_TYPES.string("The line"), search: ARGUMENT_TYPES.optionalString("A text") }
  expect(inputSchema(args)).toEqual({
    type: "object",
    properties: {
      message: { type: "string", description: "The line" },
      search: { type: "string", description: "A text" },
    },
    required: ["message"],
    additionalProperties: false,
  })
})

test("an entry of the log is one line", () => {
  const entry = {
    level: "warn",
    message: '[baton.core] a "b"\nc',
    extra: { sessionID: "ses_1", n: 1, none: undefined },
  }
  expect(renderEntry(entry, new Date(0))).toBe(
    'timestamp=1970-01-01T00:00:00.000Z level=WARN message="[baton.core] a \\"b\\"\\nc" sessionID=ses_1 n=1\n',
  )
})
