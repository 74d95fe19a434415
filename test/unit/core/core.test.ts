import type { PluginInput } from "@opencode-ai/plugin"
import { describe, expect, test, vi } from "vitest"
import { enterCopy, openCore } from "../../../.opencode/baton/core/core.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

type Line = { level: string; message: string; extra: Record<string, unknown> }

/** A new instance of OpenCode, always with its own client, even for the same directory. */
const newInstance = (directory = temporaryFolder()) => {
  const lines: Line[] = []
  const client = { app: { log: async ({ body }: { body: Line }) => void lines.push(body) } }
  const input = { client, directory, worktree: directory } as unknown as PluginInput
  return { input, lines, directory, core: openCore(input) }
}

const forEver = () => new Promise<void>(() => {})
const reject = () => Promise.reject(new Error("no"))
const fail = (): never => {
  throw new Error("no")
}

describe("the core of an instance", () => {
  test("the core of an instance is one for all features, and another one for another instance of the same directory", () => {
    const { input, core, directory } = newInstance()
    expect(openCore(input)).toBe(core)
    expect(newInstance(directory).core).not.toBe(core)
  })

  test(
    promised("faults.F2", "the core of an instance makes its services once, whichever feature asks first"),
    async () => {
      const { core } = newInstance()
      expect(core.services.current).toBeUndefined()
      const [one, other] = await Promise.all([core.services(), core.services()])
      expect(one).toBe(other)
    },
  )

  test(
    promised("soak.B5", "the core of an instance ends when its directory silently begins anew, as on 1.3.2"),
    async () => {
      const { core, directory } = newInstance()
      const stop = vi.fn(async () => {})
      const feature = core.feature("one")
      feature.dispose(stop)
      expect(feature.isActive()).toBe(true)
      newInstance(directory).core.feature("one")
      await expect.poll(() => stop).toHaveBeenCalledOnce()
      expect(feature.isActive()).toBe(false)
    },
  )

  test(
    promised(
      "soak.B5",
      "the core of an instance ends at the last event where OpenCode calls no dispose (1.2.15, 1.14.41)",
    ),
    async () => {
      const { core } = newInstance()
      const stop = vi.fn(async () => {})
      core.feature("quiet").dispose(stop)
      const observe = core.feature("other").observer(() => undefined)
      await observe({ event: { type: "server.instance.disposed", properties: { directory: "/" } } })
      await expect.poll(() => stop).toHaveBeenCalledOnce()
    },
  )
})

describe("the dispose hooks of an instance", () => {
  test(
    promised(
      "faults.F2",
      "the dispose hooks of an instance take 700 ms together, though OpenCode calls one after the other",
    ),
    async () => {
      vi.useFakeTimers()
      const { core, lines } = newInstance()
      const disposals = [forEver, forEver, async () => {}].map((stop, at) => core.feature(`f${at}`).dispose(stop))
      let ended = 0
      const all = (async () => {
        for (const dispose of disposals) {
          await dispose()
          ended++
        }
      })()
      await vi.advanceTimersByTimeAsync(399)
      expect(ended).toBe(0)
      await vi.advanceTimersByTimeAsync(301)
      await all
      expect(lines.map(({ level }) => level)).toEqual(["warn", "warn"])
    },
  )

  test(promised("faults.F1", "features whose end fails serve no more and let OpenCode go on"), async () => {
    const { core, lines } = newInstance()
    const [throwing, rejecting] = [core.feature("one"), core.feature("two")]
    const disposals = [throwing.dispose(fail), rejecting.dispose(reject)]
    for (const dispose of disposals) await dispose()
    expect([throwing.isActive(), rejecting.isActive()]).toEqual([false, false])
    const error = { level: "error", extra: { hook: "dispose" } }
    expect(lines).toMatchObject([error, error])
  })
})

test(promised("faults.F1", "a hook does nothing, not even its fallback, in a copy that does not serve"), async () => {
  const directory = temporaryFolder()
  const first = newInstance(directory).core.feature("f")
  const decide = vi.fn(async () => undefined)
  const fallback = vi.fn()
  const hook = first.hook("chat.message", 100, decide, fallback)
  newInstance(directory).core.feature("f")
  await hook({}, {})
  expect(decide).not.toHaveBeenCalled()
  expect(fallback).not.toHaveBeenCalled()
})

let directories = 0
const newProject = () => {
  const projectRoot = `/projects/${directories++}`
  const enter = (bundleRoot: string, directory = projectRoot) =>
    enterCopy({ feature: "f", directory, projectRoot, bundleRoot })
  return { enter, own: `${projectRoot}/.opencode/baton`, global: "/home/user/.config/opencode/baton" }
}

describe("several copies of the bundle", () => {
  const COPIES = ["own", "global"] as const
  test.each(COPIES)(promised("faults.F1", "the copy inside the project serves it when %s is first"), (first) => {
    const second = first === "own" ? "global" : "own"
    const { enter, ...roots } = newProject()
    const copies = [enter(roots[first]), enter(roots[second])]
    expect(copies.map((each) => each.isActive())).toEqual([first === "own", second === "own"])
    expect(copies.map((each) => each.other)).toEqual([undefined, roots[first]])
  })

  test(promised("faults.F1", "the global copy serves a project without one, and each directory on its own"), () => {
    const { enter, global } = newProject()
    expect(enter(global).isActive()).toBe(true)
    expect(enter(global, "/elsewhere").isActive()).toBe(true)
  })

  test(promised("faults.F1", "a directory opened again is served by the newer instance until its release"), () => {
    const { enter, own } = newProject()
    const earlier = enter(own)
    const later = enter(own)
    expect([earlier.isActive(), later.isActive()]).toEqual([false, true])
    expect(later.other).toBeUndefined()
    earlier.release()
    expect(later.isActive()).toBe(true)
    later.release()
    expect(later.isActive()).toBe(false)
  })
})
