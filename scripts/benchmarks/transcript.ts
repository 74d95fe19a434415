import { readFileSync } from "node:fs"
import { join } from "node:path"
import { renderMarker } from "../../.opencode/baton/handoff/draft.ts"
import { handoffScript } from "../../test/support/handoff-script.ts"
import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import type { TestServer } from "../../test/support/opencode-server.ts"
import type { Script } from "../../test/support/scripted-model.ts"
import { usePlugin, withBenchProject, withServer } from "./bench-project.ts"
import type { Benchmark, BenchmarkContext } from "./benchmark.ts"
import { countMessages, importSession, recordTemplate, sessionScript } from "./hook-sessions.ts"
import { interleave } from "./interleave.ts"
import { type Figure, toFigure } from "./results.ts"

const READ_MS = 150
const READ_MB = 20
/** Nothing compacts by itself. */
const CONTEXT_TOKENS = 20_000_000
/** What OpenCode still does after a turn must not fall into the next. */
const SETTLE_MS = 500

const SIZES = { short: 100, long: 10_000 } as const
type Size = keyof typeof SIZES
const SIZE_NAMES = Object.keys(SIZES) as Size[]

const READ = "READ-THE-OLD-ONE"
const reading = handoffScript({ prompt: "", files: [] })
const script: Script = (request) => (request.conversation.includes(READ) ? reading(request) : sessionScript(request))

/** What `inside/timed-reading.ts` writes after each call. */
type ReadingNote = { reader: string; ms: number; peaksMB: number[]; keptMB: number; footer: string }

/** Has a new session that continues `sessionID` read it. @returns what the tool noted */
const read = async ({ client }: TestServer, sessionID: string, file: string): Promise<ReadingNote> => {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const created = await client.session.create({ body: {} })
  const reader = created.data?.id
  if (reader === undefined) throw new Error(`no session was created: ${JSON.stringify(created.error)}`)
  const text = `${renderMarker(sessionID)}\n\n${READ}\n`
  const { error } = await client.session.prompt({ path: { id: reader }, body: { parts: [{ type: "text", text }] } })
  if (error) throw new Error(`the turn that reads failed: ${JSON.stringify(error).slice(0, 300)}`)
  const noted = JSON.parse(readFileSync(file, "utf8").trim().split("\n").at(-1) ?? "") as ReadingNote
  if (noted.reader === reader && /\b100 (?:most recent )?messages\b/.test(noted.footer)) return noted
  throw new Error(`${reader} did not read 100 messages: ${JSON.stringify(noted)}`)
}

type Readings = { times: Record<Size, number[]>; memory: Record<Size, ReadingNote> }

const measureOn = (binary: OpenCodeBinary, { quick, say }: BenchmarkContext): Promise<Readings> => {
  const rounds = quick ? 2 : 20
  return withBenchProject(binary, script, { context: CONTEXT_TOKENS }, async (opened) => {
    const template = await recordTemplate(opened)
    say(`transcript on ${binary.version}: importing sessions of 100 and of 10,000 messages`)
    const sessions: Record<Size, string> = {
      short: await importSession(opened, template, SIZES.short, 0),
      long: await importSession(opened, template, SIZES.long, 1),
    }
    const folder = usePlugin(opened, "timed-reading.ts")
    const file = join(opened.project.home, "reading.jsonl")
    const bench = { BATON_BENCH_PLUGINS: folder, BATON_BENCH_FILE: file }

    say(`transcript on ${binary.version}: ${rounds} turns that read each of them`)
    const times = await withServer(opened, bench, async (server) => {
      for (const size of SIZE_NAMES) {
        const found = await countMessages(server, sessions[size], SIZES[size])
        if (found !== SIZES[size]) throw new Error(`expected ${SIZES[size]} imported messages, found ${found}`)
      }
      const timeOf = async (size: Size): Promise<number> => (await read(server, sessions[size], file)).ms
      // One before the clock counts: it loads the feature and zod.
      await timeOf("short")
      return interleave({ short: () => timeOf("short"), long: () => timeOf("long") }, rounds)
    })
    say(`transcript on ${binary.version}: ${rounds} reads of each in a row for their memory`)
    const memory = await withServer(opened, { ...bench, BATON_BENCH_READS: String(rounds) }, async (server) => ({
      // The long one first: what a process needs for its first read is counted where the promise is.
      long: await read(server, sessions.long, file),
      short: await read(server, sessions.short, file),
    }))
    return { times, memory }
  })
}

const figuresOf = (version: string, { times, memory }: Readings): Figure[] => {
  const of = (size: Size) => `100 of ${SIZES[size].toLocaleString("en")} messages`
  const limit = (size: Size, below: number) => (size === "long" ? { below } : {})
  const timeOf = (size: Size): Figure => {
    const about = { id: `transcript.time.${SIZES[size]}`, what: `reading the newest ${of(size)}` }
    return toFigure({ ...about, version, unit: "ms", ...limit(size, READ_MS) }, times[size])
  }
  const memoryOf = (size: Size): Figure => {
    const about = { id: `transcript.memory.${SIZES[size]}`, what: `memory for reading ${of(size)}, at its highest` }
    return toFigure({ ...about, version, unit: "MB", ...limit(size, READ_MB) }, memory[size].peaksMB)
  }
  const { keptMB, peaksMB } = memory.long
  const kept = { id: "transcript.kept", what: `memory kept after ${peaksMB.length} of these reads`, version } as const
  return [...SIZE_NAMES.map(timeOf), ...SIZE_NAMES.map(memoryOf), toFigure({ ...kept, unit: "MB" }, [keptMB])]
}

/** read_session in a real `opencode serve`: the newest 100 messages of a session of 100 and of one of 10,000. */
export const measureTranscript: Benchmark = async (context) => {
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) figures.push(...figuresOf(binary.version, await measureOn(binary, context)))
  return { figures }
}
