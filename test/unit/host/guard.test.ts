import { describe, expect, test } from "vitest"
import { z } from "zod"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { guardConfig, guardGate, guardHook, guardObserver, guardTools } from "../../../.opencode/baton/host/guard.ts"
import { createLog, describeError } from "../../../.opencode/baton/host/log.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const DEADLINE_MS = 20

const fail = (): never => {
  throw new Error("no")
}
const reject = () => Promise.reject(new Error("no"))

test(promised("claim.B2", "a hook that may refuse throws the reason it was given, and nothing else"), async () => {
  const gate = (judge: () => Promise<string | undefined>) =>
    guardGate(createRecordedLog(), "a.hook", DEADLINE_MS, judge)(null, null)
  await expect(gate(async () => "Ask first.")).rejects.toThrow("Ask first.")
  for (const judge of [async () => undefined, reject, fail, () => new Promise<string>(() => {})])
    await expect(gate(judge)).resolves.toBeUndefined()
})

describe("a guarded hook", () => {
  test(promised("faults.F2", "a guarded hook returns at its deadline and changes nothing afterwards"), async () => {
    const log = createRecordedLog()
    const output = { value: "before" }
    const decision = createDeferred<() => void>()
    await guardHook(log, "a.hook", DEADLINE_MS, () => decision.promise)(null, output)
    decision.resolve(() => void Object.assign(output, { value: "after" }))
    await decision.promise
    expect(output.value).toBe("before")
    expect(log.lines).toMatchObject([{ level: "warn", extra: { hook: "a.hook", deadlineMs: 20 } }])
  })

  test.each([
    ["late", () => new Promise<undefined>(() => {})],
    ["failed", reject],
  ])(promised("faults.F2", "a guarded hook falls back only when its decision is %s"), async (_how, decide) => {
    const output = { tools: true }
    const hide = (_input: null, out: typeof output) => void Object.assign(out, { tools: false })
    await guardHook(createRecordedLog(), "a.hook", DEADLINE_MS, async () => undefined, hide)(null, output)
    expect(output.tools).toBe(true)
    await guardHook(createRecordedLog(), "a.hook", DEADLINE_MS, decide, hide)(null, output)
    expect(output.tools).toBe(false)
  })

  test.each([
    ["its input", { sessionID: "ses_1" }, {}],
    ["the messages of a request", {}, { messages: [{ info: { sessionID: "ses_1" } }] }],
  ])(promised("faults.F1", "a guarded hook logs its session from %s"), async (_where, input, output) => {
    const log = createRecordedLog()
    await guardHook(log, "a.hook", DEADLINE_MS, reject)(input, output)
    expect(log.lines).toMatchObject([{ extra: { hook: "a.hook", sessionID: "ses_1" } }])
  })

  test.each([
    ["rejects", reject],
    ["throws", fail],
    ["fails while it applies its change", async () => fail],
  ])(promised("faults.F1", "a guarded hook does not fail OpenCode when it %s"), async (_how, decide) => {
    const log = createRecordedLog()
    await expect(guardHook(log, "a.hook", DEADLINE_MS, decide)(null, null)).resolves.toBeUndefined()
    expect(log.lines).toMatchObject([{ level: "error", extra: { error: "Error: no" } }])
  })

  test(promised("faults.F1", "an observer that throws is logged and swallowed"), async () => {
    const log = createRecordedLog()
    await expect(guardObserver(log, "event", fail)(null)).resolves.toBeUndefined()
    expect(log.lines).toMatchObject([{ level: "error" }])
  })

  test(promised("faults.F1", "a config hook that throws is logged with what is missing, and swallowed"), async () => {
    const log = createRecordedLog()
    const setUp = guardConfig(log, "/handoff", async (config) => {
      config.theme = "set before the failure"
      fail()
    })
    const config: { theme?: string } = {}
    await expect(setUp(config)).resolves.toBeUndefined()
    expect(config.theme).toBe("set before the failure")
    const extra = { hook: "config", error: "Error: no" }
    expect(log.lines).toMatchObject([{ level: "error", message: "cannot set up /handoff", extra }])
  })

  test(promised("faults.F1", "tools are made once, at first use, or are not there"), () => {
    const log = createRecordedLog()
    const made: string[] = []
    const tools = guardTools(log, "one", () => {
      made.push("one")
      return { one: { description: "", args: {}, execute: async () => "" } }
    })
    expect(made).toEqual([])
    expect(tools()).toBe(tools())
    expect(made).toEqual(["one"])
    const none = guardTools(log, "learned and forget", fail)
    expect([none(), none()]).toEqual([{}, {}])
    let isReady = false
    const later = guardTools(log, "two", () => (isReady ? tools() : undefined))
    expect(later()).toEqual({})
    isReady = true
    expect(later()).toBe(tools())
    expect(log.lines).toMatchObject([{ level: "error", message: "the tools learned and forget are not there" }])
    expect(guardTools(log, "none", () => undefined)()).toEqual({})
  })
})

test(promised("compaction.C9", "an error in the log is one line, no longer than a person reads"), () => {
  const { error } = z.object({ version: z.literal(1), count: z.number() }).safeParse({ version: 2 })
  expect(error?.message).toContain("\n")
  expect(describeError(error)).toMatch(/^ZodError: .*version.*count.*$/)
  expect(describeError(new Error("x".repeat(10_000)))).toHaveLength(500)
})

test.each([
  ["throws", fail],
  ["rejects", () => Promise.reject(new Error("no log"))],
  ["never answers", () => new Promise(() => {})],
  ["answers nothing", () => undefined],
])(promised(["faults.F1", "faults.F2"], "a client that cannot log and %s disturbs nobody"), async (_, log) => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on("unhandledRejection", note)
  createLog({ app: { log } } as never, "feature").warn("something happened")
  await new Promise((resolve) => setImmediate(resolve))
  process.off("unhandledRejection", note)
  expect(unhandled).toEqual([])
})
