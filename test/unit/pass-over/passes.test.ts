import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { MessagePage, Result } from "../../../.opencode/baton/host/sessions.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { type AuditEntry, isAuditEntry } from "../../../.opencode/baton/pass-over/audit/log.ts"
import type { Artifact, WorkStatus } from "../../../.opencode/baton/pass-over/contract.ts"
import { passOverError } from "../../../.opencode/baton/pass-over/errors.ts"
import { refusals } from "../../../.opencode/baton/pass-over/sandbox/repository.ts"
import type { Sandboxes } from "../../../.opencode/baton/pass-over/sandbox/sandbox.ts"
import {
  type BeginPass,
  cacheKeyOf,
  createPasses,
  type Question,
} from "../../../.opencode/baton/pass-over/store/passes.ts"
import { isRepeatable, isUnfinished, type PassEvent } from "../../../.opencode/baton/pass-over/store/record.ts"
import { recoverPasses } from "../../../.opencode/baton/pass-over/store/recover.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import {
  builtInPolicy,
  fileModification,
  PASS_ID,
  passRecord,
  passRequest,
  refusedPass,
  returnedState,
  workContext,
  workOutput,
} from "../../support/opencode/pass-over-values.ts"
import { assistantMessage, completedTool, toolPart } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const DAY_MS = 86_400_000

const setUp = () => {
  const entries: AuditEntry[] = []
  const pruned: number[] = []
  const store = createPassStore({ state: createStateFolder(temporaryFolder()), log: createRecordedLog() })
  let ticks = 0
  const passes = createPasses({
    store,
    audit: {
      append: async (entry) => entries.push(entry) > 0,
      prune: async (days) => void pruned.push(days),
    },
    now: () => new Date(Date.UTC(2026, 0, 1) + 1000 * ticks++),
  })
  const begin = (change: Partial<BeginPass> = {}) =>
    passes.begin({
      request: passRequest(),
      policy: builtInPolicy(),
      cacheKey: null,
      audit: { enabled: true, retention_days: 90 },
      canChange: true,
      ...change,
    })
  const pass = (ms: number): void => {
    ticks += ms / 1000
  }
  return { entries, pruned, store, passes, begin, pass }
}

describe("the passes", () => {
  test(
    promised(["pass-over.E3", "pass-over.E4"], "the passes have a state and a line of the audit for each change"),
    async () => {
      const { entries, store, passes, begin } = setUp()
      await begin()
      await passes.transition(PASS_ID, { type: "started" }, { child_session_id: "ses_child" })
      await passes.attemptFailed(PASS_ID, passOverError("E011", { message: "The model failed", cause: "503" }))
      await passes.transition(PASS_ID, { type: "started" }, { child_session_id: "ses_second" })
      await passes.transition(PASS_ID, { type: "returned", paths: [] }, { output: workOutput() })
      await passes.transition(PASS_ID, { type: "applied", by: "originator" })
      expect(entries.map(({ event, state, attempts }) => `${event} ${state} ${attempts}`)).toEqual([
        "sent sent 0",
        "started waiting_for_return 1",
        "attempt_failed waiting_for_return 1",
        "started waiting_for_return 2",
        "returned returned 2",
        "applied applied 2",
      ])
      expect(entries[2]?.error).toEqual({ code: "E011", message: "The model failed" })
      const stored = await store.read(PASS_ID)
      expect(stored).toMatchObject({ attempts: 2, child_session_id: "ses_second", state: { state: "applied" } })
      expect(stored?.history.map(({ state }) => state)).toEqual(["sent", "waiting_for_return", "returned", "applied"])
      expect(stored?.history.map(({ at }) => at)).toEqual(
        [entries[0], entries[1], entries[4], entries[5]].map((each) => each?.at),
      )
    },
  )

  test(
    promised(["pass-over.E4", "pass-over.E1"], "the passes change nothing where nothing can happen, and say why"),
    async () => {
      const { entries, store, passes, begin } = setUp()
      const unknown = await passes.transition(PASS_ID, { type: "started" })
      expect(unknown).toMatchObject({ kind: "refused", error: { code: "E023" } })
      await begin()
      const record = await store.read(PASS_ID)
      const early = await passes.transition(PASS_ID, { type: "applied", by: "originator" }, { output: workOutput() })
      expect(early).toMatchObject({ kind: "refused", error: { code: "E024" } })
      expect(await store.read(PASS_ID)).toEqual(record)
      expect(entries).toHaveLength(1)
    },
  )

  test(
    promised(["pass-over.E3", "pass-over.E1"], "the passes are in the audit with why they were refused or ended"),
    async () => {
      const { entries, passes, begin } = setUp()
      const error = passOverError("E011", { message: "No sandbox could be made", cause: "The disk is full" })
      await passes.refuse({ ...refusedPass(), reason: "token=abcdefgh" }, error)
      await begin()
      await passes.transition(PASS_ID, { type: "cancelled" }, {}, error)
      expect(entries.map(({ event, error: why }) => [event, why?.message])).toEqual([
        ["refused", "No sandbox could be made"],
        ["sent", undefined],
        ["cancelled", "No sandbox could be made"],
      ])
      expect(entries[0]).toMatchObject({ state: "refused", reason: "token=[redacted]", error: { code: "E011" } })
      expect(entries.filter((entry) => !isAuditEntry(entry))).toEqual([])
    },
  )

  test(
    promised(["pass-over.D1", "pass-over.E3"], "passes beyond the limit are refused, in the audit as such"),
    async () => {
      const { entries, begin } = setUp()
      const policy = builtInPolicy({ max_passes_per_session: 1 })
      await begin({ policy })
      const request = passRequest({ pass_over_id: "pass_20260101102030001_abcd" })
      const error = { code: "E004", message: expect.stringContaining("1 passes; 1 are") }
      expect(await begin({ policy, request })).toMatchObject({ kind: "refused", error })
      expect(entries.map(({ event, error: why }) => `${event} ${why?.code}`)).toEqual([
        "sent undefined",
        "refused E004",
      ])
    },
  )

  test(promised("pass-over.E4", "passes are announced once, whoever asks at the same time"), async () => {
    const { entries, passes, begin } = setUp()
    await begin()
    const told = await Promise.all([1, 2, 3].map(() => passes.announce(PASS_ID)))
    expect(told.filter(Boolean)).toHaveLength(1)
    expect(await passes.announce("pass_20260101102030000_none")).toBe(false)
    expect(entries.map(({ event }) => event)).toEqual(["sent", "announced"])
  })

  test(promised("pass-over.E3", "passes are in no audit if the policy says so; old audits go once a day"), async () => {
    const { entries, pruned, passes, begin, pass } = setUp()
    const quiet = { enabled: false, retention_days: 7 }
    await begin({ audit: quiet })
    await passes.transition(PASS_ID, { type: "cancelled" })
    expect(entries).toEqual([])
    await begin({ request: passRequest({ pass_over_id: "pass_20260101102030001_abcd" }) })
    expect(entries.map(({ event }) => event)).toEqual(["sent"])
    expect(pruned).toEqual([7])
    pass(DAY_MS)
    await begin({ request: passRequest({ pass_over_id: "pass_20260101102030002_abcd" }) })
    expect(pruned).toEqual([7, 90])
  })

  test(promised("pass-over.E4", "the passes lose no result, whatever happens at the same time"), async () => {
    const event: fc.Arbitrary<PassEvent> = fc.constantFrom<PassEvent[]>(
      { type: "started" },
      { type: "returned", paths: ["a.ts"] },
      { type: "timed_out" },
      { type: "cancelled" },
      { type: "applied", by: "originator" },
      { type: "rejected" },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), async (events) => {
        const { entries, store, passes, begin } = setUp()
        await begin()
        const steps = await Promise.all(
          events.map((each) =>
            passes.transition(PASS_ID, each, each.type === "returned" ? { output: workOutput() } : {}),
          ),
        )
        const moved = steps.filter(({ kind }) => kind === "moved")
        expect(entries).toHaveLength(1 + moved.length)
        const stored = await store.read(PASS_ID)
        expect(stored?.state.state).toBe(entries.at(-1)?.state)
        expect(stored?.output !== null).toBe(entries.some((entry) => entry.event === "returned"))
      }),
      { numRuns: runs(25) },
    )
  })
})

describe("a question", () => {
  const file = (path: string, hash: string | null) => ({ path, hash, content: null })
  const context = workContext({ objective: "Review", files: [file("a.ts", "1"), file("b.ts", "2")] })
  const QUESTION: Question = { subagent: "audit", definition: "v1", context }
  const about = (change: Partial<Question["context"]>) => ({ ...QUESTION, context: { ...context, ...change } })

  test(
    promised("pass-over.A7", "a question is the same in whatever order its files are named and however shown"),
    () => {
      const shown = { path: "a.ts", hash: "1", content: "text", note: "short" }
      expect(cacheKeyOf(about({ files: [file("b.ts", "2"), shown] }))).toBe(cacheKeyOf(QUESTION))
      expect(cacheKeyOf(QUESTION)).toMatch(/^[0-9a-f]{64}$/)
    },
  )

  test.each<[string, Question]>([
    ["subagent", { ...QUESTION, subagent: "scout" }],
    ["definition of the subagent", { ...QUESTION, definition: "v2" }],
    ["objective", about({ objective: "Review!" })],
    ["background", about({ background: "x" })],
    ["expected answer", about({ expected: "x" })],
    ["message of the conversation", about({ messages: [{ role: "user", text: "x" }] })],
    ["tool result", about({ tool_results: [{ tool: "bash", title: "", status: "completed", output: "x" }] })],
    ["task", about({ task: { id: "ts-1234", role: "worker", block: "" } })],
    ["content of a file", about({ files: [file("a.ts", "1"), file("b.ts", "3")] })],
    ["name of a file", about({ files: [file("a.ts", "1"), file("c.ts", "2")] })],
    ["number of files", about({ files: [file("a.ts", "1")] })],
  ])(promised("pass-over.A7", "a question with another %s is another one"), (_what, other) => {
    expect(cacheKeyOf(other)).not.toBe(cacheKeyOf(QUESTION))
  })

  test(promised("pass-over.A7", "a question about a file that could not be read is never known"), () => {
    expect(cacheKeyOf(about({ files: [file("a.ts", null)] }))).toBeNull()
  })
})

test.each<[boolean, WorkStatus, readonly Artifact[]]>([
  [true, "completed", [{ type: "message", text: "m" }]],
  [false, "completed", [fileModification()]],
  [false, "partial", []],
  [false, "failed", []],
  [false, "timeout", []],
])(promised("pass-over.A7", "an output may be given again: %s for a %s one"), (expected, status, artifacts) => {
  expect(isRepeatable(workOutput({ status, artifacts }))).toBe(expected)
})

const SANDBOX = "/p/.opencode/state/pass-over/x/copy"
const [ONE, TWO] = [PASS_ID, "pass_20260101102030001_abcd"]

/** Passes at work whose process is gone. */
const leave = async (...ids: string[]) => {
  const { store, passes, begin } = setUp()
  for (const id of ids) {
    await begin({ request: passRequest({ pass_over_id: id }) })
    await passes.transition(id, { type: "started" }, { child_session_id: id })
  }
  const files = new Map<string, Awaited<ReturnType<Sandboxes["collect"]>> | Error>()
  const messages = new Map<string, Result<MessagePage>>()
  const noted: string[] = []
  const log = createRecordedLog()
  const recover = () =>
    recoverPasses({
      store,
      passes,
      sandboxes: {
        collect: async (id) => {
          const found = files.get(id) ?? refusals.unknownPass(id)
          if (found instanceof Error) throw found
          return found
        },
        pathOf: () => SANDBOX,
      },
      sessions: { messages: async (id) => messages.get(id) ?? { kind: "ok", value: { messages: [] } } },
      owners: { isOwned: async () => false },
      recordResult: async ({ request }) => void noted.push(request.pass_over_id),
      log,
      now: () => new Date(0),
    })
  const states = () => Promise.all(ids.map(async (id) => (await store.read(id))?.state.state))
  return { recover, states, store, passes, files, messages, noted, log }
}

describe("a pass whose process died", () => {
  test(
    promised(
      "pass-over.B3",
      "a pass whose process died stays open for the next start when its files cannot be stored now",
    ),
    async () => {
      const { recover, states, files, noted } = await leave(ONE, TWO)
      files.set(ONE, refusals.failed("the disk is full"))
      const told = await recover()
      expect(await states()).toEqual(["waiting_for_return", "returned"])
      expect(told.map(({ request }) => request.pass_over_id)).toEqual([TWO])
      files.set(ONE, { kind: "changes", modifications: [], skipped: [], recovered: [], leftAlone: [] })
      await recover()
      expect(await states()).toEqual(["returned", "returned"])
      expect(noted).toEqual([TWO, ONE])
    },
  )

  test(promised("pass-over.B3", "a pass whose process died does not keep the others from their end"), async () => {
    const { recover, states, files, log } = await leave(ONE, TWO)
    files.set(ONE, new Error("damaged"))
    expect(await recover()).toHaveLength(1)
    expect(await states()).toEqual(["waiting_for_return", "returned"])
    expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1)
  })

  test(
    promised(
      "pass-over.B3",
      "a pass whose process died stays open when its session cannot be read, and not when that is gone",
    ),
    async () => {
      const { recover, states, messages } = await leave(ONE, TWO)
      messages.set(ONE, { kind: "failed", reason: "busy" })
      messages.set(TWO, { kind: "failed", reason: "no such session", missing: true })
      await recover()
      expect(await states()).toEqual(["waiting_for_return", "returned"])
    },
  )

  test(
    promised(
      ["pass-over.B2", "pass-over.B3"],
      "a pass whose process died in the middle of an apply has that taken back",
    ),
    async () => {
      const { recover, passes, files, states, log } = await leave(ONE)
      await passes.transition(ONE, { type: "returned", paths: ["a"] }, { output: workOutput() })
      const recovered = ["took back 1 write"]
      files.set(ONE, { kind: "changes", modifications: [], skipped: [], recovered, leftAlone: [] })
      expect(await recover()).toEqual([])
      expect(await states()).toEqual(["returned"])
      expect(log.lines.map(({ message }) => message)).toEqual(["an apply was cut off"])
    },
  )

  test(
    promised(
      ["pass-over.A2", "pass-over.B3"],
      "a pass whose process died has what it returned, in paths of the worktree",
    ),
    async () => {
      const { recover, store, messages } = await leave(ONE)
      const message = assistantMessage("x")
      const input = { status: "completed", summary: `See ${SANDBOX}/src/a.ts` }
      message.parts.push(
        toolPart("bash", completedTool("ls", `${SANDBOX}/src/a.ts`)),
        toolPart("pass_over_return", completedTool("", "", input)),
      )
      messages.set(ONE, { kind: "ok", value: { messages: [message] } })
      await recover()
      const output = (await store.read(ONE))?.output
      expect(output?.summary.text).toBe("See src/a.ts")
      expect(output?.artifacts).toMatchObject([{ type: "tool_result", output: "src/a.ts" }])
    },
  )
})

test(promised("pass-over.E4", "an asynchronous pass of which nobody is to be told ends with its return"), () => {
  const state = returnedState()
  const request = passRequest({ async: true, return_required: false })
  expect(isUnfinished(passRecord({ request, state, output: workOutput() }))).toBe(false)
  expect(isUnfinished(passRecord({ request: passRequest({ async: true }), state }))).toBe(true)
})
