import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { CATALOGUE } from "../../storm/catalogue.ts"
import { judge, type Observation } from "../../storm/oracle.ts"
import { drawPlan } from "../../storm/plan.ts"
import { findForeignAccesses } from "../../storm/trace.ts"
import type { RunResult } from "../../support/opencode/opencode-run.ts"

const seeds = Array.from({ length: 200 }, (_, index) => index + 1)
const plans = seeds.map((seed) => drawPlan(seed, CATALOGUE))

test(promised(["storm.B1", "v2.C3"], "a plan is decided by its seed; 200 draw each fault, up to four at once"), () => {
  expect(seeds.map((seed) => drawPlan(seed, CATALOGUE))).toEqual(plans)
  expect(new Set(plans.map((plan) => JSON.stringify({ ...plan, seed: 0 }))).size).toBe(plans.length)
  const drawn = new Set(plans.flatMap(({ faults }) => faults.map(({ name }) => name)))
  expect([...drawn].toSorted()).toEqual(CATALOGUE.map(({ name }) => name).toSorted())
  expect(new Set(plans.map(({ faults }) => faults.length))).toEqual(new Set([1, 2, 3, 4]))
  expect(new Set(plans.map(({ end }) => end))).toEqual(new Set(["oldest", "newest", "two"]))
  const two = plans.filter(({ end }) => end === "two")
  expect(two.flatMap(({ turns }) => turns.flatMap(({ kind, steps }) => [kind, ...steps])).toSorted()).not.toContain(
    "handoff",
  )
})

const SPECIFICATION = "Lines may end in CRLF."
const SUMMARY = "Summary 1 of storm 7."
const CORRECTION = "No, use tabs instead of spaces in the formatter."

const ended: RunResult = { exitCode: 0, signal: null, stdout: "Finished.\n", stderr: "", durationMs: 3_000 }
const turn = { kind: "task", steps: ["write", "compact"] } as const
const seenTurn = { turn, ending: ended, reference: ended, wasKilled: false }
const ledger = {
  logs: [`Compaction 1: ${SUMMARY}`],
  description: `${SPECIFICATION}\n\n# Handoff after compaction 1 (session ses_1, summary msg_1, 2026-01-01T00:00:00.000Z)\n`,
  learnings: [CORRECTION],
}
const [beside, project] = [{ sibling: "there", "sibling/secret.txt": "file 1" }, { "README.md": "file 2" }]
const surroundings = { beside, project }
const file = { path: "work/1.txt", found: "work 1\n", allowed: ["work 1\n"] }
const compaction = { what: "the compaction", begins: "Compaction ", holds: SUMMARY, isCertain: true }

/** A run without violations. */
const good: Observation = {
  turns: [seenTurn],
  clean: [ended],
  hangLimitMs: 150_000,
  owedLogs: [compaction],
  owedLearning: CORRECTION,
  ledger,
  claims: "No claims",
  specification: SPECIFICATION,
  waiting: [],
  parked: { found: 0, expected: 0 },
  mayLose: false,
  files: [file],
  surroundings: {
    before: surroundings,
    after: { beside, project: { ...project, work: "folder 755", "work/1.txt": "file 3" } },
  },
  passes: [{ id: "pass_1", state: "returned", hasCopy: false, isAudited: true }],
  found: { outside: [], leak: [], secret: [], left: [], half: [] },
  complaints: [],
}

const turnWith = (ending: Partial<RunResult>): Partial<Observation> => ({
  turns: [{ ...seenTurn, ending: { ...ended, ...ending } }],
})
const after = (change: Partial<Observation["surroundings"]["after"]>): Partial<Observation> => ({
  surroundings: { before: surroundings, after: { ...good.surroundings.after, ...change } },
})
const ledgerWith = (change: Partial<Observation["ledger"]>) => ({ ledger: { ...ledger, ...change } })

const WRONG: readonly (readonly [string, Partial<Observation>, RegExp])[] = [
  ["a crash", turnWith({ exitCode: 1, stderr: "Unexpected server error" }), /^crash: run 1 \(task\) ended with exit 1/],
  ["a hang", turnWith({ exitCode: null, signal: "SIGKILL", durationMs: 150_010 }), /^hang: run 1/],
  ["a lost record", ledgerWith({ logs: ledger.logs.slice(1) }), /^lost: the compaction/],
  ["a doubled record", ledgerWith({ logs: [...ledger.logs, `Compaction 2: ${SUMMARY}`] }), /^doubled: the compaction/],
  ["a record that waits for ever", { waiting: ["1-a.json"] }, /^waiting: 1 record/],
  ["a claim that stays", { claims: "ts-000001 ada" }, /^claimed: .*outlives its holder: ts-000001 ada$/],
  ["a changed file of the agent's", { files: [{ ...file, found: "x" }] }, /^changed: work\/1/],
  ["a write outside", after({ beside: { ...surroundings.beside, "sibling/a": "file 6" } }), /^outside: sibling\/a/],
  ["a process that stays", { found: { ...good.found, left: ["the process 77"] } }, /^left: the process 77$/],
]

describe("the oracle", () => {
  test(promised("storm.B3", "the oracle has nothing against a run in which all is well"), () =>
    expect(judge(good)).toEqual([]),
  )

  test.each(WRONG)(promised("storm.B3", "the oracle notices %s, and nothing else"), (_what, change, expected) => {
    const violations = judge({ ...good, ...change })
    expect(violations).toHaveLength(1)
    expect(violations[0]).toMatch(expected)
  })
})

test.each([
  ['openat(AT_FDCWD</srv/storm/project>, "../sibling/a", O_RDONLY) = 5', "openat /srv/storm/sibling/a"],
  ['openat(AT_FDCWD</srv/storm/project>, "link-out/a", O_RDONLY) = 5</srv/storm/b>', "openat /srv/storm/b"],
  ['newfstatat(7</srv/storm/outside>, "a", {st_mode=S_IFREG}, 0) = 0', "newfstatat /srv/storm/outside/a"],
])(promised("storm.B3", "%s is an access outside"), (line, access) => {
  const folders = { directory: "/srv/storm/project", home: "/srv/storm/home" }
  expect(findForeignAccesses([line, line], folders)).toEqual([access])
})
