import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import {
  type Evidence,
  firstRequests,
  hasFailed,
  judge,
  knowledgeIn,
  recordedCompactions,
  untoldIn,
} from "../../../scripts/demonstration/claims.ts"
import { CONSTRAINT, pastedMessage, workerMessage } from "../../../scripts/demonstration/slug-project.ts"
import { findTraces } from "../../../scripts/demonstration/traces.ts"
import { promised } from "../../requirements.ts"

const ALL_KNOWN = { task: true, role: true, specification: true, definitionOfDone: true, constraint: true }
const SIX = Array.from({ length: 6 }, () => ALL_KNOWN)
const record = (number: number) => ({ number, at: "2026-01-02T03:04:05Z", line: "A step." })

const GOOD: Evidence = {
  exitCode: 0,
  compactions: 4,
  recorded: [1, 2, 3, 4].map(record),
  specification: { ordered: "Do it.", inLedger: "Do it." },
  knowledge: SIX,
  untold: [],
  test: { passes: true, summary: "5 of 5" },
  isFrozenFileUntouched: true,
  status: "done",
  traces: [],
  root: "/tmp/baton-demo-x",
}
const THREE = { compactions: 3, recorded: GOOD.recorded.slice(0, 3), knowledge: SIX.slice(1) }

const failing = (evidence: Evidence): string[] =>
  judge(evidence, true)
    .filter(({ holds }) => !holds)
    .map(({ text }) => text)

describe("the demo's claims", () => {
  test(promised("install.E3", "all hold for a run in which all is well"), () => {
    expect(failing(GOOD)).toEqual([])
    expect(judge(GOOD, true).every(({ weight }) => weight === "asserted")).toBe(true)
  })

  test.each<[string, Partial<Evidence>, RegExp]>([
    ["OpenCode fails", { exitCode: 1 }, /^OpenCode went through/],
    ["OpenCode is ended by a signal", { exitCode: null }, /^OpenCode went through/],
    ["one compaction less is made", THREE, /^OpenCode went through 4 compactions .*\(3 seen, exit code 0\)$/],
    ["a compaction is not recorded", { recorded: GOOD.recorded.slice(1) }, /exactly once \(3 of 4\)/],
    ["a compaction is recorded twice", { recorded: [1, 2, 2, 3].map(record) }, /exactly once/],
    ["a fifth is recorded", { recorded: [...GOOD.recorded, record(5)] }, /exactly once \(5 of 4\)/],
    ["a byte is added", { specification: { ordered: "Do it.", inLedger: "Do it.\n" } }, /as it was ordered/],
    ["one turn does not know all", { knowledge: [...SIX.slice(1), { ...ALL_KNOWN, role: false }] }, /\(5 of 6\)/],
    ["no turn follows the last one", { knowledge: SIX.slice(1) }, /constraint \(5 of 6\)/],
    ["the handoff is not told", { untold: ["last handoff"] }, /log and git, but not the last handoff$/],
    ["nothing was killed", { untold: undefined, knowledge: SIX.slice(1) }, /^After kill -9 .*never came to that\)$/],
    ["the test fails", { test: { passes: false, summary: "4 of 5" } }, /test passes \(4 of 5\)/],
    ["the task stays open", { status: "in_progress" }, /status: in_progress/],
    ["the frozen file is changed", { isFrozenFileUntouched: false }, /constraint was obeyed/],
    ["a file appears elsewhere", { traces: ["/home/me/.prog/prog.db"] }, /but \/home\/me\/\.prog\/prog\.db/],
  ])(promised(["install.E3", "start.A6"], "when %s, one claim fails and the demo with it"), (_name, change, text) => {
    const evidence = { ...GOOD, ...change }
    expect(failing(evidence)).toEqual([expect.stringMatching(text)])
    expect(hasFailed(judge(evidence, true))).toBe(true)
  })

  test(promised("install.E3", "of a user's own model only what Baton itself promises is asserted"), () => {
    const unseen = { knowledge: undefined, untold: undefined, traces: undefined }
    const undone = { test: { passes: false, summary: "0 of 5" }, status: "open", isFrozenFileUntouched: false }
    const fails = (change: Partial<Evidence>) => hasFailed(judge({ ...GOOD, ...unseen, ...undone, ...change }, false))
    expect(fails({})).toBe(false)
    expect(fails({ compactions: 0, recorded: [] })).toBe(false)
    expect(fails({ recorded: [] })).toBe(true)
    expect(fails({ exitCode: 1 })).toBe(true)
  })
})

describe("what the claims are judged by", () => {
  test(promised("install.E3", "what a request tells is read from it alone"), () => {
    expect(knowledgeIn(pastedMessage("ts-1a2b3c"), "ts-1a2b3c")).toEqual(ALL_KNOWN)
    const known = Object.entries(knowledgeIn(workerMessage("ts-1a2b3c"), "ts-1a2b3c")).filter(([, isTold]) => isTold)
    expect(known.map(([name]) => name)).toEqual(["task", "constraint"])
  })

  test(
    promised(["install.E3", "start.A6"], "a session's first request counts, and the first after a compaction"),
    () => {
      const messagesOf = (...roles: string[]) => roles.map((role) => ({ role, content: "" }))
      const requests = (
        [
          ["turn", "the first", "user"],
          ["turn", "a second", "user", "assistant"],
          ["compaction", "a summary", "user"],
          ["title", "a title", "user"],
          ["turn", "after it", "user", "assistant"],
          ["turn", "a third", "user", "assistant"],
          ["turn", "a new session", "user"],
          ["compaction", "nothing follows", "user"],
        ] as const
      ).map(([kind, conversation, ...roles]) => ({ kind, conversation, messages: messagesOf(...roles) }))
      expect(firstRequests(requests, "ts-1a2b3c").map(({ after, conversation }) => [after, conversation])).toEqual([
        ["nothing", "the first"],
        ["compaction", "after it"],
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
    const created_at = "2026-01-02T03:04:05Z"
    const logs = ["State: orient", "Compaction 1: Half\nof it", "compaction 2: no", "Compaction 2: All"]
    expect(recordedCompactions({ logs: logs.map((message) => ({ message, created_at })) })).toEqual([
      { number: 1, at: created_at, line: "Half\nof it" },
      { number: 2, at: created_at, line: "All" },
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
