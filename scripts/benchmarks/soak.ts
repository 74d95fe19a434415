import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { createOpencodeClient } from "@opencode-ai/sdk/client"
import { passOver, returns } from "../../test/support/model/pass-over-script.ts"
import { type ModelReply, newestWords, type Script } from "../../test/support/model/scripted-model.ts"
import {
  compact,
  createSession,
  openModelProject,
  openServer,
  speak,
  workerMessage,
} from "../../test/support/opencode/model-project.ts"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { eventually } from "../../test/support/opencode/opencode-server.ts"
import { createTestProject } from "../../test/support/opencode/test-project.ts"
import type { Sample } from "./inside/probe.ts"
import { median, pairRatios } from "./measure.ts"
import { PROBE, useProbe } from "./project.ts"
import type { Benchmark, Context, Unit } from "./results.ts"
import { openStoredMessages, ROOMY_CONTEXT } from "./stored-messages.ts"

const WHOLE = { compactions: 500, directories: 20, each: 10 }
/** On 1.2.15 each message of a session slows later turns of plain OpenCode: the full run would take hours. */
const SHORT = { compactions: 60, directories: 2, each: 3 }
const QUICK = { compactions: 20, directories: 3, each: 2 }
const RATIO = 1.5
/** On a busy machine the bundle stops calling a ledger that timed out for a while. */
const QUIET_DEADLINE_MS = 300_000

/** The bundle's part of OpenCode's process, and its files on disk, in KB. */
type Look = Sample & Record<"journals" | "statefiles" | "state" | "ledger", number>

/** `gain` is the limit per 100 compactions of a session, `left` the limit after all sessions of a server are deleted. */
const QUANTITIES: readonly (readonly [key: keyof Look, what: string, unit: Unit, gain?: number, left?: number])[] = [
  ["heapMB", "heap", "MB", 1, 10],
  ["residentMB", "resident memory", "MB"],
  ["collections", "maps and sets", "", 0.5, 20],
  ["descriptors", "open descriptors", "", 0.5, 1],
  ["children", "child processes", "", 0.5, 1],
  ["timers", "waiting timers", "", 0.5, 1],
  ["journals", "journals", "KB", 5, 1],
  ["statefiles", "statefiles", "KB", 5],
  ["state", "`.opencode/state`, all of it", "KB", 5],
  ["ledger", "the ledger, which keeps a line for each compaction", "KB"],
]

const OPTIONS = { config: { snapshot: false }, context: ROOMY_CONTEXT }

/** Starts one of two servers that do the same work, with the bundle or without it. */
const openArm = async ({ binary }: Context, script: Script, context: number, isWithBundle: boolean) => {
  const opened = await openModelProject(binary, script, { ...OPTIONS, context })
  const probe = useProbe(opened)
  const address = join(opened.project.home, "probe.url")
  const environment = { ...(isWithBundle ? probe.environment : {}), BATON_BENCH_SAMPLES: address }
  const server = await openServer(opened, environment)
  return {
    ...opened,
    isWithBundle,
    server,
    hookMs: () => probe.notes("compacting").map(({ ms }) => ms),
    /** `dispose` first calls the dispose hooks of all directories, as OpenCode does where it can. */
    sample: async (before: "" | "dispose"): Promise<Sample> =>
      (await (await fetch(`${readFileSync(address, "utf8")}${before}`)).json()) as Sample,
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

/** Takes a sample after all records of these directories are in the ledger, so that no program runs for it any more. */
const lookAt = async (
  arms: Pair<Arm>,
  directories: readonly string[],
  isRecorded = () => true,
  before: "" | "dispose" = "",
): Promise<Look> => {
  const stored = () => directories.flatMap((directory) => filesBelow(join(directory, ".opencode", "state")))
  const isDelivered = () => isRecorded() && !stored().some(({ path }) => /\/outbox\/[^/]+\.json$/.test(path))
  await eventually("an empty outbox", () => isDelivered() || undefined, QUIET_DEADLINE_MS, 250)
  const [own, plain] = await onBoth(arms, ({ sample }) => sample(before))
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
  await using without = await openArm(context, longScript, CONTEXT_TOKENS, false)
  await using withBundle = await openArm(context, longScript, CONTEXT_TOKENS, true)
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
    looks.push({ at: round, look: await lookAt(arms, [withBundle.project.directory], isRecorded) })
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

/** Number of directories whose agents may pass work over. */
const PASSING = 4
/** The first loads all code; the second still opens connections to the model, which OpenCode's runtime keeps. */
const WARM_UPS = 2
const TAUGHT = "No, use tabs instead of spaces in the formatter."
const EXTRAS = [TAUGHT, "/handoff", "Read NEWEST.", "DELEGATE the review.", "Take a step."]

/** An agent that follows the newest message of its session; a reviewer returns at once. */
const manyScript: Script = ({ kind, conversation, tools }): ModelReply => {
  if (kind === "compaction") return { text: "Something was done." }
  const last = newestWords({ conversation })
  const offered = (reply: ModelReply): ModelReply =>
    "tool" in reply && tools.includes(reply.tool) ? reply : { text: "There is no such tool." }
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("Hand this work over"))
    return offered({ tool: "handoff_session", input: { prompt: "Go on.", files: [] } })
  const read = /Read (ses_\w+)/.exec(last)?.[1]
  if (read !== undefined) return offered({ tool: "read_session", input: { sessionID: read } })
  if (last.includes("REVIEW-THIS")) return offered(returns({ decision: "approved" }))
  if (last.includes("DELEGATE")) return offered(passOver({ subagent: "audit", objective: "REVIEW-THIS please" }))
  return last.includes("a step") ? { tool: "read", input: { filePath: "README.md" } } : { text: "It is done." }
}

/** @returns directories of one server, the arm's own project first; each is a repository and a project for OpenCode */
const openDirectories = async (arm: Arm, count: number) => {
  const [taskID, { binary, model, project: first }] = [await arm.addTask(), arm]
  // The other directories are removed with the benchmarks' folder.
  const more = { ...OPTIONS, binary, modelURL: model.url, home: first.home, bundle: "none" } as const
  return Array.from({ length: count }, (_, index) => {
    const project = index === 0 ? first : createTestProject(more)
    if (index > 0) project.write(".opencode/plugins/bench.ts", PROBE)
    if (index < PASSING) project.write(".opencode/pass-over.json", '{"defaults":{"auto_return":true}}\n')
    const client = createOpencodeClient({ baseUrl: arm.server.url, directory: project.directory })
    let newest = ""
    return {
      path: project.directory,
      /** Creates a session with a turn, the extras in between, and a compaction. */
      work: async (number: number, extras: readonly string[]): Promise<void> => {
        const id = await createSession({ client })
        const words = `Begin with ${number}.`
        await speak({ client }, id, number % 2 === 0 ? workerMessage(taskID, words) : words)
        for (const extra of extras)
          if (extra !== "/handoff") await speak({ client }, id, extra.replace("NEWEST", newest))
          else if (arm.isWithBundle)
            await client.session.command({ path: { id }, body: { command: "handoff", arguments: "finish it" } })
        await compact({ client }, id)
        newest = id
      },
      deleteAll: async (): Promise<void> => {
        for (const { id, parentID } of (await client.session.list()).data ?? [])
          if (parentID === undefined) await client.session.delete({ path: { id } })
        const left = (await client.session.list()).data?.length
        if (left !== 0) throw new Error(`expected no session in directory ${index}, found ${left}`)
      },
    }
  })
}
type Directory = Awaited<ReturnType<typeof openDirectories>>[number]

/** Measures one server with more and more sessions in each directory, then none; with and without the bundle side by side. */
const measureServer = async (context: Context, directories: number, each: number): Promise<void> => {
  const { figure } = context
  await using without = await openArm(context, manyScript, ROOMY_CONTEXT, false)
  await using withBundle = await openArm(context, manyScript, ROOMY_CONTEXT, true)
  const arms = [withBundle, without] as const
  const opened = await onBoth(arms, (arm) => openDirectories(arm, directories))
  const inEach = (work: (directory: Directory) => Promise<void>) =>
    onBoth(opened, async (all) => {
      for (const directory of all) await work(directory)
    })
  const folders = opened[0].map(({ path }) => path)
  const isWritten = (folder: string) =>
    filesBelow(join(folder, ".opencode/state/live")).some(({ path }) => path.endsWith(".json"))
  for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) {
    await inEach(({ work }) => work(warmUp, EXTRAS))
    await eventually("a statefile in each", () => folders.every(isWritten) || undefined, QUIET_DEADLINE_MS)
    await inEach(({ deleteAll }) => deleteAll())
  }
  const before = await lookAt(arms, folders)
  for (let n = 0; n < each; n++) await inEach(({ work }) => work(n, EXTRAS.slice(n, n + 1)))
  await inEach(({ deleteAll }) => deleteAll())
  const deleted = await lookAt(arms, folders)
  const disposed = await lookAt(arms, folders, undefined, "dispose")
  figure("soak.sessions", `one server of ${directories} directories, its sessions`, "", [directories * each])
  for (const [key, what, unit, , below] of QUANTITIES) {
    const left = deleted[key] - before[key]
    figure(`soak.left.${key}`, `one server, left when all are deleted: ${what}`, unit, [left], below)
  }
  for (const [key, what] of QUANTITIES.slice(3, 6))
    figure(`soak.disposed.${key}`, `one server, there after dispose: ${what}`, "", [disposed[key]])
}

/** Measures growth: one session through hundreds of compactions, and a server with hundreds of sessions. */
export const measureSoak: Benchmark = async (context) => {
  const { compactions, directories, each } = context.quick ? QUICK : context.binary === NEWEST ? WHOLE : SHORT
  context.say(`one session through ${compactions} compactions`)
  await measureSession(context, compactions)
  context.say(`${directories * each} sessions in ${directories} directories`)
  await measureServer(context, directories, each)
}
