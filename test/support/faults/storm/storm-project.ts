import { cpSync } from "node:fs"
import { join } from "node:path"
import type { Script } from "../../model/scripted-model.ts"
import { NEWEST, OLDEST, REPOSITORY } from "../../opencode/opencode-binary.ts"
import { runProgram } from "../../opencode/opencode-run.ts"
import { openTaskProject, type TaskProject } from "../../opencode/task-project.ts"
import { CORRECTION, type Fault } from "../fault.ts"
import { HELD_TO_MODES } from "../fault-table.ts"
import { faultNamed } from "./catalogue.ts"
import { openGuard } from "./guard.ts"
import type { Ending } from "./oracle.ts"
import type { StormPlan, Turn } from "./plan.ts"
import { createStormScript, SHARED_CONTENT, SHARED_FILE } from "./storm-script.ts"

type Variables = Record<string, string>

/** Short, so that a hanging subagent costs only seconds. */
const POLICY = { timeout_ms: 4_000, max_time_ms: 8_000, retry_delay_ms: 10, max_retries: 1 }
const CODER = "---\ndescription: writes code\nmode: subagent\n---\nYou write code.\n"

export const correctionOf = (faults: readonly Fault[]): NonNullable<Fault["correction"]> =>
  faults.find(({ correction }) => correction !== undefined)?.correction ?? { text: CORRECTION, isSecret: false }

const renderPolicy = (faults: readonly Fault[]): string => {
  const policies = faults.flatMap(({ policy }) => (policy === undefined ? [] : [policy]))
  const text = policies.find((policy) => typeof policy === "string")
  if (typeof text === "string") return text
  const changes = policies.map((policy) => Object(Object(policy).defaults))
  return JSON.stringify({ defaults: Object.assign({}, POLICY, ...changes) })
}

/** Opens the project of a plan: its features, its agents, and baits around it. No fault is active yet. */
export const openStormProject = async (plan: StormPlan, script: Script, bundle: "planned" | "none" = "planned") => {
  const faults = plan.faults.map(({ name }) => faultNamed(name))
  const binary = plan.end === "oldest" ? OLDEST : NEWEST
  const options = Object.assign({}, ...faults.map((fault) => fault.options?.project ?? {}))
  const task = await openTaskProject(binary, script, bundle === "none" ? { ...options, bundle } : options)
  const { project } = task
  const guard = openGuard(project)
  const { liveState, learning, passOver } = plan.features
  const settings = { liveState: { enabled: liveState }, learning: { enabled: learning } }
  project.write(".opencode/baton.json", JSON.stringify(settings))
  if (passOver) project.write(".opencode/pass-over.json", renderPolicy(faults))
  for (const name of ["coder", "second"]) project.write(`.opencode/agent/${name}.md`, CODER)
  project.write(SHARED_FILE, SHARED_CONTENT)
  if (bundle === "planned") {
    cpSync(
      join(REPOSITORY, "test/support/faults/fault-plugin.ts"),
      join(project.directory, ".opencode/plugins/a-fault.ts"),
    )
  }
  return {
    task,
    guard,
    faults,
    /** Environment variables that the plan's faults give OpenCode. */
    environment: Object.assign({}, ...faults.map(({ options: own }) => own?.environment?.(task))) as Variables,
    launcher: [...HELD_TO_MODES, ...faults.flatMap((fault) => fault.options?.launcher ?? [])],
    correction: correctionOf(faults),
  }
}

export type StormProject = Awaited<ReturnType<typeof openStormProject>>

/** Longer than any run on a quiet machine: a run that reaches it hangs. */
export const HANG_LIMIT_MS = 600_000

type TurnOptions = {
  readonly message: string
  readonly args: readonly string[]
  readonly environment?: Variables
  readonly launcher?: readonly string[]
  readonly onStart?: (pid: number) => void
}

/** One `opencode run` to its end; at the limit it is killed by its pid. */
export const runTurn = async (
  { project, binary }: Pick<TaskProject, "project" | "binary">,
  { message, args, environment = {}, launcher = [], onStart }: TurnOptions,
): Promise<Ending> => {
  const argv = [...launcher, binary.path, "run", "--log-level", "DEBUG", ...args]
  return await runProgram(argv as [string, ...string[]], {
    project,
    environment,
    stdin: message,
    deadlineMs: HANG_LIMIT_MS,
    ...(onStart ? { onStart } : {}),
  })
}

const references = new Map<string, Promise<Ending>>()

/** Without the bundle its tools are missing; their answers are not compared, so that any step can replace them. */
const withoutTools = ({ kind, steps }: Turn): Turn => ({
  kind,
  steps: kind === "handoff" ? ["write"] : steps.map((step) => (step === "compact" ? step : "write")),
})

const runReference = async (plan: StormPlan, turn: Turn): Promise<Ending> => {
  const agents = createStormScript({
    seed: plan.seed,
    child: "work",
    root: undefined,
    handoffFiles: [],
    correction: "",
    onRequest: async () => {},
    settle: async () => {},
  })
  const { task } = await openStormProject(plan, agents.script, "none")
  agents.beginTurn(0, turn)
  const ending = await runTurn(task, { message: task.message, args: [] })
  await task.model.close()
  await task.project.remove()
  return ending
}

/** The end of this run without the bundle and without faults; runs with the same work share it. */
export const referenceOf = (plan: StormPlan, planned: Turn): Promise<Ending> => {
  const faults = plan.faults.filter(({ name }) => faultNamed(name).options?.project?.git === false)
  const turn = withoutTools(planned)
  // Without the bundle a handoff calls a missing tool, with any steps.
  const key = JSON.stringify([plan.end, turn.kind === "handoff", turn.steps, faults.length])
  const found = references.get(key) ?? runReference({ ...plan, faults }, turn)
  references.set(key, found)
  return found
}
