import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import { afterEach, expect, test, vi } from "vitest"
import { entryOf } from "../../../../.opencode/baton/core/entry.ts"
import { serve } from "../../../../.opencode/baton/host/opencode-2/entry.ts"
import type { CompactingOutput } from "../../../../.opencode/baton/host/port.ts"
import { promised } from "../../../requirements.ts"
import { temporaryFolder } from "../../../support/files/with-test.ts"

type Run = (event: object) => Promise<void>
type Given = Parameters<typeof serve>[1]

/** OpenCode 2, as far as a plugin sees it; `call` runs a hook of all plugins. */
const createFake = (session: Partial<Record<"get" | "context" | "generate", () => Promise<unknown>>> = {}) => {
  const directory = temporaryFolder()
  vi.stubEnv("XDG_DATA_HOME", directory)
  const hooks = new Map<string, Run[]>()
  const hook = async (name: string, run: Run) => void hooks.set(name, [...(hooks.get(name) ?? []), run])
  const info = { id: "ses_1", projectID: "p", time: { created: 1, updated: 1 }, location: { directory } }
  const list = async () => ({ data: [] })
  const transform = async () => {}
  const context = {
    app: { version: "2.0.15" },
    location: { directory, project: { id: "p", directory } },
    session: { hook, get: async () => info, context: async () => [], generate: async () => ({ text: "" }), ...session },
    tool: { hook, transform },
    shell: { hook },
    permission: { hook },
    command: { list, transform },
    agent: { list },
    model: { list },
    generate: { text: async () => Promise.reject(new Error("429")) },
    event: {
      subscribe: ({ signal }: { signal: AbortSignal }) => ({
        [Symbol.asyncIterator]: () => ({
          next: () =>
            new Promise((resolve) => signal.addEventListener("abort", () => resolve({ done: true, value: undefined }))),
        }),
      }),
    },
  } as unknown as Given
  const call = async (name: string, event: object): Promise<void> => {
    for (const run of hooks.get(name) ?? []) await run(event)
  }
  const log = (): string => {
    const path = join(directory, "opencode", "log", "baton.log")
    return existsSync(path) ? readFileSync(path, "utf8") : ""
  }
  return { context, call, log }
}

afterEach(() => void vi.unstubAllEnvs())

const compacting =
  (change: (output: CompactingOutput) => void): NonNullable<Hooks["experimental.session.compacting"]> =>
  async (_input, output) =>
    change(output)

const request = () => ({
  sessionID: "ses_1",
  agent: "build",
  model: { id: "m", providerID: "p" },
  messages: [],
  tools: {},
})

test(promised("v2.A2", "setup does nothing where there are no sessions, as on 1.18.33"), async () => {
  const start = vi.fn(async () => ({}))
  const entry = entryOf("thing", start)
  expect(entry.id).toMatch(/^baton\.thing\.[0-9a-f]{6}$/)
  for (const context of [undefined, {}, { options: {}, agent: {}, command: {}, skill: {} }])
    expect(await entry.setup(context)).toBeUndefined()
  expect(start).not.toHaveBeenCalled()
})

test(
  promised("v2.A3", "a feature that cannot start fails nothing, and one that never does holds nothing up"),
  async () => {
    const { context } = createFake()
    const end = await serve("thing", context, () => Promise.reject(new Error("broken")))
    await end()
    vi.useFakeTimers()
    try {
      const begun = serve("thing", createFake().context, () => new Promise(() => {}))
      await vi.advanceTimersByTimeAsync(2_000)
      await (await begun)()
    } finally {
      vi.useRealTimers()
    }
  },
)

test(promised("v2.A3", "no hook throws, and a message is heard whatever OpenCode does not say"), async () => {
  const refuse = () => Promise.reject(new Error("no"))
  const { context, call } = createFake({ get: refuse, context: refuse, generate: refuse })
  const seen = vi.fn()
  const end = await serve("thing", context, async () => ({
    "chat.message": async (_input, { message, parts }) => seen(message.agent, parts.length),
    "chat.params": async ({ model }) => seen(model.limit.context),
    "experimental.chat.messages.transform": async () => seen("no messages"),
    "experimental.session.compacting": compacting(() => {
      throw new Error("the feature's own")
    }),
  }))
  await call("prompt", { sessionID: "ses_1", messageID: "msg_1", prompt: { text: "go" } })
  await call("context", request())
  const compaction = request()
  await call("compaction", compaction)
  expect(compaction).not.toHaveProperty("result")
  expect(seen.mock.calls).toEqual([["build", 1], [0]])
  await end()
})

test(promised("v2.A3", "all plugins of a folder share one host, until the last of them has ended"), async () => {
  const { context } = createFake()
  const hosts: object[] = []
  const dispose = vi.fn(async () => {})
  const start = async (host: object) => {
    hosts.push(host)
    return { dispose }
  }
  const open = () => serve("thing", context, start)
  const [first, second] = [await open(), await open()]
  await first()
  await first()
  expect(dispose).toHaveBeenCalledTimes(1)
  const third = await open()
  expect(new Set(hosts).size).toBe(1)
  await second()
  await third()
  expect(dispose).toHaveBeenCalledTimes(3)
  const again = await open()
  expect(new Set(hosts).size).toBe(2)
  await again()
})

test(
  promised(
    "v2.A3",
    "a folder that OpenCode opened anew has a host of its own, and the old one's end ends nothing there",
  ),
  async () => {
    const { context } = createFake()
    const reloaded = { ...context, location: { ...context.location } }
    const hosts: object[] = []
    const open = (given: Given) =>
      serve("thing", given, async (host) => {
        hosts.push(host)
        return {}
      })
    const old = await open(context)
    const first = await open(reloaded)
    await old()
    const second = await open(reloaded)
    expect(hosts[1]).not.toBe(hosts[0])
    expect(hosts[2]).toBe(hosts[1])
    await Promise.all([first(), second()])
  },
)

test(promised("v2.A3", "an end of the events that Baton did not ask for is logged"), async () => {
  const { context, log } = createFake()
  const event = { subscribe: async function* () {} }
  const end = await serve("thing", { ...context, event }, async () => ({}))
  await vi.waitFor(() => expect(log()).toContain("no event is heard any more"))
  await end()
})

test.each([
  [
    "fails",
    () => Promise.reject(new Error("429")),
    { summary: "the last handoff", metadata: { baton: "rescued", answer: "" } },
  ],
  [
    "is empty",
    async () => ({ text: " \n" }),
    { summary: "the last handoff", metadata: { baton: "rescued", answer: "" } },
  ],
  [
    "says less",
    async () => ({ text: "Some." }),
    { summary: "the last handoff", metadata: { baton: "rescued", answer: "Some." } },
  ],
  ["is good", async () => ({ text: "## Done" }), { summary: "## Done", metadata: { baton: "summary" } }],
])(promised("v2.B3", "an answer that %s has a result"), async (_how, generate, result) => {
  const { context, call } = createFake({ generate })
  const end = await serve("thing", context, async () => ({
    "experimental.session.compacting": compacting((output) => {
      output.prompt = "Write it."
      output.rescue = (answer) => (answer === "## Done" ? undefined : "the last handoff")
    }),
  }))
  const compaction = request()
  await call("compaction", compaction)
  expect(compaction).toMatchObject({ result })
  await end()
})

test(promised("v2.B7", "where the feature has no prompt its plan is asked for, with what is not undone"), async () => {
  const entries = [
    { id: "msg_1", type: "compaction", status: "completed", summary: "before", metadata: { baton: "rescued" } },
    { id: "msg_2", type: "user", text: "go on" },
    { id: "msg_3", type: "user", text: "undone" },
  ]
  const get = async () => ({ id: "ses_1", revert: { messageID: "msg_3" } })
  const { context, call } = createFake({ context: async () => entries, get })
  const seen = vi.fn()
  const end = await serve("thing", context, async () => ({
    "experimental.session.compacting": compacting((output) => {
      output.planWithoutTask = async ({ messages, ...rest }) => {
        seen(messages.length, rest)
        return { prompt: "Write it.", rescue: () => "words and facts" }
      }
    }),
  }))
  const compaction = request()
  await call("compaction", compaction)
  expect(seen).toHaveBeenCalledExactlyOnceWith(3, { summary: "before", isUsers: true })
  expect(compaction).toMatchObject({ result: { summary: "words and facts" } })
  await end()
})

test(promised("v2.B8", "what is left to OpenCode has no result, and the task among its messages"), async () => {
  const { context, call } = createFake()
  const end = await serve("thing", context, async () => ({
    "experimental.session.compacting": compacting((output) => {
      output.isLeftToOpenCode = true
      output.context.push("the task")
    }),
  }))
  const compaction = request()
  await call("compaction", compaction)
  expect(compaction).not.toHaveProperty("result")
  expect(compaction.messages).toEqual([{ role: "user", content: [{ type: "text", text: "the task" }] }])
  await end()
})
