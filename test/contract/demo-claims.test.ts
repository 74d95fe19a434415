import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { type Evidence, hasFailed, judge } from "../../scripts/demonstration/claims.ts"
import { firstRequests, knowledgeIn } from "../../scripts/demonstration/knowledge.ts"
import { recordedCompactions } from "../../scripts/demonstration/ledger-view.ts"
import { CONSTRAINT, pastedMessage, workerMessage } from "../../scripts/demonstration/slug-project.ts"
import { untoldIn } from "../../scripts/demonstration/standing.ts"
import { findTraces } from "../../scripts/demonstration/traces.ts"
import { promised } from "../requirements.ts"

const ALL_KNOWN = { task: true, role: true, specification: true, definitionOfDone: true, constraint: true }

const record = (number: number) => ({ number, at: "2026-01-02T03:04:05Z", line: "A step." })

const GOOD: Evidence = {
  exitCode: 0,
  compactions: 4,
  recorded: [1, 2, 3, 4].map(record),
  specification: { ordered: "Do it.", inLedger: "Do it." },
  knowledge: Array.from({ length: 6 }, () => ALL_KNOWN),
  untold: [],
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
    ["a compaction is not recorded", { recorded: GOOD.recorded.slice(1) }, /exactly once \(3 of 4\)/],
    ["a compaction is recorded twice", { recorded: [1, 2, 2, 3].map(record) }, /exactly once/],
    ["a fifth is recorded", { recorded: [...GOOD.recorded, record(5)] }, /exactly once \(5 of 4\)/],
    ["a byte is added", { specification: { ordered: "Do it.", inLedger: "Do it.\n" } }, /as it was ordered/],
    [
      "one turn does not know the constraint",
      { knowledge: [...(GOOD.knowledge ?? []).slice(1), { ...ALL_KNOWN, constraint: false }] },
      /definition of done and constraint \(5 of 6\)/,
    ],
    ["no turn follows the last one", { knowledge: (GOOD.knowledge ?? []).slice(1) }, /constraint \(5 of 6\)/],
    [
      "the new session is not told of the handoff",
      { untold: ["last handoff"] },
      /log and git, but not the last handoff$/,
    ],
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
    const three = { ...GOOD, compactions: 3, recorded: GOOD.recorded.slice(0, 3) }
    expect(failing({ ...three, knowledge: (GOOD.knowledge ?? []).slice(0, 5) })).toEqual([
      "OpenCode went through 4 compactions and ended well (3 seen, exit code 0)",
    ])
  })

  test(promised("start.A6", "a run without the crash fails, however well it ends"), () => {
    const { untold: _none, ...unbroken } = GOOD
    expect(failing({ ...unbroken, knowledge: (GOOD.knowledge ?? []).slice(0, 5) })).toEqual([
      expect.stringMatching(/^After kill -9 .*\(it never came to that\)$/),
    ])
  })

  test(promised("install.E3", "of a user's own model only what Baton itself promises is asserted"), () => {
    const { knowledge: _unseen, untold: _none, traces: _own, ...seen } = GOOD
    const own = { ...seen, test: { passes: false, summary: "0 of 5" }, status: "open", isFrozenFileUntouched: false }
    expect(hasFailed(judge(own, false))).toBe(false)
    expect(hasFailed(judge({ ...own, compactions: 0, recorded: [] }, false))).toBe(false)
    expect(hasFailed(judge({ ...own, recorded: [] }, false))).toBe(true)
    expect(hasFailed(judge({ ...own, exitCode: 1 }, false))).toBe(true)
  })
})

describe("what the claims are judged by", () => {
  test(promised("install.E3", "what a request tells is read from it alone"), () => {
    expect(knowledgeIn(pastedMessage("ts-1a2b3c"), "ts-1a2b3c")).toEqual(ALL_KNOWN)
    expect(knowledgeIn(workerMessage("ts-1a2b3c"), "ts-1a2b3c")).toEqual({
      task: true,
      role: false,
      specification: false,
      definitionOfDone: false,
      constraint: true,
    })
  })

  test(
    promised(["install.E3", "start.A6"], "a session's first request counts, and the first after a compaction"),
    () => {
      const [user, assistant] = [
        { role: "user", content: "" },
        { role: "assistant", content: "" },
      ] as const
      const request = (kind: "turn" | "compaction" | "title", conversation: string, messages = [user, assistant]) => ({
        kind,
        conversation,
        messages,
      })
      const requests = [
        request("turn", "the first", [user]),
        request("turn", "a second"),
        request("compaction", "a summary", [user]),
        request("title", "a title", [user]),
        request("turn", "after it"),
        request("turn", "a third"),
        request("compaction", "an empty summary", [user]),
        request("turn", "after that", [user, user]),
        request("turn", "a new session", [user]),
        request("compaction", "nothing follows"),
      ]
      expect(firstRequests(requests, "ts-1a2b3c").map(({ after, conversation }) => [after, conversation])).toEqual([
        ["nothing", "the first"],
        ["compaction", "after it"],
        ["compaction", "after that"],
        ["nothing", "a new session"],
      ])
    },
  )

  test(promised("start.A6", "each part that a new session is not told of the work's standing is named"), () => {
    const handoff =
      "# Handoff after compaction 4\n\nIt went fine.\n\n## Facts gathered by program\n- Git: branch main at 1a"
    const leftBehind = {
      sessionID: "ses_1",
      description: `Do it.\n\n<!-- baton:handoff 0123456789ab -->\n${handoff}\n<!-- /baton:handoff -->`,
      logs: ["State: orient", "Checkpoint: 5 of 5", "Compaction 4: It went fine."].map((message) => ({ message })),
    }
    const told = [
      "Task: ts-1a2b3c",
      "## The last handoff\nWritten 2026-01-02 03:04 UTC by session ses_1. Read it.\n\nIt went fine.",
      "## Where the work stood\n- At the handoff: branch main at 1a\n- Now: branch main at 1a, 0 commits since",
      `## What the user asked that session for, word for word\nTask: ts-1a2b3c\n${CONSTRAINT}`,
      "## Last lines of the log\n- 2026-01-02 03:04 UTC: Checkpoint: 5 of 5\n- 2026-01-02 03:04 UTC: Compaction 4: It went fine.",
    ].join("\n\n")
    expect(untoldIn(told, leftBehind)).toEqual([])
    expect(untoldIn("Task: ts-1a2b3c", leftBehind)).toEqual(["last handoff", "first brief", "log", "git"])
    const without = (part: string) => untoldIn(told.replace(part, ""), leftBehind)
    expect(without("by session ses_1")).toEqual(["last handoff"])
    expect(without("\n\nIt went fine.")).toEqual(["last handoff"])
    expect(without(CONSTRAINT)).toEqual(["first brief"])
    expect(without(": Checkpoint: 5 of 5")).toEqual(["log"])
    expect(without(", 0 commits since")).toEqual(["git"])
    const noGit = { ...leftBehind, description: leftBehind.description.replace("\n- Git: branch main at 1a", "") }
    expect(untoldIn(told.replace(", 0 commits since", ""), noGit)).toEqual([])
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
