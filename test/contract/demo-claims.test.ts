import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type Evidence, hasFailed, judge } from "../../scripts/demonstration/claims.ts"
import { knowledgeIn, turnsAfterCompactions } from "../../scripts/demonstration/knowledge.ts"
import { recordedCompactions } from "../../scripts/demonstration/ledger-view.ts"
import { CONSTRAINT, TASK, workerMessage } from "../../scripts/demonstration/slug-project.ts"
import { findTraces } from "../../scripts/demonstration/traces.ts"
import { promised } from "../requirements.ts"

const ALL_KNOWN = { task: true, role: true, definitionOfDone: true, constraint: true }

const record = (number: number) => ({ number, at: "2026-01-02T03:04:05Z", line: "A step." })

const GOOD: Evidence = {
  exitCode: 0,
  compactions: 5,
  recorded: [1, 2, 3, 4, 5].map(record),
  specification: { ordered: "Do it.", inLedger: "Do it." },
  knowledge: Array.from({ length: 5 }, () => ALL_KNOWN),
  test: { passes: true, summary: "5 of 5" },
  isFrozenFileUntouched: true,
  status: "done",
  traces: [],
  root: "/tmp/baton-demo-x",
}

const failing = (evidence: Evidence): string[] =>
  judge(evidence, true)
    .filter(({ holds }) => !holds)
    .map(({ text }) => text)

describe("the demo's claims", () => {
  test(promised("install.E3", "all hold for a run in which all is well"), () => {
    const claims = judge(GOOD, true)
    expect(failing(GOOD)).toEqual([])
    expect(claims.every(({ weight }) => weight === "asserted")).toBe(true)
    expect(hasFailed(claims)).toBe(false)
  })

  test.each<[string, Partial<Evidence>, RegExp]>([
    ["OpenCode fails", { exitCode: 1 }, /^OpenCode went through/],
    ["OpenCode is ended by a signal", { exitCode: null }, /^OpenCode went through/],
    ["a compaction is not recorded", { recorded: GOOD.recorded.slice(1) }, /exactly once \(4 of 5\)/],
    ["a compaction is recorded twice", { recorded: [1, 2, 2, 3, 4].map(record) }, /exactly once/],
    ["a sixth is recorded", { recorded: [...GOOD.recorded, record(6)] }, /exactly once \(6 of 5\)/],
    ["a byte is added", { specification: { ordered: "Do it.", inLedger: "Do it.\n" } }, /as it was ordered/],
    [
      "one turn does not know the constraint",
      { knowledge: [...(GOOD.knowledge ?? []).slice(1), { ...ALL_KNOWN, constraint: false }] },
      /definition of done and constraint \(4 of 5\)/,
    ],
    ["no turn follows the last one", { knowledge: (GOOD.knowledge ?? []).slice(1) }, /constraint \(4 of 5\)/],
    ["the test fails", { test: { passes: false, summary: "4 of 5" } }, /test passes \(4 of 5\)/],
    ["the task stays open", { status: "in_progress" }, /status: in_progress/],
    ["the frozen file is changed", { isFrozenFileUntouched: false }, /constraint was obeyed/],
    ["a file appears elsewhere", { traces: ["/home/me/.prog/prog.db"] }, /but \/home\/me\/\.prog\/prog\.db/],
  ])(promised("install.E3", "when %s, one claim fails and the demo with it"), (_name, change, text) => {
    const evidence = { ...GOOD, ...change }
    expect(failing(evidence)).toEqual([expect.stringMatching(text)])
    expect(hasFailed(judge(evidence, true))).toBe(true)
  })

  test(promised("install.E3", "fewer compactions than promised fail, however well they are recorded"), () => {
    const four = { ...GOOD, compactions: 4, recorded: GOOD.recorded.slice(0, 4) }
    expect(failing({ ...four, knowledge: (GOOD.knowledge ?? []).slice(0, 4) })).toEqual([
      "OpenCode went through 5 compactions and ended well (4 seen, exit code 0)",
    ])
  })

  test(promised("install.E3", "of a user's own model only what Baton itself promises is asserted"), () => {
    const { knowledge: _unseen, traces: _own, ...seen } = GOOD
    const own = { ...seen, test: { passes: false, summary: "0 of 5" }, status: "open", isFrozenFileUntouched: false }
    expect(hasFailed(judge(own, false))).toBe(false)
    expect(hasFailed(judge({ ...own, compactions: 0, recorded: [] }, false))).toBe(false)
    expect(hasFailed(judge({ ...own, recorded: [] }, false))).toBe(true)
    expect(hasFailed(judge({ ...own, exitCode: 1 }, false))).toBe(true)
  })
})

describe("what the claims are judged by", () => {
  test(promised("install.E3", "a turn's knowledge is read from the first request after each compaction"), () => {
    const conversation = `${workerMessage("ts-1a2b3c")}${TASK.definitionOfDone}`
    expect(knowledgeIn(conversation, "ts-1a2b3c")).toEqual(ALL_KNOWN)
    expect(knowledgeIn("Some work was done.", "ts-1a2b3c")).toEqual({
      task: false,
      role: false,
      definitionOfDone: false,
      constraint: false,
    })
    const requests = [
      { kind: "turn", conversation },
      { kind: "compaction", conversation },
      { kind: "turn", conversation: `Task: ts-1a2b3c, ${CONSTRAINT}` },
      { kind: "turn", conversation },
      { kind: "compaction", conversation },
    ] as const
    expect(turnsAfterCompactions(requests, "ts-1a2b3c")).toEqual([
      { task: true, role: false, definitionOfDone: false, constraint: true },
    ])
  })

  test(promised("install.E3", "records are read from the log, other lines left aside"), () => {
    const logs = ["State: orient", "Compaction 1: Half\nof it", "compaction 2: no", "Compaction 2: All"]
    const task = { id: "ts-1a2b3c", status: "open", description: "" }
    expect(
      recordedCompactions({ ...task, logs: logs.map((message) => ({ message, created_at: "2026-01-02T03:04:05Z" })) }),
    ).toEqual([
      { number: 1, at: "2026-01-02T03:04:05Z", line: "Half\nof it" },
      { number: 2, at: "2026-01-02T03:04:05Z", line: "All" },
    ])
  })

  test(promised("install.E3", "a file outside that names the demo's folder is found, whatever its format"), () => {
    const place = mkdtempSync(join(tmpdir(), "baton-traces-"))
    try {
      const root = join(place, "baton-demo-x")
      const write = (path: string, content: string): string => {
        mkdirSync(join(place, path, ".."), { recursive: true })
        writeFileSync(join(place, path), content)
        return join(place, path)
      }
      write("baton-demo-x/project/inside.txt", root)
      write("other.txt", "nothing to do with it")
      utimesSync(write("old.txt", root), 1_000, 1_000)
      const deep = write("share/store.db", `\0\u0001${root}\0`)
      const since = 2_000_000
      expect(findTraces([{ path: place, isDeep: true }], root, since)).toEqual([deep])
      expect(findTraces([{ path: place, isDeep: false }], root, since)).toEqual([])
      expect(findTraces([{ path: join(place, "missing"), isDeep: true }], root, since)).toEqual([])
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })
})
