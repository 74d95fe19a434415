import { appendFileSync } from "node:fs"
import type { Plugin, ToolDefinition } from "@opencode-ai/plugin"
import { loadBundle } from "./load-bundle.ts"
import { memoryPeak, residentMemory } from "./memory-peak.ts"

const READ_TOOL = "read_session"

const measured = ({ execute, ...rest }: ToolDefinition, file: string, memoryReads: number): ToolDefinition => ({
  ...rest,
  execute: async (args, context) => {
    const before = memoryReads > 0 ? await residentMemory() : 0
    const peaksMB: number[] = []
    // Before the timed read, so that the first of a process counts.
    for (let read = 0; read < memoryReads; read++) peaksMB.push(await memoryPeak(() => execute(args, context)))
    const keptMB = memoryReads > 0 ? (await residentMemory()) - before : 0
    const started = performance.now()
    const answer = await execute(args, context)
    const ms = performance.now() - started
    const footer = (typeof answer === "string" ? answer : answer.output).split("\n\n").at(-1)
    appendFileSync(file, `${JSON.stringify({ reader: context.sessionID, ms, peaksMB, keptMB, footer })}\n`)
    return answer
  },
})

/**
 * The bundle's handoff plugin from BATON_BENCH_PLUGINS with a clock around read_session, which writes to
 * BATON_BENCH_FILE. With BATON_BENCH_READS=N each call first reads N times more and notes what memory each of them took.
 */
export const TimedReading: Plugin = async (input) => {
  const { BATON_BENCH_PLUGINS: folder = "", BATON_BENCH_FILE: file = "", BATON_BENCH_READS: reads = "0" } = process.env
  const { hooks } = await loadBundle(folder, input)
  const own = hooks.find((each) => "tool" in each)
  if (!own) throw new Error(`no plugin in ${folder} has tools`)
  let tools: Record<string, ToolDefinition> | undefined
  const readTools = (): Record<string, ToolDefinition> => {
    const { [READ_TOOL]: read, ...others } = own.tool ?? {}
    if (!read) throw new Error(`no plugin in ${folder} has ${READ_TOOL}`)
    return { ...others, [READ_TOOL]: measured(read, file, Number(reads)) }
  }
  // The bundle makes its tools when OpenCode first asks for them; spreading the hooks would ask at once.
  return Object.defineProperty(Object.create(own), "tool", {
    get: () => {
      tools ??= readTools()
      return tools
    },
  })
}
