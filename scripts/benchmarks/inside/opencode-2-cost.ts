/**
 * `opencode-2-cost.ts PROJECT HOME TASK ROUNDS EVENTS SIZE…`: prints costs of the bundle in OpenCode 2's runtime, on a stand-in for its
 * context whose messages are in memory. In ms: the hook of a request in a session of SIZE messages that works on TASK. In µs per
 * event, alternating in rounds of EVENTS: a token delta, and the same events with nothing that hears them.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { interleave } from "../measure.ts"

type Hook = (event: object) => Promise<void>
type Plugin = { default: { setup(context: object): Promise<(() => Promise<void>) | undefined> } }

const [directory = "", home = "", taskID = "", rounds = "0", events = "0", ...sizes] = process.argv.slice(2)
Object.assign(process.env, {
  HOME: home,
  XDG_DATA_HOME: join(home, ".local/share"),
  PROG_DB: join(home, ".prog/prog.db"),
  BATON_LEDGER: "embedded",
})

const model = { id: "model", providerID: "scripted" }
const time = { created: 1, completed: 2 }

/** A user's message and two steps of the agent, again and again. */
const entriesOf = (size: number): Record<string, unknown>[] =>
  Array.from({ length: size }, (_, index) => {
    const id = `msg_${size}_${String(index).padStart(6, "0")}`
    if (index === 0) return { type: "user", id, text: `Task: ${taskID}\n\nGo on until the tests pass.`, time }
    if (index % 3 === 0) return { type: "user", id, text: "And the next part, please.", time }
    const state = {
      status: "completed",
      input: { command: "npm test" },
      content: [{ type: "text", text: "ok ".repeat(100) }],
    }
    const call = { type: "tool", id: `call_${index}`, name: "shell", state, time }
    const said = { type: "text", text: "The step is done. ".repeat(20) }
    return { type: "assistant", id, agent: "build", model, finish: "stop", content: [said, call], time }
  })

const sessions = new Map(sizes.map((size) => [`ses_${size}`, entriesOf(Number(size))]))
const contextOf = async ({ sessionID }: { sessionID: string }) => sessions.get(sessionID) ?? []

const hooks = new Map<string, Hook[]>()
const hook = async (name: string, run: Hook) => void hooks.set(name, [...(hooks.get(name) ?? []), run])
const call = async (name: string, event: object): Promise<void> => {
  for (const run of hooks.get(name) ?? []) await run(event)
}

const delta = {
  id: "evt_1",
  created: 1,
  type: "session.text.delta",
  location: { directory },
  data: { sessionID: "ses_1", delta: "token" },
}
/** Wakes the listener, which then takes as many events as are asked for. */
let begin: (() => void) | undefined
let left = 0
let ended: (() => void) | undefined
const subscribe = () => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      if (left === 0) {
        ended?.()
        await new Promise<void>((resolve) => {
          begin = resolve
        })
      }
      left--
      return { done: false, value: delta }
    },
  }),
})

const list = async () => ({ data: [] })
const transform = async () => {}
const context = {
  app: { version: "2.0.15" },
  location: { directory, project: { id: "p", directory } },
  session: {
    hook,
    get: async ({ sessionID }: { sessionID: string }) => ({
      id: sessionID,
      projectID: "p",
      agent: "build",
      model,
      time: { created: 1, updated: 1 },
      location: { directory },
    }),
    context: contextOf,
    generate: async () => ({ text: "" }),
  },
  tool: { hook, transform },
  shell: { hook },
  permission: { hook },
  command: { list, transform },
  agent: { list },
  model: { list: async () => ({ data: [{ ...model, limit: { context: 100_000, output: 4_000 } }] }) },
  event: { subscribe },
}
const folder = join(directory, ".opencode/plugins")
for (const name of readdirSync(folder).sort())
  await ((await import(join(folder, name))) as Plugin).default.setup(context)

const request = async (sessionID: string): Promise<number> => {
  const entries = sessions.get(sessionID) ?? []
  const messages = entries.map(({ id, type, text, content }) => ({
    id,
    role: type,
    content: type === "user" ? [{ type: "text", text }] : structuredClone(content),
  }))
  const event = { sessionID, agent: "build", model, system: [], messages, tools: {}, options: {} }
  const started = performance.now()
  await call("context", event)
  const ms = performance.now() - started
  if (
    JSON.stringify(event.messages).includes(`Task: ${taskID}\\n`) &&
    JSON.stringify(event.messages).includes("[Baton]")
  )
    return ms
  throw new Error(`the request of ${sessionID} does not hold the task`)
}

for (const [sessionID, entries] of sessions) {
  const [first] = entries
  await call("prompt", { sessionID, messageID: first?.id, prompt: { text: first?.text } })
  // Not measured: the rest of the bundle is loaded, and the task read.
  await request(sessionID)
}
const times = await interleave(
  Object.fromEntries(sizes.map((size) => [`hook${size}`, () => request(`ses_${size}`)])) as Record<
    string,
    () => Promise<number>
  >,
  Number(rounds),
)

const microseconds = async (take: () => Promise<void>): Promise<number> => {
  const started = performance.now()
  await take()
  return ((performance.now() - started) * 1_000) / Number(events)
}
const heard = () =>
  new Promise<void>((resolve) => {
    ended = resolve
    left = Number(events)
    begin?.()
  })
const unheard = async (): Promise<void> => {
  const iterator = { next: async () => ({ done: false, value: delta }) }
  for (let index = 0; index < Number(events); index++) await iterator.next()
}
const subjects = { delta: () => microseconds(heard), nothing: () => microseconds(unheard) }
await interleave(subjects, 1)
const { delta: heardUs, nothing } = await interleave(subjects, Number(rounds))
console.log(JSON.stringify({ ...times, delta: heardUs, nothing }))
process.exit(0)
