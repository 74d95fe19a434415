import { existsSync, readdirSync } from "node:fs"
import { signalIfThere } from "../../../../.opencode/baton/host/process.ts"
import type { RunResult } from "../../opencode/opencode-run.ts"
import { eventually } from "../../opencode/opencode-server.ts"
import type { TaskProject } from "../../opencode/task-project.ts"
import { CORRECTION, type Fault, type Scene } from "../fault.ts"
import { awaitNoProcesses } from "../fault-leftovers.ts"
import { recordsIn, stateFolder } from "../fault-stored-table.ts"
import { faultNamed } from "./catalogue.ts"
import { owedLogsOf, readPasses } from "./observe.ts"
import { isOwedLine, type SeenPass } from "./oracle.ts"
import type { Moment, PlannedFault, StormPlan, Turn } from "./plan.ts"
import { HANG_LIMIT_MS, openStormProject } from "./storm-project.ts"
import { createStormScript } from "./storm-script.ts"
import { canTrace, tracingLauncher } from "./trace.ts"

const SETTLE_DEADLINE_MS = 120_000
/** For runs that may lose records: waiting for all of them may never succeed. */
const LOSS_DEADLINE_MS = 10_000
const ASK_EVERY_MS = 250
/** On a busy machine the embedded ledger may time out, and Baton stops calling it for the rest of a run. */
const MOST_CLEAN_RUNS = 3

type StormFault = Fault & PlannedFault

/** Arranges and lifts faults, each at its moment. */
const createFaultClock = (faults: readonly StormFault[], scene: Scene) => {
  const standing = new Set<StormFault>()
  const struck = new Set<StormFault>()

  const attempt = async (what: string, work: () => void | Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      scene.complain(`storm: ${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }
  const strike = async (fault: StormFault): Promise<void> => {
    struck.add(fault)
    standing.add(fault)
    await attempt(`${fault.name} could not be arranged`, () => fault.arrange?.(scene, fault.delayMs))
  }
  const lift = async (fault: StormFault): Promise<void> => {
    if (standing.delete(fault)) await attempt(`${fault.name} could not be lifted`, () => fault.lift?.(scene))
  }

  return {
    prepare: async (): Promise<void> => {
      for (const fault of faults) await attempt(`${fault.name} could not be prepared`, () => fault.prepare?.(scene))
    },
    reach: async (turn: number, request: number): Promise<void> => {
      const isNow = (moment?: Moment) => moment?.turn === turn && moment.request === request
      for (const fault of faults) {
        if (isNow(fault.lifts)) await lift(fault)
        if (isNow(fault.strikes)) await strike(fault)
      }
    },
    liftAll: async (): Promise<void> => {
      for (const fault of faults.toReversed()) await lift(fault)
    },
    /** The faults that were arranged; a run that ended early does not reach every moment. */
    struck: (): readonly StormFault[] => [...struck],
  }
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

/** Sets up project, agents and faults of a plan. */
export const openStage = async (plan: StormPlan) => {
  const faults = plan.faults.map((planned) => ({ ...faultNamed(planned.name), ...planned }))
  const correction = faults.find((fault) => fault.correction)?.correction ?? { text: CORRECTION, isSecret: false }
  const complaints: string[] = []
  const followed: Promise<unknown>[] = []
  const stops: (() => void)[] = []
  let running: number | undefined
  let wasKilled = false
  let wasEverKilled = false

  const agents = createStormScript({
    seed: plan.seed,
    child: faults.find(({ child }) => child !== undefined)?.child,
    root: faults.find(({ root }) => root !== undefined)?.root,
    handoffFiles: faults.flatMap(({ handoffFiles = [] }) => handoffFiles),
    correction: correction.text,
    onRequest: (turn, request) => clock.reach(turn, request),
    settle: () => settle(),
  })
  const { task, guard, ...opened } = await openStormProject(plan, faults, agents.script)
  // Under strace a kill would hit strace and not OpenCode.
  const isTraced = plan.isTraced && canTrace() && !faults.some(({ kills }) => kills)
  const { PATH: plannedPath, ...environment } = opened.environment
  const launcher = [
    ...opened.launcher,
    ...(isTraced ? tracingLauncher(task.project) : []),
    // OpenCode's PATH may not hold the launchers.
    ...(plannedPath === undefined ? [] : ["env", `PATH=${plannedPath}`]),
  ]
  const scene: Scene = {
    ...task,
    environment: opened.environment,
    killOpenCode: () => {
      wasKilled = running !== undefined
      if (running !== undefined) signalIfThere(running, "SIGKILL")
    },
    complain: (what) => complaints.push(what),
    follow: (work) => followed.push(work),
    onEnd: (stop) => stops.push(stop),
  }
  const clock = createFaultClock(faults, scene)

  /** Both disk and ledger refused records for a while: records that were only in memory may be lost. */
  const refusedAll = (): boolean =>
    (["disk", "ledger"] as const).every((what) => clock.struck().some(({ refuses }) => refuses === what))

  const isSettled = async (): Promise<true | undefined> => {
    const marks = stateFolder(task, "learning/waiting")
    const isLearned = !existsSync(marks) || readdirSync(marks).length === 0
    const isOpen = ({ state }: SeenPass) => state !== undefined && /wait|sent/.test(state)
    if (recordsIn(task, "outbox").length > 0 || !isLearned) return undefined
    if (readPasses(task, agents.seen.passes).some(isOpen)) return undefined
    // Checked last, since each query starts a process.
    const { logs } = await task.ledger.show(task.taskID)
    const missing = owedLogsOf(agents.seen, wasEverKilled).some(
      (owed) => owed.isCertain && !logs.some(({ message }) => isOwedLine(owed, message)),
    )
    return missing ? undefined : true
  }
  // Missing records are reported by the oracle.
  const settle = async (): Promise<void> => {
    const mostMs = refusedAll() ? LOSS_DEADLINE_MS : SETTLE_DEADLINE_MS
    await eventually("every record in the ledger", isSettled, mostMs, ASK_EVERY_MS).catch(() => undefined)
  }
  await clock.prepare()

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
    struck: clock.struck,
    refusedAll,
    /** Runs one turn of the plan, with the faults whose moment falls in it. */
    run: async (turn: Turn, index: number) => {
      wasKilled = false
      agents.beginTurn(index, turn)
      await clock.reach(index, 0)
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
      const endings: RunResult[] = []
      const processes: string[] = []
      while (endings.length === 0 || (endings.length < MOST_CLEAN_RUNS && recordsIn(task, "outbox").length > 0)) {
        const args = sessionArgs(task)
        const message = args.length > 0 ? "Go on." : task.message
        endings.push(await task.run(message, { args, deadlineMs: HANG_LIMIT_MS }))
        processes.push(...(await awaitNoProcesses(task.project)))
      }
      return { endings, processes }
    },
  }
}

export type Stage = Awaited<ReturnType<typeof openStage>>
