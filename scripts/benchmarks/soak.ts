import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { newestWords, type Script } from "../../test/support/model/scripted-model.ts"
import {
  createSession,
  openModelProject,
  openServer,
  speak,
  workerMessage,
} from "../../test/support/opencode/model-project.ts"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { eventually } from "../../test/support/opencode/opencode-server.ts"
import type { Sample } from "./inside/probe.ts"
import { median, pairRatios } from "./measure.ts"
import { useProbe } from "./project.ts"
import type { Benchmark, Context, Unit } from "./results.ts"
import { openStoredMessages } from "./stored-messages.ts"

/** On 1.2.15 each message of a session slows later turns of plain OpenCode: the full run would take hours. */
const SHORT = 60
const RATIO = 1.5
/** On a busy machine the bundle stops calling a ledger that timed out for a while. */
const QUIET_DEADLINE_MS = 300_000

/** The bundle's part of OpenCode's process, and its files on disk, in KB. */
type Look = Sample & Record<"journals" | "statefiles" | "state" | "ledger", number>

/** `gain` is the limit per 100 compactions of a session. */
const QUANTITIES: readonly (readonly [key: keyof Look, what: string, unit: Unit, gain?: number])[] = [
  ["heapMB", "heap", "MB", 1],
  ["residentMB", "resident memory", "MB"],
  ["collections", "maps and sets", "", 0.5],
  ["descriptors", "open descriptors", "", 0.5],
  ["children", "child processes", "", 0.5],
  ["timers", "waiting timers", "", 0.5],
  ["journals", "journals", "KB", 5],
  ["statefiles", "statefiles", "KB", 5],
  ["state", "`.opencode/state`, all of it", "KB", 5],
  ["ledger", "the ledger, which keeps a line for each compaction", "KB"],
]

/** Starts one of two servers that do the same work, with the bundle or without it. */
const openArm = async ({ binary }: Context, isWithBundle: boolean) => {
  const options = { config: { snapshot: false }, context: CONTEXT_TOKENS }
  const opened = await openModelProject(binary, longScript, options)
  const probe = useProbe(opened)
  const address = join(opened.project.home, "probe.url")
  const environment = { ...(isWithBundle ? probe.environment : {}), BATON_BENCH_SAMPLES: address }
  const server = await openServer(opened, environment)
  return {
    ...opened,
    server,
    hookMs: () => probe.notes("compacting").map(({ ms }) => ms),
    sample: async (): Promise<Sample> => (await (await fetch(readFileSync(address, "utf8"))).json()) as Sample,
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await opened[Symbol.asyncDispose]()
    },
  }
}
type Arm = Awaited<ReturnType<typeof openArm>>
type Pair<T> = readonly [withBundle: T, without: T]

const onBoth = <Side, T>([withBundle, without]: Pair<Side>, work: (side: Side) => Promise<T>): Promise<Pair<T>> =>
  Promise.all([work(withBundle), work(without)])

const filesBelow = (folder: string): { path: string; kilobytes: number }[] =>
  (existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : []).flatMap((name) => {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false })
    return stats?.isFile() ? [{ path: join(folder, name), kilobytes: stats.size / 1_000 }] : []
  })

/** Takes a sample after all records are in the ledger, so that no program runs for it any more. */
const lookAt = async (arms: Pair<Arm>, isRecorded: () => boolean): Promise<Look> => {
  const stored = () => filesBelow(join(arms[0].project.directory, ".opencode", "state"))
  const isDelivered = () => isRecorded() && !stored().some(({ path }) => /\/outbox\/[^/]+\.json$/.test(path))
  await eventually("an empty outbox", () => isDelivered() || undefined, QUIET_DEADLINE_MS, 250)
  const [own, plain] = await onBoth(arms, ({ sample }) => sample())
  const part = Object.entries(own).map(([key, value]) => [key, value - plain[key as keyof Sample]])
  const sizeOf = (folder: string, files = stored()): number =>
    files.reduce((sum, { path, kilobytes }) => sum + (path.includes(folder) ? kilobytes : 0), 0)
  const [journals, statefiles, state] = ["/state/compactions/", "/state/live/", "/state/"].map((name) => sizeOf(name))
  const ledger = sizeOf("/", filesBelow(join(arms[0].project.home, ".prog")))
  return { ...Object.fromEntries(part), journals, statefiles, state, ledger } as Look
}

const CONTEXT_TOKENS = 200_000
const SAMPLE_EVERY = 10
/** The user's message, a tool step, and the final answer; twelve such turns are stored before each round. */
const TURN_MESSAGES = 3
/** Starts with the first round, so that the first sample includes the code that learning loads. */
const LEARNS_EVERY = 50

const longScript: Script = ({ kind, index, conversation }) => {
  if (kind === "compaction") return { text: `## Done\n- Round ${index} is done.\n\n## Next\n- Go on.\n` }
  const last = newestWords({ conversation })
  const step = { tool: "read", input: { filePath: "README.md" } }
  // The step fills the context, and OpenCode compacts after it.
  if (last.includes("Fill the context.")) return { ...step, promptTokens: CONTEXT_TOKENS }
  return last.includes("a step") && !last.includes("[tool]") ? step : { text: "It is done." }
}

const openSession = async ({ project, server, addTask }: Arm) => {
  const id = await createSession(server)
  await speak(server, id, workerMessage(await addTask(), "Take a step."))
  const stored = openStoredMessages(project, id, TURN_MESSAGES)
  const statePath = join(project.directory, ".opencode/state/compactions", `${id}.json`)
  return {
    stored,
    say: (text: string): Promise<number> => speak(server, id, text),
    recorded: (): number => (existsSync(statePath) ? JSON.parse(readFileSync(statePath, "utf8")).count : 0),
  }
}

/** Measures one session through many compactions, about 40 messages each, with and without the bundle side by side. */
const measureSession = async (context: Context, compactions: number): Promise<void> => {
  const { figure } = context
  await using without = await openArm(context, false)
  await using withBundle = await openArm(context, true)
  const arms = [withBundle, without] as const
  const sessions = await onBoth(arms, openSession)
  const looks: { at: number; look: Look }[] = []
  const [ms, plainMs]: Pair<number[]> = [[], []]
  for (let round = 1; round <= compactions; round++) {
    const taught = `No, use ${round} spaces instead of tabs in file ${round}.`
    const work = round % LEARNS_EVERY === 1 ? taught : `Go on with round ${round}.`
    // A turn with a compaction in the middle.
    const [own, plain] = await onBoth(sessions, async ({ stored, say }) => {
      await stored.append(12 * TURN_MESSAGES)
      return say(`${work} Fill the context.`)
    })
    ms.push(own)
    plainMs.push(plain)
    if (round % SAMPLE_EVERY !== 0) continue
    // A compaction that could not be recorded at once is recorded by the next turn.
    await onBoth(sessions, ({ say }) => say(`Look back at round ${round}.`))
    const isRecorded = () => sessions[0].recorded() === round
    looks.push({ at: round, look: await lookAt(arms, isRecorded) })
  }
  const hookMs = withBundle.hookMs()
  const added = ms.map((own, round) => own - (plainMs[round] ?? 0))
  const tenths = <T>(all: readonly T[]) => {
    const count = Math.max(1, Math.floor(all.length / 10))
    return { first: all.slice(0, count), last: all.slice(-count) }
  }
  const ratio = (id: string, what: string, values: readonly number[], below?: number): void => {
    const { first, last } = tenths(values)
    // The difference may be negative on a busy machine.
    const base = first.map((value) => Math.max(value, 1))
    figure(`soak.${id}`, `${what}, last ÷ first tenth`, "×", pairRatios(base, last), below)
  }
  figure("soak.compactions", "one session, its compactions", "", [compactions])
  figure("soak.messages", "one session, its messages", "", [sessions[0].stored.count()])
  figure("soak.hook", "one compacting hook", "ms", hookMs)
  ratio("hook-ratio", "the compacting hook", hookMs, RATIO)
  figure("soak.turn", "one turn with its compaction", "ms", ms)
  figure("soak.added", "what the bundle adds to it", "ms", added)
  ratio("added-ratio", "what the bundle adds", added, RATIO)
  ratio("turn-ratio", "a turn with its compaction", ms)
  ratio("plain-ratio", "the same in plain OpenCode", plainMs)
  const { first, last } = tenths(looks)
  const firstAt = median(first.map(({ at }) => at))
  for (const [key, what, unit, below] of QUANTITIES) {
    const begun = median(first.map(({ look }) => look[key]))
    const gained = last.map(({ at, look }) => ((look[key] - begun) / (at - firstAt)) * 100)
    figure(`soak.gained.${key}`, `one session, gained in 100 compactions: ${what}`, unit, gained, below)
  }
}

/** Measures growth: one session through hundreds of compactions. */
export const measureSoak: Benchmark = async (context) => {
  const compactions = context.quick ? 20 : context.binary === NEWEST ? 500 : SHORT
  context.say(`one session through ${compactions} compactions`)
  await measureSession(context, compactions)
}
