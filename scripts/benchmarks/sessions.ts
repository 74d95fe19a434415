import { setTimeout as wait } from "node:timers/promises"
import { renderMarker } from "../../.opencode/baton/handoff/draft.ts"
import { handoffScript } from "../../test/support/model/handoff-script.ts"
import type { Script } from "../../test/support/model/scripted-model.ts"
import {
  compact,
  createSession,
  openModelProject,
  openServer,
  speak,
  workerMessage,
} from "../../test/support/opencode/model-project.ts"
import type { TestServer } from "../../test/support/opencode/opencode-server.ts"
import { interleave, pairRatios } from "./measure.ts"
import { useProbe } from "./project.ts"
import type { Benchmark } from "./results.ts"
import { ROOMY_CONTEXT, seedSession, stepScript } from "./stored-messages.ts"

const HOOK_MS = 25
const HOOK_RATIO = 2
const SIZES = [10, 1_000, 10_000]
/** Lets work after a turn or a compaction end before the next one is measured. */
const SETTLE_MS = 500

/** Measures the compacting hook in a real `opencode serve`, on sessions of 10, 1,000 and 10,000 messages. */
export const measureHook: Benchmark = async ({ binary, quick, say, figure }) => {
  const [firsts, rounds, ledgerRounds] = quick ? [1, 2, 1] : [3, 20, 10]
  await using opened = await openModelProject(binary, stepScript, { context: ROOMY_CONTEXT })
  const probe = useProbe(opened)
  const sessions = new Map<number, string[]>(SIZES.map((size) => [size, []]))
  const timed = async (server: TestServer, size: number, index = 0): Promise<number> => {
    const id = sessions.get(size)?.[index] ?? ""
    await wait(SETTLE_MS)
    await compact(server, id)
    const noted = probe.notes("compacting").at(-1)
    if (noted?.sessionID === id && noted.prompt > 0) return noted.ms
    throw new Error(`the hook did not replace the prompt of ${id}: ${JSON.stringify(noted)}`)
  }
  const times = (server: TestServer, count: number, indexOf = (_round: number) => 0) => {
    const subjects = SIZES.map((size) => [size, (round: number) => timed(server, size, indexOf(round))])
    return interleave<string>(Object.fromEntries(subjects), count)
  }
  const record = (id: string, what: string, values: Record<string, number[]>, ms?: number, ratio?: number): void => {
    for (const size of SIZES)
      figure(`hook.${id}.${size}`, `${what}, ${size.toLocaleString("en")} messages`, "ms", values[size] ?? [], ms)
    const ratios = pairRatios(values["10"] ?? [], values["10000"] ?? [])
    figure(`hook.${id}.ratio`, `${what}, 10,000 ÷ 10 messages`, "×", ratios, ratio)
  }
  {
    await using server = await openServer(opened, { ...probe.environment, BATON_BENCH_LEDGER: "stand-in" })
    for (let index = 0; index <= firsts; index++)
      for (const size of SIZES) {
        const id = await seedSession(server, opened.project, size)
        await speak(server, id, workerMessage(), true)
        sessions.get(size)?.push(id)
      }
    say(`the first compaction of ${firsts} sessions of each of ${SIZES.length} sizes, and ${rounds} later ones`)
    // Not measured: loads zod and warms up the code.
    await timed(server, 10)
    const first = await times(server, firsts, (round) => round + 1)
    await times(server, 1)
    record("later", "hook without prog's time", await times(server, rounds), HOOK_MS, HOOK_RATIO)
    record("first", "first compaction of a session", first, HOOK_MS, HOOK_RATIO)
  }
  await using server = await openServer(opened, probe.environment)
  await timed(server, 10)
  record("ledger", "hook with the embedded ledger", await times(server, ledgerRounds))
}

const READ_MS = 150
const READ_MB = 20
const READ = "READ-THE-OLD-ONE"

const reading = handoffScript({ prompt: "", files: [] })
const script: Script = (request) => (request.conversation.includes(READ) ? reading(request) : stepScript(request))

/** Measures read_session in a real `opencode serve`: the newest 100 messages of a session of 100 and of one of 10,000. */
export const measureTranscript: Benchmark = async ({ binary, quick, figure }) => {
  const rounds = quick ? 2 : 20
  await using opened = await openModelProject(binary, script, { context: ROOMY_CONTEXT })
  const probe = useProbe(opened)
  /** Lets a new session that continues `sessionID` read it. @returns the tool's note */
  const read = async (server: TestServer, sessionID: string) => {
    await wait(SETTLE_MS)
    const reader = await createSession(server)
    await speak(server, reader, `${renderMarker(sessionID)}\n\n${READ}\n`)
    const noted = probe.notes("read_session").at(-1)
    if (noted?.reader === reader && /\b100 (?:most recent )?messages\b/.test(noted.footer)) return noted
    throw new Error(`${reader} did not read 100 messages: ${JSON.stringify(noted)}`)
  }
  const measureTimes = async () => {
    await using server = await openServer(opened, probe.environment)
    const short = await seedSession(server, opened.project, 100)
    const long = await seedSession(server, opened.project, 10_000)
    // Not measured: loads the feature and zod.
    await read(server, short)
    const msOf = (id: string) => async () => (await read(server, id)).ms
    return { short, long, times: await interleave({ short: msOf(short), long: msOf(long) }, rounds) }
  }
  const { short, long, times } = await measureTimes()
  await using server = await openServer(opened, { ...probe.environment, BATON_BENCH_READS: String(rounds) })
  // The long session first: the promised figure then includes the memory of a process's first read.
  const ofLong = await read(server, long)
  const ofShort = await read(server, short)
  const memory = (size: string) => `memory for reading 100 of ${size} messages, at its highest`
  figure("transcript.time.100", "reading the newest 100 of 100 messages", "ms", times.short)
  figure("transcript.time.10000", "reading the newest 100 of 10,000 messages", "ms", times.long, READ_MS)
  figure("transcript.memory.100", memory("100"), "MB", ofShort.peaksMB)
  figure("transcript.memory.10000", memory("10,000"), "MB", ofLong.peaksMB, READ_MB)
  figure("transcript.kept", `memory kept after ${rounds} of these reads`, "MB", [ofLong.keptMB])
}
