import { join } from "node:path"
import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { measureRetention } from "../../test/support/retention.ts"
import type { ModelRequest, Script } from "../../test/support/scripted-model.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { usePlugin, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { readNotes } from "./hook-notes.ts"
import { type Figure, toFigure } from "./results.ts"

const CONTEXTS = [20_000, 200_000]
const OUTPUT_TOKENS = 2_000
const MAX_CHARACTERS = 12_000
const CONTEXT_SHARE = 0.1
const CHARACTERS_PER_TOKEN = 4

const sentences = (characters: number): string => "Keep what is there; change one thing. ".repeat(characters / 38)

const TASKS = {
  usual: { brief: "Never touch the lexer; the release is frozen until Friday.", specification: sentences(400) },
  huge: { brief: sentences(30_000), specification: sentences(40_000) },
}

/** One tool step before each of `compactions` compactions, whatever the size of the context. */
const compactingScript = (compactions: number, context: number): Script => {
  let step = 0
  return (request) => {
    if (request.kind === "compaction") return { text: "## Done\n- A step was taken.\n" }
    if (step++ >= compactions) return { text: "Finished." }
    return { tool: "bash", input: { command: "echo step" }, promptTokens: context - 300 }
  }
}

/** Characters of the note that the bundle puts into a turn's request. */
const noteLength = ({ messages }: ModelRequest): number => {
  const texts = messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.map((part) => part?.text) : [content],
  )
  const note = texts.find((text) => typeof text === "string" && text.startsWith("[Baton]"))
  return typeof note === "string" ? note.length : 0
}

const measureCase = (
  binary: OpenCodeBinary,
  context: number,
  { brief, specification }: { brief: string; specification: string },
  compactions: number,
): Promise<{ block: number[]; note: number[] }> => {
  const script = compactingScript(compactions, context)
  return withBenchProject(binary, script, { context, output: OUTPUT_TOKENS }, async (opened) => {
    const { project, model } = opened
    const definitionOfDone = "bun test passes on Windows line ends"
    const ledger = openTestLedger(project, binary)
    const taskID = await ledger.addTask({ title: "Teach the parser CRLF", specification, definitionOfDone })
    const file = join(project.home, "hook.jsonl")
    const environment = { BATON_BENCH_PLUGINS: usePlugin(opened, "timed-compacting.ts"), BATON_BENCH_FILE: file }
    await opened.run(`# Worker\n\nTask: ${taskID}\n\n${brief}\n`, { environment })
    const seen = measureRetention(model.requests, taskID)
    if (seen.compactions !== compactions)
      throw new Error(`expected ${compactions} compactions, saw ${seen.compactions}`)
    return { block: readNotes(file).map(({ block }) => block), note: model.received("turn").slice(1).map(noteLength) }
  })
}

/** How many characters the bundle adds to a compaction prompt and to the turn after it. */
export const measureAdditions: Benchmark = async ({ quick, say }) => {
  const compactions = quick ? 1 : 5
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    for (const context of CONTEXTS) {
      for (const [size, task] of Object.entries(TASKS)) {
        say(`additions on ${binary.version}: context of ${context.toLocaleString("en")} tokens, ${size} task`)
        const { block, note } = await measureCase(binary, context, task, compactions)
        const limit = Math.min(MAX_CHARACTERS, context * CONTEXT_SHARE * CHARACTERS_PER_TOKEN)
        const about = { version: binary.version, unit: "characters", below: limit } as const
        const where = `${context.toLocaleString("en")} tokens of context, ${size} task`
        figures.push(
          toFigure({ id: `additions.prompt.${context}.${size}`, what: `compaction prompt, ${where}`, ...about }, block),
          toFigure({ id: `additions.turn.${context}.${size}`, what: `next turn, ${where}`, ...about }, note),
        )
      }
    }
  }
  return { figures }
}
