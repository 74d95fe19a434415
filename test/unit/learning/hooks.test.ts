import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { Part, TextPart, UserMessage } from "@opencode-ai/sdk"
import { afterEach, describe, expect, test, vi } from "vitest"
import { createLearningHooks } from "../../../.opencode/baton/learning/hooks.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

const SESSION = "ses_1"

// A hook has a second; vitest may take longer to make modules of the files.
await Promise.all(["learning", "tools", "detect"].map((name) => import(`../../../.opencode/baton/learning/${name}.ts`)))
afterEach(() => vi.unstubAllEnvs())

const textPart = (messageID: string, text: string): TextPart => ({
  id: `prt_${messageID}`,
  sessionID: SESSION,
  messageID,
  type: "text",
  text,
})

const userInfo = (id: string): UserMessage => ({
  id,
  sessionID: SESSION,
  role: "user",
  time: { created: 1 },
  agent: "build",
  model: { providerID: "p", modelID: "m" },
})

/** The hooks in a project without a ledger, in a session that began before them unless `begin` is called. */
const open = ({ session = {} }: { session?: object } = {}, prepare: (directory: string) => void = () => {}) => {
  const directory = temporaryFolder()
  prepare(directory)
  vi.stubEnv("PATH", directory)
  vi.stubEnv("PROG_DB", join(directory, "none.db"))
  const logged: { level: string; message: string }[] = []
  const client = {
    session: { messages: async () => ({ data: [] }), ...session },
    app: { log: async ({ body }: { body: (typeof logged)[number] }) => void logged.push(body) },
  }
  const input = { client, directory, worktree: directory } as unknown as PluginInput
  const hooks = createLearningHooks(input)
  const event = async (type: string, info: object): Promise<void> =>
    hooks.event?.({ event: { type, properties: { info } } } as Parameters<NonNullable<Hooks["event"]>>[0])
  const say = async (messageID: string, text: string): Promise<void> => {
    const parts: Part[] = [textPart(messageID, text)]
    await hooks["chat.message"]?.({ sessionID: SESSION }, { message: userInfo(messageID), parts })
  }
  const command = async (text: string): Promise<void> => {
    const parts: Part[] = [textPart("", text)]
    await hooks["command.execute.before"]?.({ command: "c", sessionID: SESSION, arguments: "" }, { parts })
  }
  const read = (...path: string[]): string[] => {
    const folder = join(directory, ".opencode", "state", ...path)
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
    return names.map((name) => readFileSync(join(folder, name), "utf8"))
  }
  /** Names of the messages that a next process would read. */
  const unread = (): string[] => {
    const folder = join(directory, ".opencode", "state", "unread")
    return existsSync(folder) ? readdirSync(folder) : []
  }
  const begin = () => event("session.created", { id: SESSION })
  return { hooks, event, say, command, read, unread, logged, directory, begin }
}

const ROOT = { id: SESSION, title: "", projectID: "p", directory: "/" }

type UnreadCase = {
  readonly messages: () => Promise<object>
  readonly get?: () => Promise<object>
  /** Names and contents of the files that name messages; default: one, of a process that is gone. */
  readonly files?: Record<string, string>
}

/** A project in which another process left messages unread. */
const openWithUnread = ({ messages, get = async () => ({ data: ROOT }), files }: UnreadCase) =>
  open({ session: { messages, get } }, (directory) => {
    const folder = join(directory, ".opencode", "state", "unread")
    mkdirSync(folder, { recursive: true })
    const left = files ?? { [`${SESSION}.msg_0`]: String(spawnSync("true").pid) }
    for (const [name, text] of Object.entries(left)) writeFileSync(join(folder, name), text)
  })

describe("the hooks of session learning", () => {
  test(
    promised("learning.A1", "what a command became teaches nothing; what is typed after one that failed does"),
    async () => {
      const { begin, say, command, read } = open()
      await begin()
      await command("Always use tabs in this repo.")
      await say("msg_1", "Always use tabs in this repo.")
      await command("Fix the tests.")
      await say("msg_2", "No, use pnpm instead of npm.")
      const taught = await eventually("the record", () => read("learning", "sessions")[0])
      expect(taught).toContain("No, use pnpm instead of npm.")
      expect(taught).not.toContain("Always use tabs")
    },
  )

  test(promised("learning.B1", "no request waits for what its message may teach, and no end loses it"), async () => {
    const { begin, say, read, unread, hooks } = open()
    await begin()
    await say("msg_1", "No, use pnpm instead of npm.")
    expect(read("learning", "sessions")).toEqual([])
    expect(unread()).toEqual([`${SESSION}.msg_1`])
    await hooks.dispose?.()
    expect(read("learning", "sessions").join()).toContain("No, use pnpm instead of npm.")
    expect(unread()).toEqual([])
  })

  test(
    promised("learning.B1", "a message that teaches nothing leaves nothing once its request is on its way"),
    async () => {
      const { begin, say, unread, directory, hooks } = open()
      await begin()
      await say("msg_1", "Fix the parser.")
      expect(unread()).toHaveLength(1)
      await hooks["chat.params"]?.(...([{}, {}] as unknown as Parameters<NonNullable<Hooks["chat.params"]>>))
      await eventually("the file's end", () => (unread().length === 0 ? true : undefined))
      expect(readdirSync(join(directory, ".opencode", "state"))).toEqual([".gitignore"])
    },
  )

  test.each(["at its first message", "when something is known already"])(
    promised(
      "learning.B1",
      "what is said while OpenCode does not tell whose session it is waits for the next process, %s",
    ),
    async (when) => {
      const failing = { get: async () => ({ error: { name: "Broken" } }) }
      const { say, read, unread, hooks } = open({ session: failing }, (directory) => {
        if (when !== "at its first message")
          mkdirSync(join(directory, ".opencode", "state", "learning"), { recursive: true })
      })
      await say("msg_1", "No, use pnpm instead of npm.")
      await say("msg_2", "Fix the parser.")
      await hooks.dispose?.()
      expect(read("learning", "sessions")).toEqual([])
      expect(unread()).toEqual([`${SESSION}.msg_1`])
    },
  )

  test(
    promised("learning.B1", "where something is known, a message that its hook had no time for is not lost either"),
    async () => {
      const { say, unread } = open({ session: { get: () => new Promise(() => {}) } }, (directory) => {
        mkdirSync(join(directory, ".opencode", "state", "learning"), { recursive: true })
      })
      // The process may end as soon as the hook has, whatever goes on behind it.
      await say("msg_1", "No, use pnpm instead of npm.")
      expect(unread()).toEqual([`${SESSION}.msg_1`])
    },
  )

  test(promised("learning.B1", "where no file can be made, a message is read before its request"), async () => {
    const { begin, say, read, directory } = open()
    mkdirSync(join(directory, ".opencode", "state"), { recursive: true })
    writeFileSync(join(directory, ".opencode", "state", "unread"), "")
    await begin()
    await say("msg_1", "No, use pnpm instead of npm.")
    expect(read("learning", "sessions").join()).toContain("No, use pnpm instead of npm.")
  })

  test(promised("learning.A1", "what is asked for is loaded at once, with what was said before it"), async () => {
    const { begin, say, read } = open()
    await begin()
    await say("msg_1", "No, use pnpm instead of npm.")
    await say("msg_2", "Which learnings do you have?")
    expect(read("learning", "sessions").join()).toContain("No, use pnpm instead of npm.")
  })

  describe("of a message that an earlier process did not come to read", () => {
    const SAID = { info: userInfo("msg_0"), parts: [textPart("msg_0", "No, use pnpm instead of npm.")] }
    const none = (unread: () => string[]) => eventually("no file", () => unread().length === 0 || undefined)

    test(promised("learning.B1", "learn before the next request, whatever stands in its file"), async () => {
      for (const text of [String(spawnSync("true").pid), "", "no number", String(process.pid)]) {
        const files = { [`${SESSION}.msg_0`]: text }
        const { begin, say, read, unread, hooks } = openWithUnread({ messages: async () => ({ data: [SAID] }), files })
        await hooks.config?.({})
        await begin()
        await say("msg_1", "Fix the parser.")
        const messages = [{ info: userInfo("msg_1"), parts: [textPart("msg_1", "Fix the parser.")] }]
        await hooks["experimental.chat.messages.transform"]?.({}, { messages })
        expect(read("learning", "sessions").join()).toContain('"messageID":"msg_0"')
        await none(unread)
      }
    })

    test(promised("learning.B1", "lose nothing that is said while OpenCode does not give it"), async () => {
      const { begin, say, read, unread } = openWithUnread({ messages: () => new Promise(() => {}) })
      await begin()
      await say("msg_1", "No, use tabs instead of spaces.")
      expect(read("learning", "sessions").join()).toContain('"messageID":"msg_1"')
      expect(unread()).toEqual([`${SESSION}.msg_0`])
    })

    test.each([
      ["its session's messages", { messages: async () => ({ error: { message: "busy" } }) }],
      [
        "its session's parent",
        { messages: async () => ({ data: [SAID] }), get: async () => ({ error: { message: "busy" } }) },
      ],
    ])(promised("learning.B1", "leave it to a later process when OpenCode cannot tell %s"), async (_what, given) => {
      const { begin, say, unread, logged } = openWithUnread(given)
      await begin()
      await say("msg_1", "Fix the parser.")
      await eventually("the warning", () => logged.some(({ message }) => message.includes("not read yet")) || undefined)
      expect(unread()).toEqual([`${SESSION}.msg_0`])
    })

    test.each([
      [
        "is gone with its session",
        {
          messages: async () => ({ error: { message: "not found" }, response: new Response(null, { status: 404 }) }),
        },
      ],
      [
        "was said in a child session",
        { messages: async () => ({ data: [SAID] }), get: async () => ({ data: { ...ROOT, parentID: "ses_0" } }) },
      ],
    ])(promised("learning.B1", "forget what %s"), async (_what, given) => {
      const { begin, say, read, unread } = openWithUnread(given)
      await begin()
      await say("msg_1", "Fix the parser.")
      await none(unread)
      expect(read("learning", "sessions")).toEqual([])
    })

    test(promised("learning.B1", "leave it to the process that is about to read it"), async () => {
      const files = { [`${SESSION}.msg_0`]: String(process.ppid) }
      const { begin, say, read, unread } = openWithUnread({ messages: async () => ({ data: [SAID] }), files })
      await begin()
      await say("msg_1", "No, use tabs instead of spaces.")
      expect(read("learning", "sessions").join()).not.toContain('"messageID":"msg_0"')
      expect(unread()).toEqual([`${SESSION}.msg_0`])
    })

    test(promised("learning.B1", "ask OpenCode for fifty at most, however many files there are"), async () => {
      let asked = 0
      const files = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`${SESSION}.msg_0${index}`, "0"]))
      const messages = async () => {
        asked++
        return { data: [] }
      }
      const { begin, say, unread } = openWithUnread({ messages, files: { ...files, "not a name": "" } })
      await begin()
      await say("msg_1", "Fix the parser.")
      await eventually("fifty fewer", () => unread().length === 31 || undefined)
      expect(asked).toBe(50)
    })
  })

  test(
    promised("learning.B1", "what waits in a session that is deleted reaches the outbox before its record goes"),
    async () => {
      const { begin, event, say, read, hooks } = open()
      await begin()
      await say("msg_1", "No, use pnpm instead of npm.")
      await eventually("the record", () => read("learning", "sessions")[0])
      await event("session.deleted", { id: SESSION })
      await eventually("the record's end", () => (read("learning", "sessions").length === 0 ? true : undefined))
      expect(read("outbox").join()).toContain("No, use pnpm instead of npm.")
      await hooks.dispose?.()
    },
  )

  test(
    promised(
      "learning.E2",
      "what an earlier process left is stored though its session goes on; what is new is not yet",
    ),
    async () => {
      const { begin, say, read, directory } = open()
      const folder = join(directory, ".opencode", "state", "learning")
      for (const part of ["sessions", "waiting"]) mkdirSync(join(folder, part), { recursive: true })
      const sentence = "No, use tabs instead of spaces."
      const said = {
        key: "a1b2c3d4e5f6",
        type: "correction",
        sentence,
        messageID: "msg_0",
        at: new Date().toISOString(),
      }
      const sayings = [{ ...said, state: "waiting", files: [], confirmed: false }]
      const record = { version: 1, sessionID: SESSION, pid: spawnSync("true").pid, sayings, given: [] }
      writeFileSync(join(folder, "sessions", `${SESSION}.json`), JSON.stringify(record))
      writeFileSync(join(folder, "waiting", SESSION), "")
      await begin()
      await say("msg_1", "No, use pnpm instead of npm.")
      await eventually("the entry", () => read("outbox").join().includes(sentence) || undefined)
      const state = /"messageID":"(msg_\d)"[^{}]*"state":"(\w+)"/g
      await eventually("the record", () => read("learning", "sessions").join().includes('"stored"') || undefined)
      const states = [...read("learning", "sessions").join().matchAll(state)].map(([, id, is]) => `${id} ${is}`)
      expect(states).toEqual(["msg_0 stored", "msg_1 waiting"])
      expect(read("outbox").join()).not.toContain("pnpm")
    },
  )

  test(
    promised("learning.B1", "what the disk refuses goes to the outbox at once, and does not wait for the turn's end"),
    async () => {
      const { begin, say, read, directory } = open()
      mkdirSync(join(directory, ".opencode", "state"), { recursive: true })
      symlinkSync("/nowhere/at/all", join(directory, ".opencode", "state", "learning"))
      await begin()
      await say("msg_1", "No, use pnpm instead of npm.")
      await eventually("the entry", () => read("outbox").join().includes("No, use pnpm instead of npm.") || undefined)
    },
  )

  test(
    promised("learning.C1", "a request that cannot wait for the learnings goes without them and without the tools"),
    async () => {
      const { hooks, logged, directory } = open({ session: { get: () => new Promise(() => {}) } })
      mkdirSync(join(directory, ".opencode", "state", "learning"), { recursive: true })
      await hooks.config?.({})
      const info = userInfo("msg_1")
      const messages = [{ info, parts: [textPart("msg_1", "Fix the parser")] }]
      await hooks["experimental.chat.messages.transform"]?.({}, { messages })
      expect(info.tools).toEqual({ learned: false, forget: false })
      expect(logged.map(({ message }) => message).join()).toContain("goes without learnings")
    },
  )
})
