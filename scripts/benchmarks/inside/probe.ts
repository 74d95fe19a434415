import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import type { Hooks, Plugin, PluginInput, ToolDefinition } from "@opencode-ai/plugin"
import { loadBundle, withLedgerStandIn } from "./load-bundle.ts"
import { memoryPeak, residentMemory } from "./process-memory.ts"

/** A line of the notes file: one JSON document. */
export type Note =
  | { kind: "load"; ms: number }
  /** `prompt` and `block` are characters: of the prompt that replaced OpenCode's, and of its task block with the facts. */
  | { kind: "compacting"; sessionID: string; ms: number; prompt: number; block: number }
  | { kind: "read_session"; reader: string; ms: number; peaksMB: number[]; keptMB: number; footer: string }

/** This process's memory after two forced collections. */
export type Sample = Record<"heapMB" | "residentMB" | "collections" | "descriptors" | "children" | "timers", number>

const COMPACTING = "experimental.session.compacting"
const READ_TOOL = "read_session"
const MEGA = 1e6

const {
  /** Folder of the bundle's plugins; without it no plugin is loaded. */
  BATON_BENCH_PLUGINS: folder,
  BATON_BENCH_NOTES: file = "",
  /** File for the address that serves samples; without it there are none. */
  BATON_BENCH_SAMPLES: samples,
  /** "stand-in" makes prog answer in this process. */
  BATON_BENCH_LEDGER: ledger,
  /** Number of untimed reads in a call of read_session, each with its memory noted. */
  BATON_BENCH_READS: memoryReads = "0",
} = process.env

const note = (noted: Note): void => appendFileSync(file, `${JSON.stringify(noted)}\n`)

/**
 * Times the first plugin with the hook, the one that writes the prompt. In place, since a copy would create the tools at once.
 */
const timeCompacting = (all: readonly Hooks[]): void => {
  const hooks = all.find((each) => each[COMPACTING])
  const compacting = hooks?.[COMPACTING]
  if (!compacting) throw new Error(`no plugin in ${folder} has ${COMPACTING}`)
  hooks[COMPACTING] = async (input, output) => {
    const started = performance.now()
    await compacting(input, output)
    const ms = performance.now() - started
    const [prompt, block] = [output.prompt?.length ?? 0, output.context.at(-1)?.length ?? 0]
    note({ kind: "compacting", sessionID: input.sessionID, ms, prompt, block })
  }
}

const timedReading = ({ execute, ...rest }: ToolDefinition): ToolDefinition => ({
  ...rest,
  execute: async (args, context) => {
    const peaksMB: number[] = []
    const before = memoryReads === "0" ? 0 : await residentMemory()
    while (peaksMB.length < Number(memoryReads)) peaksMB.push(await memoryPeak(() => execute(args, context)))
    const keptMB = memoryReads === "0" ? 0 : (await residentMemory()) - before
    const started = performance.now()
    const answer = await execute(args, context)
    const ms = performance.now() - started
    const footer = (typeof answer === "string" ? answer : answer.output).split("\n\n").at(-1) ?? ""
    note({ kind: READ_TOOL, reader: context.sessionID, ms, peaksMB, keptMB, footer })
    return answer
  },
})

/** Tools are created only at OpenCode's first request. */
const timeReading = (hooks: Hooks): Hooks => {
  if (!("tool" in hooks)) return hooks
  const make = (): Hooks["tool"] => {
    const { [READ_TOOL]: read, ...others } = hooks.tool ?? {}
    return read ? { ...others, [READ_TOOL]: timedReading(read) } : hooks.tool
  }
  return Object.defineProperty(Object.create(hooks) as Hooks, "tool", { get: make })
}

/** All plugins of one instance get the same client. */
const byClient = new WeakMap<object, Promise<Hooks[]>>()

const load = async (input: PluginInput): Promise<Hooks[]> => {
  if (!folder) return []
  const given = ledger === "stand-in" ? { ...input, $: withLedgerStandIn(input.$) } : input
  const { ms, hooks } = await loadBundle(folder, given)
  note({ kind: "load", ms })
  timeCompacting(hooks)
  return hooks.map(timeReading)
}

/** One of the bundle's plugins; the first one that OpenCode loads loads all of them. */
const own =
  (index: number): Plugin =>
  async (input) => {
    const hooks = byClient.get(input.client) ?? load(input)
    byClient.set(input.client, hooks)
    return (await hooks)[index] ?? {}
  }

export const [First, Second, Third, Fourth, Fifth] = [own(0), own(1), own(2), own(3), own(4)]

const takeSample = async (): Promise<Sample> => {
  const { heapStats } = await import("bun:jsc")
  Bun.gc(true)
  // Promises settle and finalizers run between the two collections.
  await new Promise((resolve) => setTimeout(resolve, 50))
  Bun.gc(true)
  const { heapSize, objectTypeCounts, protectedObjectTypeCounts } = heapStats()
  const children = readdirSync("/proc/self/task").flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, "utf8").split(" ").filter(Boolean),
  )
  return {
    heapMB: heapSize / MEGA,
    residentMB: process.memoryUsage.rss() / MEGA,
    collections: (objectTypeCounts.Map ?? 0) + (objectTypeCounts.Set ?? 0),
    descriptors: readdirSync("/proc/self/fd").length,
    children: children.length,
    // A finished timer may still be on the heap; the runtime protects only pending timers.
    timers: protectedObjectTypeCounts.Timeout ?? 0,
  }
}

if (samples !== undefined) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A collection may take longer than ten seconds, Bun's default timeout.
    idleTimeout: 0,
    fetch: async () => Response.json(await takeSample()),
  })
  server.unref()
  writeFileSync(samples, server.url.href)
}
