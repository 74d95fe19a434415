import { describe, expect, test } from "vitest"
import type { HistoryEvent } from "../../../.opencode/baton/live-state/observe/history.ts"
import type { PageAgent } from "../../../.opencode/baton/live-state/web/live.ts"
import {
  axisMinutes,
  drawTimeline,
  fittingSpan,
  summariseTimeline,
} from "../../../.opencode/baton/live-state/web/page/timeline.js"
import {
  countsText,
  duration,
  eventText,
  factTexts,
  searchText,
  statusText,
  titleText,
} from "../../../.opencode/baton/live-state/web/page/words.js"
import { answerTo, isOwnHost, SECURITY_HEADERS } from "../../../.opencode/baton/live-state/web/server.ts"
import { promised } from "../../requirements.ts"

const agent = (change: Partial<PageAgent> = {}): PageAgent => ({
  key: "k",
  project: "shop",
  name: "one",
  doing: { kind: "busy" },
  waits: [],
  pid: 1,
  turns: 0,
  compactions: 0,
  handoffs: 0,
  updatedAt: new Date(0).toISOString(),
  history: [],
  ...change,
})

describe("a request", () => {
  const PORT = 4711
  const ask = (change: { method?: string; url?: string; headers?: Record<string, string | undefined> }) =>
    answerTo(
      { method: "GET", url: "/", ...change, headers: { host: `127.0.0.1:${PORT}`, ...change.headers } },
      { port: PORT, token: "abc1" },
    )

  test.each("127.0.0.1 localhost LOCALHOST".split(" "))(
    promised("live-state.C2", "a request to %s is for this machine"),
    (name) => expect(isOwnHost(`${name}:4711`, PORT)).toBe(true),
  )

  const FOREIGN = `evil.example evil.example:4711 127.0.0.1 127.0.0.1:4712 127.0.0.1:4711.evil.example
    127.0.0.1.evil.example:4711 localhost.evil.example:4711 user@127.0.0.1:4711 [::1]:4711 0.0.0.0:4711`
  test.each([undefined, "", ...FOREIGN.split(/\s+/)])(
    promised("live-state.C2", "a request to %j is not answered"),
    (host) => {
      expect(ask({ headers: { host } })).toMatchObject({ kind: "refused", status: 421 })
    },
  )

  test.each("POST PUT DELETE HEAD OPTIONS PATCH TRACE get".split(" "))(
    promised("live-state.C2", "a request by %s is refused"),
    (method) => expect(ask({ method })).toMatchObject({ kind: "refused", status: 405 }),
  )

  const NOWHERE = `/../../etc/passwd /page/../../../statefile.ts /%2e%2e/server.ts //evil.example/ http://evil.example/
    /row.css/ /__proto__ /constructor /server.ts *`
  test.each([...NOWHERE.split(/\s+/), ""])(promised("live-state.C2", "a request for %j finds nothing"), (url) => {
    expect(ask({ url })).toMatchObject({ kind: "refused", status: 404 })
  })

  test(promised("live-state.C2", "a request of another site is refused, but for a link to the page"), () => {
    const from = (site: string, mode = "no-cors", dest = "script") =>
      ask({ headers: { "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest } }).kind
    const foreign = [from("cross-site"), from("same-site"), from("cross-site", "navigate", "iframe")]
    expect(new Set(foreign)).toEqual(new Set(["refused"]))
    const own = [from("same-origin"), from("none"), from("cross-site", "navigate", "document")]
    expect(new Set(own)).toEqual(new Set(["asset"]))
  })

  test(
    promised("live-state.C2", "a request is answered under a policy that lets nothing in from anywhere else"),
    () => {
      const policy = SECURITY_HEADERS["Content-Security-Policy"] ?? ""
      for (const part of ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"])
        expect(policy).toContain(part)
      expect(policy).not.toMatch(/unsafe|https?:|\*|data:/)
    },
  )
})

describe("the timeline", () => {
  const draw = (points: HistoryEvent[], frame = { from: 0, to: 100, width: 100 }) => drawTimeline(points, frame)
  const point = (at: number, kind: HistoryEvent["kind"]): HistoryEvent => ({ at, kind })

  test(promised("live-state.C2", "the timeline draws turns, waits, compactions and handoffs where they were"), () => {
    const moments = "0 idle,10 busy,30 permission,40 busy,50 compaction,60 question,70 idle,70 turn,80 handoff"
    const words = moments.split(",").map((moment) => moment.split(" "))
    const paths = draw(words.map(([at, kind]) => point(Number(at), kind as HistoryEvent["kind"])))
    expect(paths.busy).toBe("M10 11h20v11h-20zM40 11h20v11h-20z")
    expect(paths.permission).toBe("M30 8h10v17h-10z")
    expect(paths.question).toBe("M60 8h10v17h-10z")
    expect(paths.idle).toMatch(/^M0 16h10.*M70 16h30/)
    expect(paths.turn).toMatch(/^M69\.3 25/)
    expect(paths.compaction).toMatch(/^M50 /)
    expect(paths.handoff).toMatch(/^M76\.5 /)
  })

  test(
    promised("live-state.C2", "the timeline shows the shortest wait, and work in bits too short for a pixel"),
    () => {
      const long = { from: 0, to: 100_000, width: 100 }
      expect(draw([point(50_000, "permission"), point(50_010, "busy")], long).permission).toContain("h3v")
      expect(draw([point(10, "busy"), point(11, "idle")], long).busy).toContain("h0.6v")
    },
  )

  test(promised("live-state.C2", "the timeline draws only what is in its frame, and what reaches into it"), () => {
    const points = [point(0, "busy"), point(50, "compaction"), point(150, "idle")]
    const paths = draw(points, { from: 100, to: 200, width: 100 })
    expect(paths).toMatchObject({ busy: "M0 11h50v11h-50z", compaction: "" })
  })

  test(
    promised("live-state.C3", "the timeline is as long as its width lets it be, however many marks there are"),
    () => {
      const many = Array.from({ length: 5_000 }, (_, at) => point(at, "turn"))
      const { turn } = draw(many, { from: 0, to: 5_000, width: 100 })
      expect(turn.split("M").length - 1).toBeLessThanOrEqual(51)
    },
  )

  test(promised("live-state.C2", "the timeline is as long as what was seen, and says in words what it shows"), () => {
    expect([0, 60_000, 6 * 60_000, 9e9].map((ms) => fittingSpan(ms).minutes)).toEqual([2, 2, 15, 360])
    expect(axisMinutes({ minutes: 15, step: 5 })).toEqual([15, 10, 5, 0])
    const points = [point(0, "busy"), { ...point(1, "turn"), count: 3 }, point(2, "question")]
    expect(summariseTimeline(points, 0)).toBe("3 turns ended, 1 waits, 0 compactions, 0 handoffs")
  })
})

describe("the page's words", () => {
  test.each([
    [-5, "0 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [7_200_000, "2 h"],
    [47 * 3_600_000, "47 h"],
    [72 * 3_600_000, "3 d"],
  ])(promised("live-state.C2", "%d ms are %s"), (ms, words) => expect(duration(ms)).toBe(words))

  test(promised("live-state.C2", "the page's words say what an agent does and for how long, if that is known"), () => {
    const since = new Date(0).toISOString()
    expect(statusText(agent({ since }), 60_000)).toBe("busy · 1 min")
    expect(statusText(agent(), 60_000)).toBe("busy")
    for (const kind of ["gone", "crashed"] as const)
      expect(statusText(agent({ doing: { kind }, since }), 60_000)).toBe(`${kind}, last heard of 1 min ago`)
    const counted = agent({ turns: 1, compactions: 2, contextTokens: 1_234 })
    expect(factTexts(counted)).toEqual(["1 turn", "2 compactions", "1,234 tokens"])
    expect(eventText({ at: 0, kind: "permission", text: "bash" })).toBe("asks permission: bash")
    expect(titleText([agent({ doing: { kind: "question", text: "" } }), agent()])).toBe("(1) waiting · Baton")
    const asks = { kind: "permission", text: "bash: ls" } as const
    expect(countsText([agent(), agent({ doing: asks }), agent()])).toBe("1 waiting · 2 busy")
    expect(searchText(agent({ doing: asks, title: "CRLF" }))).toMatch(/crlf .* waiting bash: ls/)
    expect(searchText(agent({ task: { id: "ts-b54507", role: "worker" } }))).toContain("ts-b54507")
  })
})
