import { describe, expect, test } from "vitest"
import { peerCostPlot, peerRetentionPlot } from "../../scripts/benchmarks/peer-plots.ts"
import { attempt, type Failures, measureRounds, reasonOf } from "../../scripts/benchmarks/peer-rounds.ts"
import { peerCostTable, peerRetentionTable, peerTable, sayPeers } from "../../scripts/benchmarks/peer-tables.ts"
import { type Figure, type PeerResults, type PeerRetentionRow, toFigure } from "../../scripts/benchmarks/results.ts"
import type { SubjectName } from "../../scripts/benchmarks/subjects.ts"
import { promised } from "../requirements.ts"

const version = "1.18.33"
const DCP = "@tarquinen/opencode-dcp"

const start = (subject: SubjectName, values: readonly number[]): Figure =>
  toFigure({ id: `peers.start.${subject}`, what: "start", version, unit: subject === "plain" ? "ms" : "×" }, values)

const around = (value: number): number[] => Array.from({ length: 8 }, (_, index) => value + (index - 3.5) / 1000)

const row = (subject: SubjectName, more: Partial<PeerRetentionRow> = {}): PeerRetentionRow => ({
  version,
  subject,
  summariser: "careless",
  compactions: 20,
  compacted: 20,
  factsKept: 0,
  turnsKnowingTask: 0,
  turns: 20,
  toldToGoOn: 0,
  ...more,
})

const PEERS: PeerResults = {
  subjects: [
    { version, subject: "oh-my-opencode", release: "4.19.4", failure: "OpenCode cannot load it: a | b" },
    { version, subject: "opencode-beads", release: "0.3.2", lacks: "its program bd" },
    { version, subject: DCP, release: "3.1.14" },
  ],
  retention: [
    row("plain"),
    row("baton", { turnsKnowingTask: 20 }),
    row("opencode-beads"),
    row(DCP, { toldToGoOn: 3, turnsKnowingTask: 1 }),
  ],
}

const FIGURES = [
  start("plain", [4000, 4100]),
  start("baton", around(1.05)),
  start("opencode-beads", around(1.01)),
  start(DCP, around(1.2)),
]

describe("what is said of peers", () => {
  const said = sayPeers(FIGURES, PEERS)

  test(promised("peers.C1", "names each peer that is better than Baton, with both figures and what it lacked"), () => {
    expect(said).toContain(
      "**On 1.18.33 a peer is better than Baton in:** the start of a run of one turn " +
        "(opencode-beads without its program bd 1.01×; Baton 1.05×).",
    )
  })

  test(promised("peers.C1", "says where Baton is better than all of them"), () => {
    expect(said).toMatch(/Baton is better than every peer in: turns that name the task .*\(20 of 20\)\./)
  })

  test(promised("peers.C1", "calls a difference the spread where the intervals overlap"), () => {
    const close = FIGURES.map((each) => (each.id.endsWith("beads") ? start("opencode-beads", around(1.048)) : each))
    expect(sayPeers(close, PEERS)).toContain("1.05×, within the spread; Baton 1.05×")
  })

  test(promised("peers.C1", "says so where no peer is better, and where none was measured"), () => {
    const best = FIGURES.map((each) => (each.id.endsWith("baton") ? start("baton", around(0.9)) : each))
    expect(sayPeers(best, PEERS)).toContain("a peer is better than Baton in:** no peer is better")
    const none = { ...PEERS, retention: PEERS.retention.slice(0, 2) }
    expect(sayPeers(FIGURES, none)).toBe("On 1.18.33 no peer could be measured.")
  })
})

describe("tables of peers", () => {
  test("say what was not measured and why", () => {
    const table = peerTable(PEERS)
    expect(table).toContain("| oh-my-opencode | 4.19.4 | not measured: OpenCode cannot load it: a \\| b |")
    expect(table).toContain("| opencode-beads | 0.3.2 | measured without its program bd, which it needs |")
  })

  test("show what is kept, and how often a session had to be told to go on", () => {
    expect(peerRetentionTable(PEERS)).toContain(
      "| careless | 1.18.33 | 20 | 0/20, 0/20 | 0/20, 20/20 | 0/20, 0/20 | 0/20, 1/20, told to go on 3× |",
    )
  })

  test("show costs with their intervals, and nothing for a peer without figures", () => {
    const line = peerCostTable(FIGURES, PEERS).split("\n").at(-1)
    expect(line).toMatch(
      /^\| the start of a run of one turn \| 1\.18\.33 \| 4,050 ms \| \*\*1\.05×\*\* \(1\.05 … 1\.05\) \| {2}\|/,
    )
  })
})

test("pictures of peers have a name for every plugin, and a line at plain OpenCode", () => {
  const [costs, kept] = [peerCostPlot(FIGURES, PEERS), peerRetentionPlot(PEERS)]
  for (const name of ["Baton", "opencode-beads", "opencode-dcp"])
    for (const svg of [costs, kept]) expect(svg).toContain(`>${name}</text>`)
  expect(costs).toContain(">plain OpenCode</text>")
  expect(costs).toContain(">1.2×</text>")
})

describe("a peer that fails", () => {
  const fail = () => Promise.reject(new Error("cannot read /a/b/c.js\nat all"))

  test(promised("peers.C1", "is noted without the folders of the run, and left out from there on"), async () => {
    const failures: Failures = new Map()
    expect(await attempt("opencode-beads", failures, fail)).toBeUndefined()
    expect(failures.get("opencode-beads")).toBe("cannot read c.js at all")
    expect(await attempt("opencode-beads", failures, async () => 1)).toBeUndefined()
  })

  test(promised("peers.C1", "ends the measurement where it is Baton or plain OpenCode"), async () => {
    await expect(attempt("baton", new Map(), fail)).rejects.toThrow("cannot read")
  })

  test(promised("peers.C1", "has no values, and the others have one a round"), async () => {
    const failures: Failures = new Map()
    let turn = 0
    const values = await measureRounds(
      { names: ["plain", "opencode-beads"], rounds: 3, atOnce: 1 },
      failures,
      async (name) => {
        turn++
        if (name === "opencode-beads" && turn > 3) throw new Error("too late")
        return turn
      },
    )
    expect([...values]).toEqual([["plain", [1, 3, 5]]])
  })

  test("is told by its text where it is no error", () => {
    expect(reasonOf("plainly")).toBe("plainly")
  })
})
