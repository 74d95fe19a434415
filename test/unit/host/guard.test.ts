import { describe, expect, test } from "vitest"
import { guardConfig, guardHook, guardObserver, guardTools } from "../../../.opencode/baton/host/guard.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const DEADLINE_MS = 20

describe("a guarded hook", () => {
  test(promised("faults.F2", "applies what it decided in time"), async () => {
    const output = { value: "before" }
    const hook = guardHook(
      createRecordedLog(),
      "a.hook",
      DEADLINE_MS,
      async (_input: null, out: typeof output) => () => {
        out.value = "after"
      },
    )
    await hook(null, output)
    expect(output.value).toBe("after")
  })

  test(promised("faults.F2", "returns at its deadline and changes nothing afterwards"), async () => {
    const log = createRecordedLog()
    const output = { value: "before" }
    let release = (): void => {}
    const decided = new Promise<() => void>((resolve) => {
      release = () =>
        resolve(() => {
          output.value = "after"
        })
    })
    await guardHook(log, "a.hook", DEADLINE_MS, () => decided)(null, output)
    release()
    await decided
    expect(output.value).toBe("before")
    expect(log.lines).toMatchObject([{ level: "warn", extra: { hook: "a.hook", deadlineMs: 20 } }])
  })

  test.each([
    ["late", () => new Promise<undefined>(() => {})],
    ["failed", () => Promise.reject(new Error("no"))],
  ])(
    promised("faults.F2", "does what was named for it when its decision is %s, and not otherwise"),
    async (_how, decide) => {
      const output = { tools: true }
      const hide = (_input: null, out: typeof output): void => {
        out.tools = false
      }
      await guardHook(createRecordedLog(), "a.hook", DEADLINE_MS, async () => undefined, hide)(null, output)
      expect(output.tools).toBe(true)
      await guardHook(createRecordedLog(), "a.hook", DEADLINE_MS, decide, hide)(null, output)
      expect(output.tools).toBe(false)
    },
  )

  test.each([
    ["its input", { sessionID: "ses_1" }, {}],
    ["the messages of a request", {}, { messages: [{ info: { sessionID: "ses_1" } }] }],
  ])(promised("faults.F1", "logs its session from %s"), async (_where, input, output) => {
    const log = createRecordedLog()
    await guardHook(log, "a.hook", DEADLINE_MS, () => Promise.reject(new Error("no")))(input, output)
    expect(log.lines).toMatchObject([{ extra: { hook: "a.hook", sessionID: "ses_1" } }])
  })

  test.each([
    ["rejects", () => Promise.reject(new Error("no"))],
    [
      "throws",
      () => {
        throw new Error("no")
      },
    ],
    [
      "fails while it applies its change",
      async () => () => {
        throw new Error("no")
      },
    ],
  ])(promised("faults.F1", "does not fail OpenCode when it %s"), async (_how, decide) => {
    const log = createRecordedLog()
    await expect(guardHook(log, "a.hook", DEADLINE_MS, decide)(null, null)).resolves.toBeUndefined()
    expect(log.lines).toMatchObject([{ level: "error", extra: { error: "Error: no" } }])
  })

  test(promised("faults.F1", "an observer that throws is logged and swallowed"), async () => {
    const log = createRecordedLog()
    const observe = guardObserver(log, "event", () => {
      throw new Error("no")
    })
    await expect(observe(null)).resolves.toBeUndefined()
    expect(log.lines).toMatchObject([{ level: "error" }])
  })

  test(promised("faults.F1", "a config hook that throws is logged with what is missing, and swallowed"), async () => {
    const log = createRecordedLog()
    const setUp = guardConfig(log, "/handoff", async (config) => {
      config.theme = "set before the failure"
      throw new Error("no")
    })
    const config: { theme?: string } = {}
    await expect(setUp(config)).resolves.toBeUndefined()
    expect(config.theme).toBe("set before the failure")
    expect(log.lines).toMatchObject([
      { level: "error", message: "cannot set up /handoff", extra: { hook: "config", error: "Error: no" } },
    ])
  })

  test(
    promised("faults.F1", "tools are made once, when they are asked for; where they cannot be, there are none"),
    () => {
      const log = createRecordedLog()
      const made: string[] = []
      const tools = guardTools(log, "one", () => {
        made.push("one")
        return { one: { description: "", args: {}, execute: async () => "" } }
      })
      expect(made).toEqual([])
      expect(tools()).toBe(tools())
      expect(made).toEqual(["one"])
      const none = guardTools(log, "learned and forget", () => {
        throw new Error("no zod")
      })
      expect([none(), none()]).toEqual([{}, {}])
      let isReady = false
      const later = guardTools(log, "two", () => (isReady ? tools() : undefined))
      expect(later()).toEqual({})
      isReady = true
      expect(later()).toBe(tools())
      expect(log.lines).toMatchObject([{ level: "error", message: "the tools learned and forget are not there" }])
      expect(guardTools(log, "none", () => undefined)()).toEqual({})
    },
  )
})
