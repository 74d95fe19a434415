import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { readWebPort } from "../../../.opencode/baton/live-state/observe/options.ts"
import {
  createAgentBoard,
  type HistoryPoint,
  MAX_POINTS,
  pointsBetween,
  type Sighting,
  toPageAgent,
} from "../../../.opencode/baton/live-state/web/board.ts"
import { nextTask } from "../../../.opencode/baton/live-state/web/watch.ts"
import { promised } from "../../requirements.ts"

const sighting = (at: number, change: Partial<Sighting> = {}): Sighting => ({
  at,
  doing: { kind: "busy" },
  identity: "1 one",
  turns: 0,
  compactions: 0,
  handoffs: 0,
  ...change,
})

describe("the history of an agent", () => {
  test(promised("live-state.C2", "begins with what the agent does, from when the state says it began"), () => {
    expect(pointsBetween(undefined, sighting(100))).toEqual([{ at: 100, kind: "busy" }])
    const idle = sighting(100, { doing: { kind: "idle" }, beganAt: 40 })
    expect(pointsBetween(undefined, idle)).toEqual([{ at: 40, kind: "idle" }])
  })

  test(promised("live-state.C2", "has each turn, wait, compaction and handoff"), () => {
    const busy = sighting(100)
    const waits = sighting(200, { doing: { kind: "permission", text: "bash" }, beganAt: 190, compactions: 1 })
    expect(pointsBetween(busy, waits, 100)).toEqual([
      { at: 190, kind: "permission", text: "bash" },
      { at: 200, kind: "compaction" },
    ])
    const over = sighting(300, { doing: { kind: "idle" }, beganAt: 290, turns: 3, compactions: 1, handoffs: 1 })
    expect(pointsBetween(waits, over, 200)).toEqual([
      { at: 290, kind: "idle" },
      { at: 300, kind: "handoff" },
      { at: 300, kind: "turn", count: 3 },
    ])
  })

  test(promised("live-state.C2", "has nothing for a look that shows nothing new"), () => {
    expect(pointsBetween(sighting(100), sighting(200))).toEqual([])
  })

  test(promised("live-state.C2", "tells another session or process from turns, and an end from idleness"), () => {
    const other = sighting(200, { identity: "2 two", turns: 7 })
    const began = ["session", "busy"].map((kind) => ({ at: 200, kind }))
    expect(pointsBetween(sighting(100), other)).toEqual(began)
    const gone = sighting(200, { doing: { kind: "gone" } })
    expect(pointsBetween(sighting(100), gone)).toEqual([{ at: 200, kind: "gone" }])
  })

  test(promised("live-state.C2", "never goes back, whatever the clocks say"), () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(50), fc.nat(50), fc.constantFrom("busy", "idle"), fc.nat(3))), (looks) => {
        let before: Sighting | undefined
        const all: HistoryPoint[] = []
        for (const [at, beganAt, kind, turns] of looks) {
          const next = sighting(at, { doing: { kind: kind as "busy" | "idle" }, beganAt, turns })
          all.push(...pointsBetween(before, next, all.at(-1)?.at))
          before = next
        }
        const times = all.map((point) => point.at)
        expect(times).toEqual(times.toSorted((a, b) => a - b))
      }),
    )
  })
})

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()
const found = (seconds: number, state: Record<string, unknown> = {}, alive = true) => ({
  file: "one.json",
  ts: at(seconds),
  alive,
  state: {
    c2c_session_id: "one",
    root_opencode_session_id: "ses_1",
    opencode_pid: 1,
    plugin_started_at: at(0),
    agent: { is_idle: false, turn_count: 0, last_step: null },
    ...state,
  },
})

describe("the board", () => {
  const see = (board: ReturnType<typeof createAgentBoard>, seconds: number, state?: Record<string, unknown>) =>
    board.see("a", "project", found(seconds, state), undefined, Date.parse(at(seconds)))
  const idleAt = (seconds: number, turns: number) => {
    const step = { event_type: "session.idle", at: at(seconds), details: null }
    return { agent: { is_idle: true, turn_count: turns, last_step: step } }
  }

  test(promised("live-state.C2", "gives a page that comes again what it missed and nothing else"), () => {
    const board = createAgentBoard()
    see(board, 1)
    const { sequence } = board.changesSince(undefined)
    expect(board.changesSince(sequence).agents).toEqual([])
    see(board, 2, idleAt(2, 1))
    const missed = { points: [{ kind: "turn" }, { kind: "idle" }], isWhole: false }
    expect(board.changesSince(sequence).agents).toMatchObject([missed])
    expect(board.changesSince(sequence + 1_000).agents[0]?.isWhole, "of another board").toBe(true)
  })

  test(promised("live-state.C2", "says that it does not know since when an agent is busy that was so before"), () => {
    const board = createAgentBoard()
    see(board, 5)
    expect(board.changesSince(undefined).agents[0]?.isSinceKnown).toBe(false)
    see(board, 6, idleAt(6, 1))
    see(board, 7)
    expect(board.changesSince(undefined).agents[0]).toMatchObject({ since: Date.parse(at(7)), isSinceKnown: true })
  })

  test(promised("live-state.C3", "is bounded, and a page that missed more than is kept gets all of it anew"), () => {
    const board = createAgentBoard()
    see(board, 1)
    const { sequence } = board.changesSince(undefined)
    for (let n = 2; n < MAX_POINTS * 2; n++) see(board, n, n % 2 === 0 ? idleAt(n, 0) : {})
    const [agent] = board.changesSince(sequence).agents
    expect(agent?.points).toHaveLength(MAX_POINTS)
    expect(agent?.isWhole).toBe(true)
  })

  test.each([
    [{ extensions: { heartbeat_at: at(2) } }, 2],
    [{}, 9],
  ])(
    promised("live-state.C2", "has the end of an agent where it was last heard of, or else noticed: %j"),
    (state, end) => {
      const board = createAgentBoard()
      see(board, 2, state)
      board.see("a", "project", found(2, state, false), undefined, Date.parse(at(9)))
      expect(board.changesSince(undefined).agents[0]?.points.at(-1)).toEqual({ at: Date.parse(at(end)), kind: "gone" })
    },
  )

  test(promised("live-state.C2", "forgets an agent whose file is gone, and tells every page"), () => {
    const board = createAgentBoard()
    see(board, 1)
    const { sequence } = board.changesSince(undefined)
    board.drop("a")
    expect(board.changesSince(sequence)).toMatchObject({ agents: [], keys: [] })
    expect(board.sequence()).toBeGreaterThan(sequence)
  })
})

describe("an agent on the page", () => {
  test(promised("live-state.C2", "waits with the permission's words, and the question's with its options"), () => {
    const state = {
      tui_focus: { ty: "permission", details: { id: "p", title: "rm -rf build", type: "bash" } },
      pendingQuestion: { id: "q", header: "H", text: "Which one?", options: ["a", "b"] },
    }
    expect(toPageAgent("k", "p", found(1, state), undefined).waits).toEqual([
      { kind: "permission", title: "rm -rf build", type: "bash" },
      { kind: "question", header: "H", text: "Which one?", options: ["a", "b"] },
    ])
    expect(toPageAgent("k", "p", found(1, state, false), undefined)).toMatchObject({ doing: "gone", waits: [] })
  })

  test(promised("live-state.C2", "brings the newest five log entries of its task, each within bounds"), () => {
    const log = Array.from({ length: 9 }, (_, n) => ({ message: `${n} ${"x".repeat(5_000)}`, createdAt: at(n) }))
    const { news } = toPageAgent("k", "p", found(1), { title: "T", status: "open", log, handoff: "H" })
    expect(news?.log.map(({ message }) => message.slice(0, 1))).toEqual(["4", "5", "6", "7", "8"])
    expect(news?.log.every(({ message }) => message.length <= 601)).toBe(true)
  })

  test.each([
    [{ state: "nonsense" }],
    [{ agent: 7, tui_focus: [], pendingQuestion: { options: {} }, extensions: "x" }],
    [{ c2c_session_id: 5, opencode_pid: "x", tui_focus: { ty: "permission", details: null } }],
  ])(promised("live-state.C2", "is made of whatever a statefile holds: %j"), (state) => {
    expect(() => JSON.stringify(toPageAgent("k", "p", found(1, state), undefined))).not.toThrow()
  })
})

test(
  promised("live-state.C3", "tasks are read once, and again only when the ledger has changed, the oldest first"),
  () => {
    const known = new Map([
      ["a", { news: undefined, version: "1", readAt: 2 }],
      ["b", { news: undefined, version: "1", readAt: 1 }],
    ])
    expect(nextTask(["a", "b", "c"], known, "1")).toBe("c")
    expect(nextTask(["a", "b"], known, "1")).toBeUndefined()
    expect(nextTask(["a", "b"], known, "2")).toBe("b")
  },
)

describe("the command line", () => {
  test.each([
    [{ web: true, json: false, port: "0" }, "expected --port between 1 and 65535, received '0'"],
    [{ web: true, json: false, port: "65536" }, "received '65536'"],
    [{ web: true, json: false, port: "80x" }, "received '80x'"],
    [{ web: false, json: false, port: "80" }, "together with --web"],
    [{ web: true, json: true }, "expected --web or --json"],
  ])(promised("live-state.C2", "refuses %j"), (options, said) => expect(() => readWebPort(options)).toThrow(said))
})
