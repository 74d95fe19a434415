import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { signalIfThere } from "../../.opencode/baton/host/process.ts"
import { isAlive } from "../../.opencode/baton/host/process-identity.ts"
import { CORRECTION, type Fault, type Scene } from "../support/faults/fault.ts"
import { openGuard } from "../support/faults/fault-guard.ts"
import { awaitNoProcesses } from "../support/faults/fault-leftovers.ts"
import { describeRecords, recordsIn, stateFolder } from "../support/faults/fault-stored-table.ts"
import { addFaultPlugin, HELD_TO_MODES } from "../support/faults/fault-table.ts"
import {
  HAS_OPENCODE_2,
  isLine2,
  NEWEST,
  OLDEST,
  type OpenCodeBinary,
  openCode2,
} from "../support/opencode/opencode-binary.ts"
import { type RunResult, runProgram } from "../support/opencode/opencode-run.ts"
import { eventually } from "../support/opencode/opencode-server.ts"
import { CODER } from "../support/opencode/pass-over-project.ts"
import { openTaskProject, type TaskProject } from "../support/opencode/task-project.ts"
import { CONTEXT_TOKENS } from "../support/opencode/tokens-2.ts"
import { faultNamed } from "./catalogue.ts"
import { isOwedLine, owedLogsOf, readPasses, type SeenPass } from "./observe.ts"
import type { Moment, PlannedFault, StormPlan, Turn } from "./plan.ts"
import { createStormScript, SHARED_CONTENT, SHARED_FILE } from "./storm-script.ts"
import { canTrace, tracingLauncher } from "./trace.ts"

/** Longer than any run on a quiet machine: a run that reaches it hangs. */
export const HANG_LIMIT_MS = 600_000
const SETTLE_DEADLINE_MS = 120_000
/** For runs that may lose records: waiting for all of them may never succeed. */
const LOSS_DEADLINE_MS = 10_000
const ASK_EVERY_MS = 250
/** On a busy machine the embedded ledger may time out, and Baton stops calling it for the rest of a run. */
const MOST_CLEAN_RUNS = 3
/** Short, so that a hanging subagent costs only seconds. */
const POLICY = { timeout_ms: 4_000, max_time_ms: 8_000, retry_delay_ms: 10, max_retries: 1 }

/** Where there is no OpenCode 2 for this machine, its runs are on the newest of OpenCode 1. */
const binaryOf = ({ end }: StormPlan) =>
  end === "oldest" ? OLDEST : end === "two" && HAS_OPENCODE_2 ? openCode2() : NEWEST

/** The scripted model's, as the line needs it. */
const limitOf = (binary: OpenCodeBinary) => (isLine2(binary) ? { context: CONTEXT_TOKENS, output: 4_000 } : {})

const renderPolicy = (faults: readonly Fault[]): string => {
  const policies = faults.flatMap(({ policy }) => policy ?? [])
  const text = policies.find((policy) => typeof policy === "string")
  if (typeof text === "string") return text
  const changes = policies.map((policy) => Object(Object(policy).defaults))
  return JSON.stringify({ defaults: Object.assign({}, POLICY, ...changes) })
}

/** The arguments that continue the first session in OpenCode's log; none if OpenCode was killed before it created one. */
const sessionArgs = ({ project }: TaskProject): string[] => {
  try {
    const root = project.log().match(/\bses_[A-Za-z0-9]{20,}/)?.[0]
    return root === undefined ? [] : ["--session", root]
  } catch {
    return []
  }
}

/** Sets up project, agents and faults of a plan, and baits around the project. No fault is active yet. */
export const openStage = async (plan: StormPlan) => {
  const faults = plan.faults.map((planned): Fault & PlannedFault => ({ ...faultNamed(planned.name), ...planned }))
  const partOf = <Name extends keyof Fault>(name: Name): Fault[Name] | undefined =>
    faults.find((fault) => fault[name] !== undefined)?.[name]
  const correction = partOf("correction") ?? { text: CORRECTION, isSecret: false }
  const complaints: string[] = []
  const followed: Promise<unknown>[] = []
  const stops: (() => void)[] = []
  const standing = new Set<Fault & PlannedFault>()
  const struck = new Set<Fault & PlannedFault>()
  let running: number | undefined
  let [wasKilled, wasEverKilled] = [false, false]

  const binary = binaryOf(plan)
  const agents = createStormScript({
    seed: plan.seed,
    isLine2: isLine2(binary),
    child: partOf("child"),
    root: partOf("root"),
    handoffFiles: faults.flatMap(({ handoffFiles = [] }) => handoffFiles),
    correction: correction.text,
    onRequest: (turn, request) => reach(turn, request),
    settle: () => settle(),
  })
  const options = Object.assign({}, ...faults.map((fault) => fault.options?.project ?? {}))
  // Nobody is there to answer whether a result may go back.
  const config = { permission: { pass_over_result: "allow" }, ...Object(options.config) }
  const task = await openTaskProject(binary, agents.script, { ...limitOf(binary), ...options, config })
  const { project } = task
  const guard = openGuard(project)
  const { liveState, learning, passOver } = plan.features
  const settings = { liveState: { enabled: liveState }, learning: { enabled: learning } }
  project.write(".opencode/baton.json", JSON.stringify(settings))
  if (passOver) project.write(".opencode/pass-over.json", renderPolicy(faults))
  for (const name of ["coder", "second"]) project.write(`.opencode/agent/${name}.md`, CODER)
  project.write(SHARED_FILE, SHARED_CONTENT)
  // It breaks the client of OpenCode 1.
  if (!isLine2(binary)) addFaultPlugin(project)
  const ofFaults = faults.map((fault) => fault.options?.environment?.(task))
  const planned: Record<string, string> = Object.assign({}, ...ofFaults)
  // Under strace a kill would hit strace and not OpenCode.
  const isTraced = plan.isTraced && canTrace() && !faults.some(({ kills }) => kills)
  const { PATH: plannedPath, ...environment } = planned
  const launcher = [
    ...HELD_TO_MODES,
    ...faults.flatMap((fault) => fault.options?.launcher ?? []),
    ...(isTraced ? tracingLauncher(project) : []),
    // OpenCode's PATH may not hold the launchers.
    ...(plannedPath === undefined ? [] : ["env", `PATH=${plannedPath}`]),
  ]
  const scene: Scene = {
    ...task,
    environment: planned,
    killOpenCode: () => {
      wasKilled = running !== undefined
      if (running !== undefined) signalIfThere(running, "SIGKILL")
    },
    suspendOpenCode: () => {
      const pid = running
      const send = (signal: "SIGSTOP" | "SIGCONT"): void => {
        if (pid !== undefined && isAlive(pid)) process.kill(pid, signal)
      }
      send("SIGSTOP")
      return () => send("SIGCONT")
    },
    complain: (what) => complaints.push(what),
    // It may fail long before it is waited for.
    follow: (work) => followed.push(work.catch(() => undefined)),
    onEnd: (stop) => stops.push(stop),
  }

  /** Prepares, arranges or lifts a fault; a failure is a violation. */
  const change = async (fault: Fault & PlannedFault, how: "prepare" | "arrange" | "lift"): Promise<void> => {
    try {
      await fault[how]?.(scene, fault.delayMs)
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      complaints.push(`storm: ${how} ${fault.name}: ${text}`)
    }
  }
  const lift = async (fault: Fault & PlannedFault): Promise<void> => {
    if (standing.delete(fault)) await change(fault, "lift")
  }
  const reach = async (turn: number, request: number): Promise<void> => {
    const isNow = (moment?: Moment) => moment?.turn === turn && moment.request === request
    for (const fault of faults) {
      if (isNow(fault.lifts)) await lift(fault)
      if (!isNow(fault.strikes)) continue
      struck.add(fault)
      standing.add(fault)
      await change(fault, "arrange")
    }
  }

  /** Both disk and ledger refused records for a while: records that were only in memory may be lost. */
  const refusedAll = (): boolean =>
    (["disk", "ledger"] as const).every((what) => [...struck].some(({ refuses }) => refuses === what))

  const isSettled = async (): Promise<true | undefined> => {
    const marks = stateFolder(task, "learning/waiting")
    const isLearned = !existsSync(marks) || readdirSync(marks).length === 0
    if (recordsIn(task, "outbox").length > 0 || !isLearned) return undefined
    // A start deletes the copies that earlier processes left, in the background.
    const isUnsettled = ({ state, hasCopy }: SeenPass): boolean => hasCopy || /wait|sent/.test(state ?? "")
    if (readPasses(task, agents.seen.passes).some(isUnsettled)) return undefined
    // Checked last, since each query starts a process.
    const { logs } = await task.ledger.show(task.taskID)
    const owed = owedLogsOf(agents.seen, wasEverKilled).filter(({ isCertain }) => isCertain)
    return owed.every((line) => logs.some(({ message }) => isOwedLine(line, message))) || undefined
  }
  // Missing records are reported by the oracle.
  const settle = async (): Promise<void> => {
    const mostMs = refusedAll() ? LOSS_DEADLINE_MS : SETTLE_DEADLINE_MS
    await eventually("every record in the ledger", isSettled, mostMs, ASK_EVERY_MS).catch(() => undefined)
  }
  for (const fault of faults) await change(fault, "prepare")

  const messages: Record<Turn["kind"], string> = {
    task: task.message,
    resume: "Go on with it.",
    correction: correction.text,
    handoff: "finish the parser",
  }
  return {
    task,
    guard,
    correction,
    seen: agents.seen,
    isTraced,
    /** Violations that a fault or the storm itself found. */
    complaints,
    /** The faults that were arranged; a run that ended early does not reach every moment. */
    struck: () => [...struck],
    refusedAll,
    /** Runs one turn of the plan, with the faults whose moment falls in it. */
    run: async (turn: Turn, index: number) => {
      wasKilled = false
      agents.beginTurn(index, turn)
      await reach(index, 0)
      const session = sessionArgs(task)
      const isNew = session.length === 0
      const ending = await task.run(isNew ? task.message : messages[turn.kind], {
        args: [...session, ...(turn.kind === "handoff" && !isNew ? ["--command", "handoff"] : [])],
        environment,
        launcher,
        deadlineMs: HANG_LIMIT_MS,
        onStart: (pid) => {
          running = pid
        },
      })
      running = undefined
      agents.endTurn()
      // It may have ended by itself at the same moment.
      wasKilled = wasKilled && ending.signal === "SIGKILL"
      wasEverKilled ||= wasKilled
      return { ending, wasKilled }
    },
    /** Lifts all faults and waits until no process runs. @returns processes that do not end */
    liftAll: async () => {
      await Promise.all(followed)
      for (const stop of stops) stop()
      for (const fault of faults.toReversed()) await lift(fault)
      return awaitNoProcesses(project)
    },
    /**
     * Runs without faults: once, and again while records are pending.
     *
     * @returns `waiting`: records that the last of these runs found and left, and those that cannot be delivered after it. Each run
     * writes a record at its own end, which a busy machine leaves to the next.
     */
    runClean: async () => {
      agents.beginCleanRun()
      const [endings, processes]: [RunResult[], string[]] = [[], []]
      let before: string[] = []
      while (endings.length === 0 || (endings.length < MOST_CLEAN_RUNS && recordsIn(task, "outbox").length > 0)) {
        before = recordsIn(task, "outbox")
        const args = sessionArgs(task)
        const message = args.length > 0 ? "Go on." : task.message
        endings.push(await task.run(message, { args, deadlineMs: HANG_LIMIT_MS }))
        processes.push(...(await awaitNoProcesses(project)))
      }
      const left = recordsIn(task, "outbox").filter((name) => before.includes(name))
      if (recordsIn(task, "outbox").length > 0) {
        const command = join(project.directory, ".opencode/baton/bin/baton")
        await runProgram([command, "outbox", "retry"], { project, environment: { BATON_OPENCODE: binary.path } })
      }
      const waiting = new Set([...left, ...recordsIn(task, "outbox")])
      return { endings, processes, waiting: describeRecords(task, [...waiting]) }
    },
  }
}

export type Stage = Awaited<ReturnType<typeof openStage>>

const references = new Map<string, Promise<RunResult>>()

/** The end of this turn without the bundle and without faults; turns with the same work share it. */
export const referenceOf = (plan: StormPlan, { kind, steps }: Turn): Promise<RunResult> => {
  const git = plan.faults.every(({ name }) => faultNamed(name).options?.project?.git !== false)
  const isHandoff = kind === "handoff"
  // Without the bundle its tools are missing; their answers are not compared, so that any step can replace them.
  const plain = isHandoff ? ["write" as const] : steps.map((step) => (step === "compact" ? step : "write"))
  const start = async (): Promise<RunResult> => {
    const binary = binaryOf(plan)
    const agents = createStormScript({ seed: plan.seed, isLine2: isLine2(binary) })
    const task = await openTaskProject(binary, agents.script, { ...limitOf(binary), bundle: "none", git })
    agents.beginTurn(0, { kind, steps: plain })
    const ending = await task.run(task.message, { deadlineMs: HANG_LIMIT_MS })
    await task.close()
    return ending
  }
  const key = JSON.stringify([plan.end, isHandoff, plain, git])
  const found = references.get(key) ?? start()
  references.set(key, found)
  return found
}
