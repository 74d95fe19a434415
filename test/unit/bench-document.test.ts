import { describe, expect, test } from "vitest"
import { parseArguments } from "../../scripts/benchmarks/arguments.ts"
import { renderDocument } from "../../scripts/benchmarks/document.ts"
import { judgeDraft } from "../../scripts/benchmarks/draft-fate.ts"
import {
  BENCHMARKS,
  type DraftRow,
  keepsEverything,
  losesNoDraft,
  type Measurement,
  type Results,
  type RetentionRow,
  toFigure,
} from "../../scripts/benchmarks/results.ts"
import { formatAddition, formatNumber } from "../../scripts/benchmarks/table.ts"
import { additionTable, draftTable, figureTable, retentionTable } from "../../scripts/benchmarks/tables.ts"

const machine = { cpu: "A processor", cores: 2, memoryGiB: 8, system: "Linux 6 x64" }

const measurement = (values: readonly number[]): Measurement => ({
  requirement: "speed.G1",
  takenAt: "2026-01-02T03:04:05.000Z",
  machine,
  load: { before: 0.3, after: 1.2 },
  figures: [toFigure({ id: "load.run", what: "import and init", version: "1.2.15", unit: "ms", below: 10 }, values)],
})

const results = (values: readonly number[]): Results => ({ version: 1, measurements: { load: measurement(values) } })

const PAGE = "# Title\n\nProse.\n\n<!-- bench:load -->\nold\n<!-- /bench:load -->\n\nMore prose.\n"

const row: RetentionRow = {
  version: "1.2.15",
  bundle: "baton",
  summariser: "faithful",
  compactions: 5,
  compacted: 5,
  factsKept: 5,
  facts: 5,
  turnsKnowingTask: 5,
  turns: 5,
  exitCode: 0,
}

describe("renderDocument", () => {
  test("replaces what stands between the marks and leaves the rest", () => {
    const page = renderDocument(PAGE, results([3, 4, 5]))
    expect(page).toMatch(/^# Title\n\nProse\.\n\n<!-- bench:load -->/)
    expect(page).toMatch(/<!-- \/bench:load -->\n\nMore prose\.\n$/)
    expect(page).not.toContain("old")
    expect(page).toContain("| import and init | 1.2.15 | **4 ms** |")
    expect(page).toContain("Taken 2026-01-02 on A processor, 2 cores, 8 GiB, Linux 6 x64")
  })

  test("gives the same page when it runs again, and another for other figures", () => {
    const page = renderDocument(PAGE, results([3, 4, 5]))
    expect(renderDocument(page, results([3, 4, 5]))).toBe(page)
    expect(renderDocument(page, results([3, 9, 9]))).not.toBe(page)
  })

  test("refuses a page that has no place for a measurement", () => {
    expect(() => renderDocument("# Title\n", results([1]))).toThrow("no place for load")
  })
})

describe("tables", () => {
  test("say which promise was missed", () => {
    expect(figureTable(measurement([4]).figures)).toContain("| < 10 ms |")
    expect(figureTable(measurement([10]).figures)).toContain("| < 10 ms, **missed** |")
  })

  test.each([
    [0.017_37, "0.0174"],
    [2.151, "2.15"],
    [36.4, "36.4"],
    [12_345.6, "12,346"],
  ])("write %d as %s", (value, text) => {
    expect(formatNumber(value)).toBe(text)
  })

  test.each([
    [2293, "+2,293 (573)"],
    [-8, "−8 (2)"],
  ])("write %d characters more as %s", (characters, text) => {
    expect(formatAddition(characters)).toBe(text)
  })

  test("say what each feature adds to a request, and 0 where it is the same", () => {
    const line = additionTable([
      { version: "1.2.15", request: "task-after", plain: 12_345, added: { compaction: 2293, bundle: 2300 } },
    ])
    expect(line).toContain("| Compaction | Handoff | Live state | Learning | Pass over | Whole bundle |")
    expect(line).toContain(
      "right after a compaction | 1.2.15 | 12,345 | **+2,293 (573)** | 0 | 0 | 0 | 0 | **+2,300 (575)** |",
    )
  })

  test("set plain OpenCode beside Baton", () => {
    const plain: RetentionRow = { ...row, bundle: "plain", factsKept: 1, turnsKnowingTask: 0 }
    expect(retentionTable([plain, row])).toContain("| faithful | 1.2.15 | 5 | 1/5 | 0/5 | **5/5** | **5/5** |")
  })
})

const drafts: DraftRow = {
  version: "1.18.33",
  busyLoops: 2,
  handoffs: 20,
  arrived: 20,
  lost: 0,
  doubled: 0,
  misplaced: 0,
}

describe("the drafts of a TUI", () => {
  test("are shown with what became of them, and with a promise that was missed", () => {
    const missed = { ...drafts, busyLoops: 0, arrived: 18, lost: 1, misplaced: 1 }
    expect(draftTable([drafts, missed]).split("\n").slice(2)).toEqual([
      "| 2 busy loops | 1.18.33 | **20/20** | 0 | 0 | 0 | all |",
      "| nothing | 1.18.33 | 18/20 | 1 | 0 | 1 | all, **missed** |",
    ])
  })

  test("have all to arrive, once and in place", () => {
    expect(losesNoDraft(drafts)).toBe(true)
    expect(losesNoDraft({ ...drafts, arrived: 19 })).toBe(false)
    expect(losesNoDraft({ ...drafts, arrived: 19, doubled: 1 })).toBe(false)
  })

  const sent = { typed: "TYPED-3 ", draft: "Marker.\n\nFinish DRAFT-3.\n", mark: "DRAFT-3." }
  test.each<[string, string | undefined, string]>([
    ["whole and behind what was typed", "[user] TYPED-3 Marker.\n\nFinish DRAFT-3.", "arrived"],
    [
      "with what the program adds behind it",
      "[user] TYPED-3 Marker.\n\nFinish DRAFT-3.\nCalled the Read tool",
      "arrived",
    ],
    ["not at all, since nothing was sent", undefined, "lost"],
    ["not with what was typed", "[user] TYPED-3 ", "lost"],
    ["twice", "[user] TYPED-3 Marker.\n\nFinish DRAFT-3.\nMarker.\n\nFinish DRAFT-3.", "doubled"],
    ["before what was typed", "[user] Marker.\n\nFinish DRAFT-3.TYPED-3 ", "misplaced"],
    ["cut", "[user] TYPED-3 Finish DRAFT-3.", "misplaced"],
    ["in the old session", "[user] Go on.\n\n[user] TYPED-3 Marker.\n\nFinish DRAFT-3.", "misplaced"],
  ])("a draft that comes %s is judged by what the model received", (_how, conversation, fate) => {
    expect(judgeDraft(conversation, sent)).toBe(fate)
  })
})

describe("keepsEverything", () => {
  test("asks for the task after every compaction, and for the facts where the summariser keeps them", () => {
    expect(keepsEverything(row)).toBe(true)
    expect(keepsEverything({ ...row, summariser: "careless", factsKept: 0 })).toBe(true)
  })

  test.each<[string, Partial<RetentionRow>]>([
    ["a fact is lost", { factsKept: 4 }],
    ["a turn does not name the task", { turnsKnowingTask: 4 }],
    ["fewer compactions happened", { compacted: 4 }],
    ["turns are missing", { turns: 4, turnsKnowingTask: 4 }],
    ["the run failed", { exitCode: 1 }],
  ])("is false when %s", (_what, change) => {
    expect(keepsEverything({ ...row, ...change })).toBe(false)
  })
})

describe("parseArguments", () => {
  test("takes all benchmarks when none is named", () => {
    expect(parseArguments([])).toEqual({ kind: "run", names: BENCHMARKS, quick: false })
  })

  test("takes the named ones in the usual order, and --quick anywhere", () => {
    expect(parseArguments(["--quick", "ledger", "load"])).toEqual({
      kind: "run",
      names: ["load", "ledger"],
      quick: true,
    })
  })

  test("names an argument it does not know", () => {
    expect(parseArguments(["speed"])).toMatchObject({ kind: "wrong", reason: expect.stringContaining("speed") })
    expect(parseArguments(["--help", "speed"])).toEqual({ kind: "help" })
  })
})
