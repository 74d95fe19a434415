import { existsSync, readdirSync } from "node:fs"
import { signalIfThere } from "../../../../.opencode/baton/host/process.ts"
import { eventually } from "../../opencode/opencode-server.ts"
import type { TaskProject } from "../../opencode/task-project.ts"
import type { Fault, Scene } from "../fault.ts"
import { awaitNoProcesses } from "../fault-leftovers.ts"
import { recordsIn, stateFolder } from "../fault-stored-table.ts"
import { faultNamed } from "./catalogue.ts"
import { owedLogsOf, readPasses } from "./observe.ts"
import type { Ending, SeenPass } from "./oracle.ts"
import type { Moment, PlannedFault, StormPlan, Turn } from "./plan.ts"
import { correctionOf, openStormProject, runTurn, type StormProject } from "./storm-project.ts"
import { createStormScript } from "./storm-script.ts"
import { canTrace, tracingLauncher } from "./trace.ts"

const SETTLE_DEADLINE_MS = 120_000
/** For runs that may lose records: waiting for all of them may never succeed. */
const LOSS_DEADLINE_MS = 10_000
const ASK_EVERY_MS = 250
/** On a busy machine the embedded ledger may time out, and Baton stops calling it for the rest of a run. */
const MOST_CLEAN_RUNS = 3

/** Arranges and lifts the faults of a plan, each at its moment. */
const createFaultClock = (plan: StormPlan, faults: readonly Fault[], scene: Scene) => {
  const standing = new Set<string>()
  const struck = new Set<string>()
  const known = new Map(faults.map((fault) => [fault.name, fault]))

  const attempt = async (what: string, work: () => void | Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      scene.complain(`storm: ${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }
  const strike = async ({ name, delayMs }: PlannedFault): Promise<void> => {
    struck.add(name)
    standing.add(name)
    await attempt(`${name} could not be arranged`, () => known.get(name)?.arrange?.(scene, delayMs))
  }
  const lift = async (name: string): Promise<void> => {
    if (standing.delete(name)) await attempt(`${name} could not be lifted`, () => known.get(name)?.lift?.(scene))
  }

  return {
    prepare: async (): Promise<void> => {
      for (const { name, prepare } of faults) await attempt(`${name} could not be prepared`, () => prepare?.(scene))
    },
    reach: async (turn: number, request: number): Promise<void> => {
      const isNow = (moment?: Moment) => moment?.turn === turn && moment.request === request
      for (const fault of plan.faults) {
        if (isNow(fault.lifts)) await lift(fault.name)
        if (isNow(fault.strikes)) await strike(fault)
      }
    },
    liftAll: async (): Promise<void> => {
      for (const { name } of plan.faults.toReversed()) await lift(name)
    },
    /** Names of the faults that were arranged; a run that ended early does not reach every moment. */
    struck: (): readonly string[] => [...struck],
  }
}

/** The first session that OpenCode's log names; none if OpenCode was killed before it created one. */
const rootSession = ({ project }: TaskProject): string | undefined => {
  try {
    return project.log().match(/\bses_[A-Za-z0-9]{20,}/)?.[0]
  } catch {
    return undefined
  }
}

const messageOf = (turn: Turn, { task, correction }: StormProject): string => {
  if (turn.kind === "correction") return correction.text
  if (turn.kind === "handoff") return "finish the parser"
  return turn.kind === "task" ? task.message : "Go on with it."
}

/** Sets up project, agents and faults of a plan. */
export const openStage = async (plan: StormPlan) => {
  const faults = plan.faults.map(({ name }) => faultNamed(name))
  const complaints: string[] = []
  const followed: Promise<unknown>[] = []
  const stops: (() => void)[] = []
  let running: number | undefined
  let wasKilled = false
  let wasEverKilled = false

  const agents = createStormScript({
    seed: plan.seed,
    child: faults.find(({ child }) => child !== undefined)?.child ?? "work",
    root: faults.find(({ root }) => root !== undefined)?.root,
    handoffFiles: faults.flatMap(({ handoffFiles = [] }) => handoffFiles),
    correction: correctionOf(faults).text,
    onRequest: (turn, request) => clock.reach(turn, request),
    settle: () => settle(),
  })
  const opened = await openStormProject(plan, agents.script)
  const { task, environment } = opened
  // Under strace a kill would hit strace and not OpenCode.
  const isTraced = plan.isTraced && canTrace() && !faults.some(({ kills }) => kills)
  const { PATH: plannedPath, ...otherVariables } = environment
  const launcher = [
    ...opened.launcher,
    ...(isTraced ? tracingLauncher(task.project) : []),
    // OpenCode's PATH may not hold the launchers.
    ...(plannedPath === undefined ? [] : ["env", `PATH=${plannedPath}`]),
  ]
  const scene: Scene = {
    ...task,
    environment,
    killOpenCode: () => {
      wasKilled = running !== undefined
      if (running !== undefined) signalIfThere(running, "SIGKILL")
    },
    complain: (what) => complaints.push(what),
    follow: (work) => followed.push(work),
    onEnd: (stop) => stops.push(stop),
  }
  const clock = createFaultClock(plan, faults, scene)

  /** Both disk and ledger refused records for a while: records that were only in memory may be lost. */
  const refusedAll = (): boolean => {
    const standing = faults.filter(({ name }) => clock.struck().includes(name))
    return (["disk", "ledger"] as const).every((what) => standing.some(({ refuses }) => refuses === what))
  }

  const isSettled = async (): Promise<true | undefined> => {
    const marks = stateFolder(task, "learning/waiting")
    const isLearned = !existsSync(marks) || readdirSync(marks).length === 0
    const isOpen = ({ state }: SeenPass) => state !== undefined && /wait|sent/.test(state)
    if (recordsIn(task, "outbox").length > 0 || !isLearned) return undefined
    if (readPasses(task, agents.seen.passes).some(isOpen)) return undefined
    // Checked last, since each query starts a process.
    const { logs } = await task.ledger.show(task.taskID)
    const missing = owedLogsOf(agents.seen, wasEverKilled).some(
      ({ begins, holds, isCertain }) =>
        isCertain && !logs.some(({ message }) => message.startsWith(begins) && message.includes(holds)),
    )
    return missing ? undefined : true
  }
  // Missing records are reported by the oracle.
  const settle = async (): Promise<void> => {
    const mostMs = refusedAll() ? LOSS_DEADLINE_MS : SETTLE_DEADLINE_MS
    await eventually("every record in the ledger", isSettled, mostMs, ASK_EVERY_MS).catch(() => undefined)
  }

  const sessionArgs = (): string[] => {
    const root = rootSession(task)
    return root === undefined ? [] : ["--session", root]
  }

  return {
    ...opened,
    seen: agents.seen,
    isTraced,
    /** Violations that a fault or the storm itself found. */
    complaints,
    struck: clock.struck,
    refusedAll,
    prepare: clock.prepare,
    /** Runs one turn of the plan, with the faults whose moment falls in it. */
    run: async (turn: Turn, index: number) => {
      wasKilled = false
      agents.beginTurn(index, turn)
      await clock.reach(index, 0)
      const session = sessionArgs()
      const isNew = session.length === 0
      const ending = await runTurn(task, {
        message: isNew ? task.message : messageOf(turn, opened),
        args: [...session, ...(turn.kind === "handoff" && !isNew ? ["--command", "handoff"] : [])],
        environment: otherVariables,
        launcher,
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
    /**
     * Lifts all faults and waits until no process runs.
     *
     * @returns processes that do not end
     */
    liftAll: async () => {
      await Promise.allSettled(followed)
      for (const stop of stops) stop()
      await clock.liftAll()
      return awaitNoProcesses(task.project)
    },
    /** Runs without faults: once, and again while records are pending. */
    runClean: async () => {
      agents.beginCleanRun()
      const endings: Ending[] = []
      const processes: string[] = []
      while (endings.length === 0 || (endings.length < MOST_CLEAN_RUNS && recordsIn(task, "outbox").length > 0)) {
        const args = sessionArgs()
        endings.push(await runTurn(task, { message: args.length > 0 ? "Go on." : task.message, args }))
        processes.push(...(await awaitNoProcesses(task.project)))
      }
      return { endings, processes }
    },
  }
}

export type Stage = Awaited<ReturnType<typeof openStage>>
