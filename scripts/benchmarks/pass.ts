import { join } from "node:path"
import { BOTH_ENDS, REPOSITORY } from "../../test/support/opencode-binary.ts"
import { START } from "../../test/support/pass-over-script.ts"
import type { ModelReply, Script } from "../../test/support/scripted-model.ts"
import { type BenchProject, withBenchProject, withServer } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { type Figure, toFigure } from "./results.ts"

const OVERHEAD_MS = 50

const passTo = (subagent: string): ModelReply => ({
  tool: "pass_over",
  input: { subagent, objective: "PASSED-WORK", reason: "bench", messages: 0 },
})

const WAYS = {
  plain: { call: { tool: "plain_child", input: {} }, what: "a plain child session" },
  reader: { call: passTo("audit"), what: "a pass to a reader" },
  writer: { call: passTo("general"), what: "a pass to an agent that may change files" },
} as const satisfies Record<string, { call: ModelReply; what: string }>

type Way = keyof typeof WAYS

/** In each way the root asks the model twice and the child twice: a tool, and closing words. */
const script: Script = ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "A summary." }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("PLAIN-WORK")) return { tool: "plain_note", input: {} }
  if (last.includes("PASSED-WORK"))
    return { tool: "pass_over_return", input: { status: "completed", summary: "Looked at.", decision: "approved" } }
  const way = (Object.keys(WAYS) as Way[]).find((each) => last.includes(`${START} ${each}`))
  return way ? WAYS[way].call : { text: "Noted." }
}

const openProject = ({ project }: BenchProject): void => {
  const module = join(REPOSITORY, "scripts", "benchmarks", "inside", "plain-child.ts")
  project.write(".opencode/plugins/plain-child.ts", `export * from ${JSON.stringify(module)}\n`)
  project.write(".opencode/pass-over.json", JSON.stringify({ defaults: { max_passes_per_session: 10_000 } }))
}

/**
 * What a pass costs over a plain child session, from the user's message to the end of the turn, in `opencode serve`; each round has
 * one of each in a new session, and the difference is taken within the round.
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
          const id = (await client.session.create({ body: { title: way } })).data?.id ?? ""
          const started = performance.now()
          await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: `${START} ${way}` }] } })
          const ms = performance.now() - started
          const children = (await client.session.children({ path: { id } })).data ?? []
          if (children.length === 1) return ms
          const messages = (await client.session.messages({ path: { id } })).data ?? []
          throw new Error(`${way}: expected one child session, received ${JSON.stringify(messages).slice(-1_500)}`)
        }
        const ways = { plain: () => once("plain"), reader: () => once("reader"), writer: () => once("writer") }
        // The first of each loads what the others find loaded.
        await interleave(ways, 2)
        return interleave(ways, rounds)
      })
    })
    const over = (way: Way): number[] => values[way].map((ms, round) => ms - (values.plain[round] ?? 0))
    const about = { version: binary.version, unit: "ms" } as const
    figures.push(toFigure({ id: "pass.plain", what: WAYS.plain.what, ...about }, values.plain))
    figures.push(
      toFigure(
        { id: "pass.reader", what: `${WAYS.reader.what}, over that`, ...about, below: OVERHEAD_MS },
        over("reader"),
      ),
    )
    figures.push(
      toFigure(
        { id: "pass.writer", what: `${WAYS.writer.what}, over that`, ...about, below: OVERHEAD_MS },
        over("writer"),
      ),
    )
  }
  return { figures }
}
