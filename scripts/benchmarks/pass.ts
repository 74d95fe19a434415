import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { passOver, returns, START, stepsMade } from "../../test/support/model/pass-over-script.ts"
import { type ModelReply, newestWords, type Script } from "../../test/support/model/scripted-model.ts"
import { createSession, openModelProject, openServer, speak } from "../../test/support/opencode/model-project.ts"
import { eventually, type TestServer } from "../../test/support/opencode/opencode-server.ts"
import { interleave, pairRatios } from "./measure.ts"
import { INSIDE, runInside } from "./project.ts"
import type { Benchmark } from "./results.ts"

const OVERHEAD_MS = 50
const HELD_MS = 20
const FILES = 1_000
const MANY_FILES = 20_000
/** A fast answer of a model. */
const THINKING_MS = 500
const REST_MS = 100

const passTo = (subagent: string, objective: string) => passOver({ subagent, objective, reason: "bench", messages: 0 })

/** Tool calls for the user's order; each way makes as many requests as its plain counterpart. */
const WAYS = {
  plain: { tool: "plain_child", input: {} },
  reader: passTo("audit", "PASSED-LOOK"),
  talker: passTo("general", "PASSED-LOOK"),
  "plain-writer": { tool: "plain_writer", input: {} },
  writer: passTo("general", "PASSED-WRITE"),
  "thinking-plain-writer": { tool: "plain_writer", input: {} },
  "thinking-writer": passTo("general", "PASSED-WRITE"),
} as const satisfies Record<string, ModelReply>
type Way = keyof typeof WAYS
const WAY_NAMES = Object.keys(WAYS) as Way[]

const OVER: readonly (readonly [way: Way, plain: Way, what: string])[] = [
  ["reader", "plain", "a pass to a reader, over that"],
  ["talker", "plain", "one that may change files (and does not), over that"],
  ["writer", "plain-writer", "one that writes a file, over a child that does"],
  ["thinking-writer", "thinking-plain-writer", "one that writes a file, with a model that takes half a second"],
]

const DONE: ModelReply = { text: "Done." }
const giveBack = () => returns({ decision: "approved" })
const note = () => ({ tool: "plain_note", input: {} })
let files = 0
const writeFile = () => ({ tool: "write", input: { filePath: `written/${++files}.txt`, content: "written\n" } })

const CHILDREN: Readonly<Record<string, readonly (() => ModelReply)[]>> = {
  "PLAIN-LOOK": [note],
  "PASSED-LOOK": [giveBack],
  "PLAIN-WRITE": [writeFile, note],
  "PASSED-WRITE": [writeFile, giveBack],
}

/** Files of a project, in folders of 50. */
const projectFiles = (count: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`src/${Math.floor(at / 50)}/file-${at}.ts`, `export const n = ${at}\n`]),
  )

/** Delay of the model's answers for the measured way, in ms. */
let thinksFor = 0

const script: Script = async (request) => {
  if (request.kind === "compaction") return { text: "A summary." }
  if (thinksFor > 0) await wait(thinksFor)
  const [last, steps] = [newestWords(request), stepsMade(request)]
  const way = WAY_NAMES.find((each) => last.includes(`${START} ${each}.`))
  if (way) return steps === 0 ? WAYS[way] : DONE
  const child = Object.keys(CHILDREN).find((word) => last.includes(word)) ?? ""
  return CHILDREN[child]?.[steps]?.() ?? DONE
}

/** Work after the turn's end, such as a subagent's closing words, is over, too. */
const isQuiet = async ({ client }: TestServer): Promise<true | undefined> => {
  const { data } = await client.session.status()
  return (data && Object.values(data).every(({ type }) => type === "idle")) || undefined
}

/**
 * Measures the cost of a pass over a plain child session, from the user's message to the end of the turn, in `opencode serve`.
 * Each round has one of each in a new session, one after the other, and gives one difference.
 */
export const measurePass: Benchmark = async ({ binary, quick, figure }) => {
  /** Measures the sandbox by itself in OpenCode's runtime. */
  const measureSandbox = async (count: number, sandboxes: number): Promise<void> => {
    await using project = await openModelProject(binary, script, { files: projectFiles(count) })
    const values = await runInside(binary, "sandbox-cost.ts", project.project.directory, quick ? 2 : sandboxes)
    const of = `of ${count.toLocaleString("en")} files`
    figure(`pass.sandbox.begun.${count}`, `making a sandbox ${of}, until the child is prompted`, "ms", values("begun"))
    figure(`pass.sandbox.ready.${count}`, `making a sandbox ${of}, until its tools work`, "ms", values("ready"))
    figure(`pass.sandbox.stored.${count}`, `storing one changed file in a sandbox ${of}`, "ms", values("stored"))
    const held = `the longest that OpenCode's thread is held for all that, ${of.slice(3)}`
    figure(`pass.sandbox.held.${count}`, held, "ms", values("held"), HELD_MS)
    figure(`pass.sandbox.idle.${count}`, "the same without a pass", "ms", values("idle"))
  }
  const rounds = quick ? 3 : 30
  await using opened = await openModelProject(binary, script, { context: 100_000, files: projectFiles(FILES) })
  const plugin = JSON.stringify(join(INSIDE, "plain-child.ts"))
  opened.project.write(".opencode/plugins/plain-child.ts", `export * from ${plugin}\n`)
  opened.project.write(
    ".opencode/pass-over.json",
    '{ "defaults": { "auto_return": true, "max_passes_per_session": 10000 } }',
  )
  await using server = await openServer(opened)
  const once = (way: Way) => async (): Promise<number> => {
    thinksFor = way.startsWith("thinking-") ? THINKING_MS : 0
    const id = await createSession(server)
    const ms = await speak(server, id, `${START} ${way}.`)
    await eventually("the end of all turns", () => isQuiet(server))
    await wait(REST_MS)
    const children = (await server.client.session.children({ path: { id } })).data ?? []
    if (children.length === 1) return ms
    throw new Error(`${way}: expected one child session, received ${children.length}`)
  }
  const ways = Object.fromEntries(WAY_NAMES.map((way) => [way, once(way)])) as Record<Way, () => Promise<number>>
  // The first of each loads code for the others.
  await interleave(ways, 2)
  const values = await interleave(ways, rounds)
  figure("pass.plain", "a plain child session", "ms", values.plain)
  for (const [way, plain, what] of OVER) {
    const more = values[way].map((ms, round) => ms - (values[plain][round] ?? 0))
    figure(`pass.${way}`, what, "ms", more, OVERHEAD_MS)
    const ratios = pairRatios(values[plain], values[way])
    if (way === "talker" || way === "writer")
      figure(`pass.${way}-ratio`, "the same, as a share of the plain one", "×", ratios)
  }
  await measureSandbox(FILES, 20)
  await measureSandbox(MANY_FILES, 6)
}
