import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { BOTH_ENDS, REPOSITORY } from "../../test/support/opencode-binary.ts"
import { eventually, type TestServer } from "../../test/support/opencode-server.ts"
import { START } from "../../test/support/pass-over-script.ts"
import type { ModelReply, Script } from "../../test/support/scripted-model.ts"
import { type BenchProject, withBenchProject, withServer } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { type Figure, toFigure } from "./results.ts"

const OVERHEAD_MS = 50

const LOOK = "PASSED-LOOK"
const WRITE = "PASSED-WRITE"

const passTo = (subagent: string, objective: string): ModelReply => ({
  tool: "pass_over",
  input: { subagent, objective, reason: "bench", messages: 0 },
})

const WAYS = {
  plain: { tool: "plain_child", input: {} },
  reader: passTo("audit", LOOK),
  talker: passTo("general", LOOK),
  "plain-writer": { tool: "plain_writer", input: {} },
  writer: passTo("general", WRITE),
  "thinking-plain-writer": { tool: "plain_writer", input: {} },
  "thinking-writer": passTo("general", WRITE),
} as const satisfies Record<string, ModelReply>

type Way = keyof typeof WAYS

const OVER: readonly { readonly way: Way; readonly plain: Way; readonly what: string }[] = [
  { way: "reader", plain: "plain", what: "a pass to a reader, over that" },
  { way: "talker", plain: "plain", what: "one that may change files (and does not), over that" },
  { way: "writer", plain: "plain-writer", what: "one that writes a file, over a child that does" },
  {
    way: "thinking-writer",
    plain: "thinking-plain-writer",
    what: "the same, with a model that takes half a second",
  },
]

/** Soon, for a model. */
const THINKING_MS = 500

const RETURN: ModelReply = {
  tool: "pass_over_return",
  input: { status: "completed", summary: "Looked at.", decision: "approved" },
}
const NOTE: ModelReply = { tool: "plain_note", input: {} }
const DONE: ModelReply = { text: "Done." }

const writeFile = (conversation: string): ModelReply => ({
  tool: "write",
  input: {
    filePath: `written/${conversation.length}-${Math.random().toString(36).slice(2)}.txt`,
    content: "written\n",
  },
})

/** What a child does, step by step; in a way and its plain one as often. */
const CHILDREN: Readonly<Record<string, readonly ((conversation: string) => ModelReply)[]>> = {
  "PLAIN-LOOK": [() => NOTE, () => DONE],
  [LOOK]: [() => RETURN, () => DONE],
  "PLAIN-WRITE": [writeFile, () => NOTE, () => DONE],
  [WRITE]: [writeFile, () => RETURN, () => DONE],
}

/** Of the way that is measured. */
let thinksFor = 0

const script: Script = async ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "A summary." }
  if (thinksFor > 0) await wait(thinksFor)
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  const steps = last.match(/^\[tool\] /gm)?.length ?? 0
  const way = (Object.keys(WAYS) as Way[]).find((each) => last.includes(`${START} ${each}.`))
  if (way) return steps === 0 ? WAYS[way] : DONE
  const child = Object.keys(CHILDREN).find((word) => last.includes(word))
  return (child === undefined ? undefined : CHILDREN[child]?.[steps]?.(conversation)) ?? DONE
}

const openProject = ({ project }: BenchProject): void => {
  const module = join(REPOSITORY, "scripts", "benchmarks", "inside", "plain-child.ts")
  project.write(".opencode/plugins/plain-child.ts", `export * from ${JSON.stringify(module)}\n`)
  project.write(".opencode/pass-over.json", JSON.stringify({ defaults: { max_passes_per_session: 10_000 } }))
}

/** What a turn has set going behind its end, such as a subagent's closing words, is over. */
const isQuiet = async (client: TestServer["client"]): Promise<boolean> => {
  const status = (await client.session.status()).data ?? {}
  return Object.values(status).every(({ type }) => type === "idle")
}

const REST_MS = 100

/**
 * What a pass costs over a plain child session, from the user's message to the end of the turn, in `opencode serve`; each round has
 * one of each in a new session, none begins before everything of the one before has ended, and the difference is taken within the
 * round.
 */
export const measurePass: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 3 : 30
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    say(`pass on ${binary.version}: ${rounds} rounds of ${Object.keys(WAYS).length}`)
    const values = await withBenchProject(binary, script, { context: 100_000 }, async (bench) => {
      openProject(bench)
      return withServer(bench, {}, async ({ client }) => {
        const once = async (way: Way): Promise<number> => {
          thinksFor = way.startsWith("thinking-") ? THINKING_MS : 0
          const id = (await client.session.create({ body: { title: way } })).data?.id ?? ""
          const started = performance.now()
          await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: `${START} ${way}.` }] } })
          const ms = performance.now() - started
          await eventually("the end of all turns", async () => (await isQuiet(client)) || undefined)
          await wait(REST_MS)
          const children = (await client.session.children({ path: { id } })).data ?? []
          if (children.length === 1) return ms
          const messages = (await client.session.messages({ path: { id } })).data ?? []
          throw new Error(`${way}: expected one child session, received ${JSON.stringify(messages).slice(-1_500)}`)
        }
        const ways = Object.fromEntries((Object.keys(WAYS) as Way[]).map((way) => [way, () => once(way)])) as Record<
          Way,
          () => Promise<number>
        >
        // The first of each loads what the others find loaded.
        await interleave(ways, 2)
        return interleave(ways, rounds)
      })
    })
    const about = { version: binary.version, unit: "ms" } as const
    figures.push(toFigure({ id: "pass.plain", what: "a plain child session", ...about }, values.plain))
    for (const { way, plain, what } of OVER) {
      const over = values[way].map((ms, round) => ms - (values[plain][round] ?? 0))
      figures.push(toFigure({ id: `pass.${way}`, what, ...about, below: OVERHEAD_MS }, over))
    }
  }
  return { figures }
}
