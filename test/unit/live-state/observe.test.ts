import { describe, expect, test } from "vitest"
import { type Paint, renderAge, renderObservation } from "../../../.opencode/baton/live-state/observe/terminal.ts"
import {
  type AgentView,
  renderHandoffHeading,
  renderState,
  toAgentView,
} from "../../../.opencode/baton/live-state/observe/view.ts"
import { promised } from "../../requirements.ts"

const same = (text: string): string => text
const PAINT: Paint = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same }
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
      last_step: { event_type: "session.idle", at: "2026-01-01T00:48:00.000Z", details: null },
      provider_id: "p",
      model_id: "m",
    },
    tui_focus: { ty: "prompt", details: null },
    pendingQuestion: null,
    extensions: { task: { id: "ts-b54507", role: "worker" }, compactions: 2, handoffs: 1, context_tokens: 12_345 },
    ...state,
  },
})
const NEWS = {
  title: "Teach the parser CRLF",
  status: "in_progress",
  log: ["one", "two", "three", "four"].map((message) => ({ message, createdAt: "" })),
  handoff: "after compaction 2: It went fine.",
  claim: "ada (session ses_1 on host in /project) since 2026-01-01 00:10 UTC",
}
const view = (state?: Record<string, unknown>, alive?: boolean): AgentView =>
  toAgentView("my-project", found(state, alive), NEWS)
const render = (views: AgentView[], width = 100): string => renderObservation(views, { now: NOW, width, paint: PAINT })

const HEADING = "Handoff after compaction 2 (session ses_1, summary msg_1, T)"

describe("what an observer sees", () => {
  test.each<[string, string | undefined]>([
    [`# ${HEADING}\n\n## Done\n- It`, "after compaction 2: Done"],
    [`# ${HEADING}`, HEADING],
    ["Next: the lexer\nand more", "Next: the lexer"],
    ["\n", undefined],
  ])(promised("live-state.C1", "has a handoff %j as %j"), (section, line) => {
    expect(renderHandoffHeading(section)).toBe(line)
  })

  test(
    promised("live-state.C1", "is who it is, what it does and for how long, its task, its counts and its last records"),
    () => {
      expect(render([view()])).toBe(
        [
          "my-project",
          "● opencode-project  busy, 12 min",
          "    ts-b54507 (worker) Teach the parser CRLF [in_progress]",
          "    ses_1 · p/m · 3 turns · 2 compactions · 1 handoff · 12,345 tokens",
          "    claimed by ada (session ses_1 on host in /project) since 2026-01-01 00:10 UTC",
          "    handoff: after compaction 2: It went fine.",
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
    [
      { tui_focus: { ty: "permission", details: { id: "p", title: "bash", type: "bash" } } },
      "! opencode-project  asks permission: bash",
    ],
    [
      { pendingQuestion: { id: "q", text: "Which one?", header: "", options: [] } },
      "? opencode-project  asks: Which one?",
    ],
    [{ agent: { is_idle: true } }, "○ opencode-project  idle"],
    [{ agent: { is_idle: null } }, "○ opencode-project  started"],
  ])(promised("live-state.C1", "%j shows as %j"), (state, line) => expect(render([view(state)])).toContain(line))

  test(promised("live-state.C1", "begins with who waits for a person, and ends with who is gone"), () => {
    const gone = { ...view({}, false), name: "gone-agent" }
    const waiting = { ...view({ tui_focus: { ty: "permission", details: { title: "bash" } } }), name: "waiting-agent" }
    const text = render([gone, view(), waiting])
    const places = ["waiting-agent", "opencode-project", "gone-agent"].map((name) => text.indexOf(name))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(text).toContain("· gone-agent  gone")
  })

  test(promised("live-state.C1", "is cut to the terminal, and what an agent wrote cannot steer it"), () => {
    const text = render(
      [{ ...view(), name: "evil\u001b[2J\u0007\nname", news: { ...NEWS, title: "x".repeat(500) } }],
      40,
    )
    expect(text).toContain("● evil name  busy")
    expect(text.includes("\u001b") || text.includes("\u0007")).toBe(false)
    for (const line of text.split("\n")) expect(Array.from(line).length).toBeLessThanOrEqual(40)
  })

  test.each([
    ["2026-01-01T00:59:55.000Z", "5 s"],
    ["2026-01-01T00:01:00.000Z", "59 min"],
    ["2025-12-31T20:00:00.000Z", "5 h"],
    ["2026-01-01T02:00:00.000Z", "0 s"],
    ["nonsense", "?"],
  ])(promised("live-state.C1", "%s was %s ago"), (since, age) => expect(renderAge(since, NOW)).toBe(age))

  test(promised("live-state.B3", "a listed agent is one line"), () => {
    expect(renderState(found())).toBe("alive  2026-01-01 00:59:00  opencode-project  ses_1  ts-b54507  busy")
    expect(renderState(found({ root_opencode_session_id: null }, false))).toBe(
      "gone   2026-01-01 00:59:00  opencode-project  no session  ts-b54507",
    )
  })
})
