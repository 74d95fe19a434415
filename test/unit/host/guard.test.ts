import { describe, expect, test, vi } from "vitest"
import { guardConfig, guardDispose, guardHook, guardObserver, guardTools } from "../../../.opencode/baton/host/guard.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const HOOK = { name: "a.hook", deadlineMs: 20 }

describe("a guarded hook", () => {
  test(promised("faults.F2", "applies what it decided in time"), async () => {
    const output = { value: "before" }
    const hook = guardHook(createRecordedLog(), HOOK, async (_input: null, out: typeof output) => () => {
      out.value = "after"
    })
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
    await guardHook(log, HOOK, () => decided)(null, output)
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
      await guardHook(createRecordedLog(), HOOK, async () => undefined, undefined, hide)(null, output)
      expect(output.tools).toBe(true)
      await guardHook(createRecordedLog(), HOOK, decide, undefined, hide)(null, output)
      expect(output.tools).toBe(false)
    },
  )

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
    await expect(guardHook(log, HOOK, decide)(null, null)).resolves.toBeUndefined()
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
      expect(log.lines).toMatchObject([{ level: "error", message: "the tools learned and forget are not there" }])
      expect(guardTools(log, "none", () => undefined)()).toEqual({})
    },
  )
})

describe("a guarded dispose", () => {
  const forEver = () => new Promise<void>(() => {})
  const setUp = (...stops: (() => Promise<void>)[]) => {
    const log = createRecordedLog()
    const released: number[] = []
    const instance = {}
    const disposals = stops.map((stop, at) =>
      guardDispose(log, { instance, claim: { release: () => void released.push(at) } }, stop),
    )
    return { log, released, disposals }
  }

  test(
    promised("faults.F2", "of all features of an instance takes 700 ms together, though one after the other"),
    async () => {
      vi.useFakeTimers()
      try {
        const { log, released, disposals } = setUp(forEver, forEver, async () => {})
        let ended = 0
        const all = (async () => {
          for (const dispose of disposals) {
            await dispose()
            ended++
          }
        })()
        await vi.advanceTimersByTimeAsync(699)
        expect(ended).toBe(0)
        await vi.advanceTimersByTimeAsync(1)
        await all
        expect(released.toSorted((one, other) => one - other)).toEqual([0, 1, 2])
        expect(log.lines.map(({ level }) => level)).toEqual(["warn", "warn"])
      } finally {
        vi.useRealTimers()
      }
    },
  )

  test(promised("faults.F1", "releases its claim and lets OpenCode go on when it fails"), async () => {
    const { log, released, disposals } = setUp(
      () => {
        throw new Error("no")
      },
      () => Promise.reject(new Error("no")),
    )
    for (const dispose of disposals) await dispose()
    expect(released.toSorted((one, other) => one - other)).toEqual([0, 1])
    expect(log.lines).toMatchObject([
      { level: "error", extra: { hook: "dispose" } },
      { level: "error", extra: { hook: "dispose" } },
    ])
  })

  test("ends nothing of another instance", async () => {
    const stopped: string[] = []
    const [one] = setUp(async () => void stopped.push("one")).disposals
    setUp(async () => void stopped.push("another"))
    await one?.()
    expect(stopped).toEqual(["one"])
  })
})
