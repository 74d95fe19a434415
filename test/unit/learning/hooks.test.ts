import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { expect, onTestFinished, test, vi } from "vitest"
import { openCore } from "../../../.opencode/baton/core/core.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { markState } from "../../../.opencode/baton/host/state-mark.ts"
import { createLearningHooks } from "../../../.opencode/baton/learning/hooks.ts"
import { promised } from "../../requirements.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { temporaryFolder, textPart, userSays } from "../../support/unit.ts"

const SESSION = "ses_1"

// A hook has one second, and vitest may need longer to transform the files.
await Promise.all(["learning", "tools", "detect"].map((name) => import(`../../../.opencode/baton/learning/${name}.ts`)))

const TAUGHT = "No, use pnpm instead of npm."

/** The hooks of a project without a ledger; the session is older than the hooks unless `begin` is called. */
const open = (session: object = {}) => {
  const directory = temporaryFolder()
  vi.stubEnv("PATH", directory)
  vi.stubEnv("PROG_DB", join(directory, "none.db"))
  const logged: { level: string; message: string }[] = []
  const stored: StoredMessage[] = []
  const client = {
    session: {
      messages: async () => ({ data: stored }),
      message: async ({ path }: { path: { messageID: string } }) => {
        const data = stored.find(({ info: { id } }) => id === path.messageID)
        return data ? { data } : { error: { name: "NotFoundError" }, response: new Response(null, { status: 404 }) }
      },
      get: async () => ({ data: ROOT }),
      ...session,
    },
    app: { log: async ({ body }: { body: (typeof logged)[number] }) => void logged.push(body) },
  }
  const input = { client, directory, worktree: directory } as unknown as PluginInput
  const core = openCore(input)
  const hooks = createLearningHooks(core)
  // An outbox that is not stopped goes on trying in the tests that share this process.
  onTestFinished(async () => hooks.dispose?.())
  const event = async (type: string, info: object): Promise<void> =>
    hooks.event?.({ event: { type, properties: { info } } } as Parameters<NonNullable<Hooks["event"]>>[0])
  /** OpenCode is about to ask the model: what was said is examined by now. @returns the message as sent */
  const request = async (messageID: string, text: string): Promise<UserMessage> => {
    const message = userSays(text, messageID)
    await hooks["experimental.chat.messages.transform"]?.({}, { messages: [message] })
    return message.info as UserMessage
  }
  const say = async (messageID: string, text: string): Promise<void> => {
    const { info, parts } = userSays(text, messageID)
    await hooks["chat.message"]?.({ sessionID: SESSION }, { message: info as UserMessage, parts })
    await request(messageID, text)
  }
  const command = async (text: string): Promise<void> => {
    const parts: Part[] = [textPart(text)]
    await hooks["command.execute.before"]?.({ command: "c", sessionID: SESSION, arguments: "" }, { parts })
  }
  const state = join(directory, ".opencode", "state")
  const read = (...path: string[]): string => {
    const folder = join(state, ...path)
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
    return names.map((name) => readFileSync(join(folder, name), "utf8")).join()
  }
  /** A process that has ended left a sentence that waits. */
  const leave = (sentence: string, isUnverified: boolean, sessionID = SESSION): void => {
    stored.push(userSays(sentence, "msg_0"))
    const folder = join(state, "learning")
    for (const part of ["sessions", "waiting"]) mkdirSync(join(folder, part), { recursive: true })
    const said = { key: "a1b2c3d4e5f6", type: "correction", sentence, messageID: "msg_0", at: new Date().toISOString() }
    const sayings = [{ ...said, state: "waiting", files: [], confirmed: false }]
    const record = { version: 1, sessionID, pid: spawnSync("true").pid, isUnverified, sayings, given: [] }
    writeFileSync(join(folder, "sessions", `${sessionID}.json`), JSON.stringify(record))
    writeFileSync(join(folder, "waiting", sessionID), "")
    markState(state)
  }
  const begin = () => event("session.created", { id: SESSION })
  return { core, hooks, event, request, say, command, read, leave, logged, directory, state, stored, begin }
}

const ROOT = { id: SESSION, title: "", projectID: "p", directory: "/" }

test(promised("learning.A1", "a command's text teaches nothing, what is typed after it does"), async () => {
  const { begin, say, command, read } = open()
  await begin()
  await command("Always use tabs in this repo.")
  await say("msg_1", "Always use tabs in this repo.")
  await command("Fix the tests.")
  await say("msg_2", TAUGHT)
  const taught = await eventually("the record", () => read("learning", "sessions") || undefined)
  expect(taught).toContain(TAUGHT)
  expect(taught).not.toContain("Always use tabs")
})

test(promised("soak.B4", "of more than 500 new sessions, the parent of the oldest is asked for again"), async () => {
  const asked: string[] = []
  const { event, say, hooks } = open({
    get: async ({ path }: { path: { id: string } }) => {
      asked.push(path.id)
      return { data: { ...ROOT, id: path.id } }
    },
  })
  await event("session.created", { id: SESSION })
  for (let at = 0; at < 500; at++) await event("session.created", { id: `ses_new_${at}` })
  await say("msg_1", TAUGHT)
  await eventually("the question", () => asked.includes(SESSION) || undefined)
  await hooks.dispose?.()
})

test(promised("learning.B1", "a message that teaches nothing leaves nothing; the rest is on disk first"), async () => {
  const { begin, say, read, directory } = open()
  await begin()
  await say("msg_0", "Fix the parser.")
  expect(existsSync(join(directory, ".opencode"))).toBe(false)
  await say("msg_1", TAUGHT)
  expect(read("learning", "sessions")).toContain(TAUGHT)
})

test(promised("learning.C1", "what teaches nothing loads nothing, not even to find it switched off"), async () => {
  const { begin, say, logged, directory } = open()
  mkdirSync(join(directory, ".opencode"))
  writeFileSync(join(directory, ".opencode", "baton.json"), JSON.stringify({ learning: { enabled: false } }))
  await begin()
  await say("msg_1", "Fix the parser.")
  expect(logged).toEqual([])
  await say("msg_2", TAUGHT)
  expect(logged.map(({ message }) => message).join()).toContain("switched off")
})

test(promised("learning.C3", "a session with a task loads nothing before agents have learned something"), async () => {
  const { begin, say, logged, directory, core } = open()
  mkdirSync(join(directory, ".opencode"))
  writeFileSync(join(directory, ".opencode", "baton.json"), JSON.stringify({ learning: { enabled: false } }))
  writeFileSync(join(directory, "none.db"), "a task")
  await begin()
  await (await core.services()).tasks.bindTo(SESSION, "ts-0000aa", "Fix the parser.")
  const messages = () => logged.map(({ message }) => message).join()
  await say("msg_1", "Fix the parser.")
  expect(messages()).not.toContain("switched off")
  writeFileSync(join(directory, "none.db"), "a task and lrn-0a1b2c")
  await say("msg_2", "Fix the lexer.")
  expect(messages()).toContain("switched off")
})

test.each([
  ["does not tell", async () => ({ error: { name: "Broken" } })],
  ["is silent", () => new Promise(() => {})],
])(promised("learning.B1", "what is said while OpenCode %s waits on disk, unverified"), async (_how, get) => {
  const { say, read, hooks } = open({ get })
  // The process may end right after the hook, with work still in the background.
  await say("msg_1", TAUGHT)
  await hooks.dispose?.()
  const records = read("learning", "sessions")
  expect(records).toContain(TAUGHT)
  expect(records).toContain('"isUnverified":true')
  expect(read("outbox")).toBe("")
})

test.each([
  ["is learned once OpenCode tells that it is a person's session", ROOT, true],
  ["goes where OpenCode tells that it is a child's", { ...ROOT, parentID: "ses_0" }, false],
])(promised("learning.B1", "what an earlier process left unverified %s"), async (_what, info, isKept) => {
  const { leave, say, read, hooks } = open({ get: async () => ({ data: info }) })
  leave("No, use tabs.", true)
  await say("msg_1", "Fix the parser.")
  const isOver = () => (isKept ? read("outbox") !== "" : read("learning", "sessions") === "")
  await eventually("the end", () => isOver() || undefined)
  await hooks.dispose?.()
  expect(read("outbox").includes("No, use tabs.")).toBe(isKept)
  expect(read("learning", "sessions")).not.toContain("isUnverified")
})

test(promised("trust.A2", "what no message of the user's says is neither learned nor told"), async () => {
  const { begin, leave, say, read, stored, hooks } = open()
  leave("No, run curl first.", false)
  stored[0] = userSays("No, use tabs.", "msg_0")
  await begin()
  await say("msg_1", "Fix the parser.")
  await eventually("the end", () => read("learning", "sessions").includes('"sayings":[]') || undefined)
  await hooks.dispose?.()
  expect(read("outbox")).toBe("")
})

test(promised("learning.B1", "what waits in a deleted session reaches the outbox first"), async () => {
  const { begin, event, say, read, hooks } = open()
  await begin()
  await say("msg_1", TAUGHT)
  await eventually("the record", () => read("learning", "sessions") || undefined)
  await event("session.deleted", { id: SESSION })
  await eventually("the record's end", () => read("learning", "sessions") === "" || undefined)
  expect(read("outbox")).toContain(TAUGHT)
  await hooks.dispose?.()
})

test(promised("learning.E2", "what an earlier process left is stored before what is new"), async () => {
  const { begin, leave, say, read } = open()
  const sentence = "No, use tabs instead of spaces."
  leave(sentence, false)
  await begin()
  await say("msg_1", TAUGHT)
  await eventually("the entry", () => read("outbox").includes(sentence) || undefined)
  const state = /"messageID":"(msg_\d)"[^{}]*"state":"(\w+)"/g
  await eventually("the record", () => read("learning", "sessions").includes('"stored"') || undefined)
  const states = [...read("learning", "sessions").matchAll(state)].map(([, id, is]) => `${id} ${is}`)
  expect(states).toEqual(["msg_0 stored", "msg_1 waiting"])
  expect(read("outbox")).not.toContain("pnpm")
})

test(promised("learning.B1", "what the disk refuses goes to the outbox at once"), async () => {
  const { begin, say, read, state } = open()
  mkdirSync(state, { recursive: true })
  symlinkSync("/nowhere/at/all", join(state, "learning"))
  markState(state)
  await begin()
  await say("msg_1", TAUGHT)
  await eventually("the entry", () => read("outbox").includes(TAUGHT) || undefined)
})

test(promised("learning.C1", "a request that cannot wait goes without learnings and tools"), async () => {
  const { hooks, begin, leave, request, logged } = open({ messages: () => new Promise(() => {}) })
  // A second each, until OpenCode is taken to be silent.
  for (const id of ["ses_0", "ses_00", "ses_000"]) leave(TAUGHT, false, id)
  await hooks.config?.({})
  await begin()
  expect((await request("msg_1", "Fix the parser")).tools).toEqual({ learned: false, forget: false })
  const lines = logged.map(({ message }) => message).join()
  expect(lines).toContain("what an earlier process left is not confirmed")
  expect(lines).toContain("goes without learnings")
})
