import { describe, expect, test } from "vitest"
import { createRunFacts, judgeEnd, NO_FACTS } from "../../../.opencode/baton/compaction/run-facts.ts"
import type { RunRow } from "../../../.opencode/baton/ledger/embedded/store.ts"
import { createBreaker } from "../../../.opencode/baton/work/breaker.ts"
import { checksIn } from "../../../.opencode/baton/work/checks.ts"
import {
  firstMessage,
  judgeExit,
  NOTHING_SEEN,
  resumeMessage,
  sessionToResume,
} from "../../../.opencode/baton/work/judge.ts"
import type { Queue, ReportedRun, Taken } from "../../../.opencode/baton/work/ledger.ts"
import { lastClock, nextClock, parseWorkOptions } from "../../../.opencode/baton/work/options.ts"
import { renderReport, toReport } from "../../../.opencode/baton/work/report.ts"
import { limitOf } from "../../../.opencode/baton/work/run.ts"
import { promised } from "../../requirements.ts"

const run = (changes: Partial<RunRow> = {}): RunRow => ({
  task_id: "ts-000001",
  n: 1,
  worker: "w",
  session_id: "ses_1",
  pid: 7,
  attempts: 3,
  backoff: 60,
  host: "here",
  directory: "/project",
  branch: "",
  started: "2026-01-01T22:00:00.000Z",
  ended: "2026-01-01T22:10:00.000Z",
  kind: "unfinished",
  detail: "",
  next_try: "",
  tools: 1,
  tokens: 1_000,
  cost: 0,
  ...changes,
})

describe("the end of a run", () => {
  const error = (message: string, status = 0, name = "APIError") => ({
    ...NO_FACTS,
    tools: 3,
    error: { name, message, status, nextTry: "" },
  })
  const CASES = [
    [error("invalid key", 401), "provider", "401 invalid key"],
    [error("Unable to connect", 0, "UnknownError"), "provider", "Unable to connect"],
    [error("too much", 0, "ContextOverflowError"), "context", "too much"],
    [
      error("This model's maximum context length is 8192 tokens", 400),
      "context",
      "400 This model's maximum context length is 8192 tokens",
    ],
    [error("", 0, "MessageAbortedError"), "killed", "it was stopped"],
    [error("", 0, "MessageOutputLengthError"), "unfinished", "MessageOutputLengthError"],
    [{ ...NO_FACTS, permission: "bash: rm -rf build", tools: 2 }, "permission refused", "bash: rm -rf build"],
    [{ ...NO_FACTS, question: "Which one?" }, "question", "Which one?"],
    [{ ...NO_FACTS, tools: 2, words: "Two ways.\nShall I drop Node 18?" }, "question", "Shall I drop Node 18?"],
    [{ ...NO_FACTS, words: "続けますか？" }, "question", "続けますか？"],
    [{ ...NO_FACTS, words: 'Is it "done?"' }, "question", 'Is it "done?"'],
    [{ ...NO_FACTS, words: "Why? Because." }, "idle", "Why? Because."],
    [{ ...NO_FACTS, tools: 1, words: "I stop." }, "unfinished", "I stop."],
  ] as const
  for (const [facts, kind, detail] of CASES)
    test(promised("queue.A1", `the end of a run is ${kind}: ${detail}`), () => {
      expect(judgeEnd(facts)).toMatchObject({ kind, detail })
    })

  test(
    promised("queue.A1", "the end of a run from outside is what ended it, then errors and tools, then the exit code"),
    () => {
      const clean = { exitCode: 0, signal: null }
      const failed = { exitCode: 1, signal: null }
      const stuck = { kind: "stuck", detail: "no progress for 20 min" } as const
      expect(judgeExit(NOTHING_SEEN, stuck, { exitCode: null, signal: "SIGTERM" })).toEqual(stuck)
      expect(judgeExit(NOTHING_SEEN, undefined, { exitCode: null, signal: "SIGKILL" })).toMatchObject({
        kind: "killed",
      })
      const error = { name: "APIError", message: "no", status: 401 }
      expect(judgeExit({ ...NOTHING_SEEN, error }, undefined, clean)).toMatchObject({
        kind: "provider",
        detail: "401 no",
      })
      expect(judgeExit(NOTHING_SEEN, undefined, clean)).toMatchObject({ kind: "idle" })
      expect(judgeExit({ ...NOTHING_SEEN, complaint: "x\nSession not found" }, undefined, failed)).toMatchObject({
        kind: "idle",
        detail: "Session not found",
      })
      expect(judgeExit({ ...NOTHING_SEEN, tools: 1 }, undefined, failed)).toMatchObject({ kind: "unfinished" })
    },
  )
})

test(
  promised("queue.A1", "the facts of a run are those of its session since the newest message, and go with it"),
  () => {
    const facts = createRunFacts((id) => (id === "ses_child" ? "ses_1" : id))
    const message = (id: string, sessionID: string, input: number, role = "assistant") =>
      facts.observe({
        type: "message.updated",
        properties: { info: { id, sessionID, role, time: { completed: 1 }, tokens: { input, output: 10 }, cost: 0.5 } },
      })
    facts.toolStarted("ses_1")
    expect(facts.of("ses_1"), "no message has begun a run").toEqual(NO_FACTS)
    facts.begin("ses_1")
    message("msg_1", "ses_1", 90)
    for (const _ of ["told", "again"]) message("msg_2", "ses_child", 190)
    facts.toolStarted("ses_child")
    facts.observe({
      type: "message.part.updated",
      properties: { part: { sessionID: "ses_1", messageID: "msg_0", type: "text", text: "The user's?" } },
    })
    facts.observe({
      type: "message.part.updated",
      properties: { part: { sessionID: "ses_1", messageID: "msg_1", type: "text", text: "The agent's." } },
    })
    expect(facts.of("ses_1")).toMatchObject({ tools: 1, tokens: 300, cost: 1, words: "The agent's." })
    const error = {
      name: "APIError",
      data: { message: "slow", statusCode: 429, responseHeaders: { "Retry-After": "60" } },
    }
    facts.observe({ type: "session.error", properties: { sessionID: "ses_1", error } })
    expect(facts.of("ses_1").error).toMatchObject({ status: 429, nextTry: expect.stringMatching(/^20/) })
    facts.toolStarted("ses_1")
    expect(facts.of("ses_1").error, "it went on").toBeUndefined()
    facts.follow("ses_1")
    expect(facts.of("ses_1").tools, "a person's next message").toBe(2)
    facts.forget("ses_1")
    message("msg_3", "ses_1", 5)
    expect(facts.of("ses_1")).toEqual(NO_FACTS)
  },
)

describe("the next run", () => {
  const place = { host: "here", directory: "/project" }
  test(
    promised("work.B3", "the next run goes on in its session and folder, once where the session may be to blame"),
    () => {
      expect(sessionToResume([], place)).toBeUndefined()
      for (const kind of [
        "killed",
        "unfinished",
        "idle",
        "check red",
        "not checked",
        "question",
        "permission refused",
        "provider",
        "stopped",
      ])
        expect(sessionToResume([run({ kind })], place), kind).toBe("ses_1")
      for (const kind of ["stuck", "context", "done"])
        expect(sessionToResume([run({ kind })], place), kind).toBeUndefined()
      for (const kind of ["killed", "idle"])
        expect(sessionToResume([run({ kind }), run({ kind })], place), kind).toBeUndefined()
      expect(sessionToResume([run({ kind: "killed", session_id: "ses_0" }), run({ kind: "killed" })], place)).toBe(
        "ses_1",
      )
      expect(sessionToResume([run({ host: "other" })], place)).toBeUndefined()
      expect(sessionToResume([run({ directory: "/gone" })], place)).toBeUndefined()
      expect(sessionToResume([run({ session_id: "" })], place)).toBeUndefined()
    },
  )

  test(promised("work.B3", "the next run is told why, with a person's answer"), () => {
    const taken: Taken = {
      task: "ts-000001",
      title: "T",
      definition_of_done: "",
      run: 2,
      earlier: [run({ kind: "question" })],
      answer: "No.",
    }
    expect(resumeMessage(taken)).toBe("Go on.\n\nTask: ts-000001\n\nA person answers: No.")
    expect(
      resumeMessage({ ...taken, answer: "", earlier: [run({ kind: "check red", detail: "npm test: 2 failed" })] }),
    ).toContain("The check of your work failed: npm test: 2 failed")
    expect(firstMessage(taken, "# Worker\n\nTask: {{task_id}}\n", ["Merge it."])).toBe(
      "# Worker\n\nTask: ts-000001\n\nMerge it.\n\nA person answers: No.",
    )
  })
})

test(
  promised(
    "work.B1",
    "an agent is ended without progress, after the longest run, and as a provider's when that is asked again",
  ),
  () => {
    const options = parseWorkOptions(["--stuck", "20m", "--max-run", "2h"])
    const minute = 60_000
    const at = (minutes: number, progress: number, retry?: { nextAt: string }) =>
      limitOf(
        { options, nowMs: () => minutes * minute },
        {
          startedMs: 0,
          progressMs: progress * minute,
          retry: retry && { message: "slow down", attempt: 9, since: "", firstMs: 0, newestMs: 0, ...retry },
        },
      )
    expect(at(19, 0)).toBeUndefined()
    expect(at(21, 0)).toEqual({ kind: "stuck", detail: "no progress for 20 min" })
    expect(at(119, 110)).toBeUndefined()
    expect(at(121, 120)).toEqual({ kind: "stuck", detail: "longer than 120 min" })
    expect(at(4, 0, { nextAt: "" }), "OpenCode asks again by itself").toBeUndefined()
    const next_try = "2026-01-01T00:00:00.000Z"
    expect(at(6, 0, { nextAt: next_try })).toEqual({ kind: "provider", detail: "slow down (asked 9 times)", next_try })
  },
)

describe("the breaker", () => {
  const end = (kind: string, next_try = "", session = "ses_1") => ({ kind, detail: "401", session, next_try })
  test(promised("work.B2", "the breaker stops after three runs in a row that came to nothing"), () => {
    const breaker = createBreaker(() => 0)
    for (const kind of ["provider", "idle", "unfinished", "provider", "stopped", "provider"])
      expect(breaker.add(end(kind))).toEqual({ kind: "go on" })
    expect(breaker.add(end("killed", "", ""))).toMatchObject({ kind: "stop" })
  })

  test(
    promised(
      "work.B2",
      "the breaker waits until the time that the provider named, and once until a run comes to something",
    ),
    () => {
      const breaker = createBreaker(() => 0)
      const later = "2026-01-01T00:00:00.000Z"
      const fail = () => [1, 2, 3].map(() => breaker.add(end("provider", later))).at(-1)
      expect(fail()).toMatchObject({ kind: "wait", until: later })
      breaker.reset()
      expect(fail()).toMatchObject({ kind: "stop" })
      breaker.reset()
      breaker.add(end("done"))
      expect(fail()).toMatchObject({ kind: "wait" })
      expect(createBreaker(() => Date.parse(later) + 1).add(end("provider", later))).toEqual({ kind: "go on" })
    },
  )
})

describe("the command line", () => {
  test(promised("work.B1", "the command line takes times, tokens and what is for opencode"), () => {
    const given = ["-n", "3", "--stuck", "90s", "--budget", "2M", "--until", "07:00", "--", "--model", "a/b"]
    expect(parseWorkOptions(given)).toMatchObject({
      slots: 3,
      stuckMs: 90_000,
      budget: 2_000_000,
      until: { hours: 7, minutes: 0 },
      attempts: 3,
      maxRunMs: 7_200_000,
      args: ["--model", "a/b"],
    })
  })
  test.each([
    [["-n", "0"], "expected --number as a number from 1 to 64, received '0'"],
    [["--stuck", "20"], "expected --stuck as a time such as 30s, 20m or 2h, received '20'"],
    [["--budget", "much"], "expected --budget as a number of tokens such as 500k or 2M, received 'much'"],
    [["--until", "24:00"], "expected a time of the day such as 07:00, received '24:00'"],
  ])("work.B1: %j is refused", (args, message) => {
    expect(() => parseWorkOptions(args)).toThrow(message)
  })
  test(promised("work.B1", "a time of the day is the next, or for a report the last"), () => {
    const now = new Date(2026, 0, 31, 22, 30).getTime()
    expect(nextClock({ hours: 7, minutes: 0 }, now)).toBe(new Date(2026, 1, 1, 7, 0).getTime())
    expect(nextClock({ hours: 23, minutes: 0 }, now)).toBe(new Date(2026, 0, 31, 23, 0).getTime())
    expect(lastClock("22:00", now)).toBe(new Date(2026, 0, 31, 22, 0).getTime())
    expect(lastClock("2026-01-30T10:00:00Z", now)).toBe(Date.parse("2026-01-30T10:00:00Z"))
  })
})

test(promised("work.B4", "a check is a line of its own in the definition of done"), () => {
  const done = "All is green.\n- check: npm test\n* [ ] check: `npm run lint`\nCheck: make\nWe check: nothing here"
  expect(checksIn(done)).toEqual(["npm test", "npm run lint", "make"])
  expect(checksIn(null)).toEqual([])
})

test(
  promised(
    "work.B5",
    "the report says what needs the person, what to merge, what is red, the outage and what was spent",
  ),
  () => {
    const reported = (changes: Partial<ReportedRun>): ReportedRun => ({
      ...run(),
      project: "demo",
      title: "T",
      status: "open",
      ...changes,
    })
    const at = (minute: number) => `2026-01-01T22:${String(minute).padStart(2, "0")}:00.000Z`
    const runs = [
      reported({ task_id: "ts-1", title: "A", kind: "done", status: "done", tokens: 5_000 }),
      reported({ task_id: "ts-2", title: "B", kind: "provider", detail: "429", started: at(10), ended: at(12) }),
      reported({ task_id: "ts-2", title: "B", n: 2, kind: "provider", detail: "429", started: at(12), ended: at(20) }),
      reported({
        task_id: "ts-2",
        title: "B",
        n: 3,
        kind: "check red",
        detail: "npm test: 2 failed",
        started: at(21),
        ended: at(59),
      }),
      reported({
        task_id: "ts-3",
        title: "C",
        kind: "question",
        detail: "Drop Node 18?",
        status: "blocked",
        started: at(30),
        ended: at(31),
      }),
    ]
    const queue: Queue = {
      ready: 1,
      later: 0,
      next: "",
      waiting: 0,
      at_work: 0,
      counts: {},
      tasks: [],
      begun: [],
      blocked: [{ task: "ts-3", title: "C", reason: "question: Drop Node 18?" }],
    }
    const branch = {
      task: "ts-1",
      branch: "baton/ts-1",
      title: "A",
      status: "done",
      ahead: 2,
      isMerged: false,
      mergesClean: true,
      uncommitted: 1,
    }
    const report = toReport(runs, queue, [branch, { ...branch, task: "ts-2", status: "open" }], at(0))
    expect(report).toMatchObject({
      tasks: 3,
      done: 1,
      blocked: 1,
      openAgain: 1,
      red: [{ task: "ts-2", detail: "npm test: 2 failed" }],
      provider: [{ from: at(10), to: at(20), runs: 2 }],
      tokens: 9_000,
      inVain: { runs: 3, tokens: 3_000, tasks: [{ task: "ts-2", kinds: ["provider", "provider", "check red"] }] },
      slowest: { task: "ts-2", ms: 38 * 60_000 },
      toMerge: [{ task: "ts-1" }],
    })
    const text = renderReport(report)
    for (const part of [
      'Needs you     ts-3  C: question: Drop Node 18?\n                prog unblock ts-3 "answer"',
      "baton/ts-1  2 commits, merges clean, 1 not committed  A",
      "Check red     ts-2  B: npm test: 2 failed; open again",
      "(2 runs): 429",
      "9 k tokens in 5 runs, of it 3 k tokens in 3 that led to nothing",
    ])
      expect(text).toContain(part)
    expect(renderReport(toReport([], queue, [], at(0)))).toMatch(/^No worker has run since /)
  },
)
