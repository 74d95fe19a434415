import { describe, expect, test } from "vitest"
import { plain, renderObservation } from "../../../.opencode/baton/live-state/observe/terminal.ts"
import { type AgentView, renderHandoff, toAgentView } from "../../../.opencode/baton/live-state/observe/view.ts"
import { promised } from "../../requirements.ts"

const NOW = new Date("2026-01-01T01:00:00.000Z")

const found = (state: Record<string, unknown> = {}, alive = true) => ({
  file: "a.json",
  ts: "2026-01-01T00:59:00.000Z",
  alive,
  state: {
    c2c_session_id: "opencode-project",
    c2c_alias: null,
    root_opencode_session_id: "ses_1",
    agent: {
      is_idle: false,
      turn_count: 3,
      last_step: { event_type: "session.idle", at: "2026-01-01T00:40:00.000Z", details: null },
      provider_id: "p",
      model_id: "m",
    },
    tui_focus: { ty: "prompt", details: null },
    pendingQuestion: null,
    extensions: {
      task: { id: "ts-b54507", role: "worker" },
      compactions: 2,
      handoffs: 1,
      context_tokens: 12_345,
      status_since: "2026-01-01T00:48:00.000Z",
    },
    ...state,
  },
})
const NEWS = {
  title: "Teach the parser CRLF",
  status: "in_progress",
  log: ["one", "two", "three", "four"].map((message) => ({ message, createdAt: "" })),
  handoff: "after compaction 2, next: Run the tests",
  claim: "ada (session ses_1 on host in /project) since 2026-01-01 00:10 UTC",
}
const view = (state?: Record<string, unknown>, alive?: boolean): AgentView =>
  toAgentView("my-project", found(state, alive), NEWS)
const render = (views: AgentView[], width = 100): string => renderObservation(views, { now: NOW, width, paint: plain })

const HEADING = "# Handoff after compaction 2 (session ses_1, summary msg_1, 2026-01-01T00:00:00.000Z)"
const PROGRESS = "# Work in progress (session ses_1, 2026-01-01T00:00:00.000Z)"

describe("what an observer sees", () => {
  const NEXT = "## Next\n\n1. Run `node --test`\n2. Rest"
  test.each<[string, string | undefined]>([
    [`${HEADING}\n\n## Done\n- It\n\n${NEXT}`, "after compaction 2, next: Run `node --test`"],
    [`${HEADING}\n\n## Done\n- It\n## Next steps\nThe lexer`, "after compaction 2, next: The lexer"],
    [`${HEADING}\n\n## Done\n- It works\n## Next\n\n## Tried and failed\n- Luck`, "after compaction 2: It works"],
    [HEADING, "after compaction 2"],
    [`${PROGRESS}\n\n- 2 files changed`, "work in progress: 2 files changed"],
    ["Next: the lexer\nand more", "Next: the lexer"],
    ["\n", undefined],
  ])(
    promised("live-state.C1", "what an observer sees shows the next step of a handoff: of %j it is %j"),
    (section, line) => {
      expect(renderHandoff(section)).toBe(line)
    },
  )

  const asked = (id: string) => ({ pendingQuestion: { id, text: "Which one?", header: "", options: [] } })
  const permission = (title: string, subject?: string) => ({
    tui_focus: { ty: "permission", details: { id: "p", title, type: "bash" } },
    ...(subject === undefined ? {} : { extensions: { permission_subject: subject, title: "CRLF" } }),
  })
  const idle = { agent: { ...found().state.agent, is_idle: true }, extensions: undefined }

  test(
    promised(
      "live-state.C1",
      "what an observer sees is who it is, what it does and since when, its task, counts and records",
    ),
    () => {
      expect(render([view()])).toBe(
        [
          "my-project",
          "● opencode-project  busy, 12 min",
          "    ts-b54507 (worker) Teach the parser CRLF [in_progress]",
          "    ses_1 · p/m · 3 turns · 2 compactions · 1 handoff · 12,345 tokens",
          "    claimed by ada (session ses_1 on host in /project) since 2026-01-01 00:10 UTC",
          "    handoff: after compaction 2, next: Run the tests",
          "    two",
          "    three",
          "    four",
          "",
          "",
        ].join("\n"),
      )
    },
  )

  test.each([
    [permission("bash"), "! my-project · opencode-project  asks permission, 12 min\n    bash\n"],
    [permission("bash", "rm -rf build"), "! my-project · CRLF  asks permission\n    bash: rm -rf build\n"],
    [{ extensions: { title: "CRLF", turns: 2 } }, "● CRLF  busy\n    no task Teach the parser CRLF"],
    [{ extensions: { title: "CRLF", turns: 2 } }, "    opencode-project · ses_1 · p/m · 2 turns"],
    [asked("q"), "? my-project · opencode-project  asks, 12 min\n    Which one?\n"],
    [{ ...asked("q"), extensions: undefined }, "? my-project · opencode-project  asks\n"],
    [{ agent: { is_idle: true } }, "○ opencode-project  idle"],
    [idle, "○ opencode-project  idle, 20 min"],
    [{ agent: { is_idle: null } }, "○ opencode-project  started"],
  ])(promised("live-state.C1", "%j shows as %j"), (state, line) => expect(render([view(state)])).toContain(line))

  test(
    promised(
      "live-state.C1",
      "what an observer sees begins with who waits for a person in any project, ends with who is gone",
    ),
    () => {
      const gone = { ...view(idle, false), name: "gone-agent" }
      const crashed = { ...view({}, false), name: "crashed-agent" }
      const waiting = { ...view(permission("bash")), name: "waiting-agent" }
      const other = { ...view(asked("q")), project: "z-project", name: "z-agent" }
      const text = render([gone, crashed, view(), other, waiting])
      const order = [
        "Waiting for you",
        "waiting-agent",
        "z-agent",
        "\nmy-project\n",
        "busy",
        "crashed-agent",
        "gone-agent",
      ]
      const places = order.map((name) => text.indexOf(name))
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(places[0]).toBe(0)
      expect(text).toContain("· gone-agent  gone, 1 min")
      expect(text).toContain("✗ crashed-agent  crashed, 1 min")
    },
  )

  test.each([
    [{ state: "nonsense" }],
    [{ agent: 7, tui_focus: [], pendingQuestion: { options: {} }, extensions: "x" }],
    [{ c2c_session_id: 5, opencode_pid: "x", tui_focus: { ty: "permission", details: null } }],
    [
      {
        opencode_pid: 1,
        extensions: { waiting: [7, null, { kind: "x" }, { kind: "question", options: 7 }], retry: [], place: 7 },
      },
    ],
  ])(promised("live-state.C2", "what an observer sees is made of whatever a statefile holds: %j"), (state) => {
    expect(() => JSON.stringify(view(state))).not.toThrow()
  })

  test(
    promised("live-state.C2", "what an observer sees has the permission's words, and the question's with its options"),
    () => {
      const pendingQuestion = { id: "q", header: "H", text: "Which one?", options: ["a", "b"] }
      const state = { ...permission("bash", "rm -rf build"), pendingQuestion }
      expect(view(state).waits).toEqual([
        { kind: "permission", id: "p", title: "bash", type: "bash", subject: "rm -rf build" },
        { kind: "question", id: "q", header: "H", text: "Which one?", options: ["a", "b"] },
      ])
      expect(view(state, false)).toMatchObject({ doing: { kind: "crashed" }, waits: [] })
    },
  )

  const LISTED = {
    kind: "permission",
    id: "p",
    title: "bash",
    type: "bash",
    subject: "rm -rf build",
    root_session_id: "ses_1",
  }
  const listed = (change: object, place: object | null = null) => ({
    opencode_pid: 42,
    extensions: { waiting: [{ ...LISTED, ...change }], place, status_since: "2026-01-01T00:00:00.000Z" },
  })

  test(
    promised("waiting.B1", "a subagent's request is shown as such, since when it was asked, with what to do"),
    () => {
      const state = listed({ subagent: "Look around", since: "2026-01-01T00:57:00.000Z" })
      expect(render([view(state)])).toContain(
        [
          "! my-project · opencode-project  asks permission, 3 min",
          "    bash: rm -rf build",
          "    subagent Look around",
          "    OpenCode, process 42; once it has ended: opencode --session ses_1",
          "",
        ].join("\n"),
      )
      expect(view(state).doing).toEqual({ kind: "permission", text: "bash: rm -rf build (subagent Look around)" })
      const other = view(listed({ root_session_id: "ses_2", root_title: "The other" }))
      expect(render([other])).toContain("\n    session The other\n")
    },
  )

  const PLACE = { directory: "/my project's", server_url: "http://127.0.0.1:4096/" }
  const ATTACH = "opencode attach http://127.0.0.1:4096 --dir '/my project'\\''s' --session"
  test.each([
    [PLACE, "ses_1", `${ATTACH} ses_1`],
    [PLACE, "ses_1; rm -rf x", `${ATTACH} 'ses_1; rm -rf x'`],
    [{ ...PLACE, server_url: "http://evil.example:80" }, "ses_1", "OpenCode, process 42 in /my project's; once it"],
    [{ ...PLACE, server_url: null }, "ses_1", "has ended: opencode --session ses_1"],
    [null, "ses_1", "OpenCode, process 42; once it has ended: opencode --session ses_1"],
  ])(promised("waiting.B2", "at %j the way to %j is %j"), (place, root_session_id, way) => {
    const [wait] = view(listed({ root_session_id, id: "p'/..", session_id: "ses_sub" }, place)).waits
    expect(wait?.goTo).toContain(way)
    const path = "/session/ses_sub/permissions/p'\\''%2F..?directory=%2Fmy%20project'\\''s"
    const answer = `curl 'http://127.0.0.1:4096${path}' -H 'content-type: application/json' -d '{"response":"once"}'`
    expect(wait?.answer).toBe(way.startsWith("opencode attach") ? answer : undefined)
  })

  test(promised("waiting.B1", "a provider that is asked again is told with its message and the next try"), () => {
    const retry = {
      message: "Too many",
      attempt: 2,
      next_at: "2026-01-01T01:00:09.000Z",
      since: "2026-01-01T00:59:00.000Z",
    }
    const extensions = { waiting: [], retry }
    expect(render([view({ extensions })])).toContain(
      "↻ opencode-project  asks its provider again, 1 min\n    Too many · attempt 2 failed · next try in 9 s\n",
    )
    expect(view({ extensions }, false).doing).toEqual({ kind: "crashed" })
  })

  test(promised("live-state.C1", "a request is shown in full, however narrow the terminal"), () => {
    const command = `npm run ${"x".repeat(70)} -- --all`
    const lines = render([view(permission("bash", command))], 40).split("\n")
    expect(lines.slice(2, 6)).toEqual([
      "    bash: npm run",
      `    ${"x".repeat(36)}`,
      `    ${"x".repeat(34)}`,
      "    -- --all",
    ])
  })

  test(
    promised("live-state.C1", "what an observer sees is cut to the terminal, and what an agent wrote cannot steer it"),
    () => {
      const news = { ...NEWS, title: "x".repeat(500) }
      const text = render([{ ...view(), name: "evil\u001b[2J\u0007\nname", news }], 40)
      expect(text).toContain("● evil name  busy")
      expect(text.includes("\u001b") || text.includes("\u0007")).toBe(false)
      for (const line of text.split("\n")) expect(Array.from(line).length).toBeLessThanOrEqual(40)
    },
  )

  test.each([
    ["2026-01-01T00:59:55.000Z", "5 s"],
    ["2026-01-01T00:01:00.000Z", "59 min"],
    ["2025-12-31T20:00:00.000Z", "5 h"],
    ["2026-01-01T02:00:00.000Z", "0 s"],
    ["nonsense", "?"],
  ])(promised("live-state.C1", "%s was %s ago"), (since, age) =>
    expect(render([{ ...view(), since }])).toContain(`  busy, ${age}\n`),
  )
})
