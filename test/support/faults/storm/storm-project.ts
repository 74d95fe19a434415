import type { Script } from "../../model/scripted-model.ts"
import { NEWEST, OLDEST } from "../../opencode/opencode-binary.ts"
import type { RunResult } from "../../opencode/opencode-run.ts"
import { CODER } from "../../opencode/pass-over-project.ts"
import { openTaskProject } from "../../opencode/task-project.ts"
import type { Fault } from "../fault.ts"
import { addFaultPlugin, HELD_TO_MODES } from "../fault-table.ts"
import { faultNamed } from "./catalogue.ts"
import { openGuard } from "./guard.ts"
import type { StormPlan, Turn } from "./plan.ts"
import { createStormScript, SHARED_CONTENT, SHARED_FILE } from "./storm-script.ts"

/** Short, so that a hanging subagent costs only seconds. */
const POLICY = { timeout_ms: 4_000, max_time_ms: 8_000, retry_delay_ms: 10, max_retries: 1 }

const renderPolicy = (faults: readonly Fault[]): string => {
  const policies = faults.flatMap(({ policy }) => (policy === undefined ? [] : [policy]))
  const text = policies.find((policy) => typeof policy === "string")
  if (typeof text === "string") return text
  const changes = policies.map((policy) => Object(Object(policy).defaults))
  return JSON.stringify({ defaults: Object.assign({}, POLICY, ...changes) })
}

const binaryOf = ({ end }: StormPlan) => (end === "oldest" ? OLDEST : NEWEST)

/** Opens the project of a plan: its features, its agents, and baits around it. No fault is active yet. */
export const openStormProject = async (plan: StormPlan, faults: readonly Fault[], script: Script) => {
  const options = Object.assign({}, ...faults.map((fault) => fault.options?.project ?? {}))
  // Nobody is there to answer whether a result may go back.
  const config = { permission: { pass_over_result: "allow" }, ...Object(options.config) }
  const task = await openTaskProject(binaryOf(plan), script, { ...options, config })
  const { project } = task
  const guard = openGuard(project)
  const { liveState, learning, passOver } = plan.features
  const settings = { liveState: { enabled: liveState }, learning: { enabled: learning } }
  project.write(".opencode/baton.json", JSON.stringify(settings))
  if (passOver) project.write(".opencode/pass-over.json", renderPolicy(faults))
  for (const name of ["coder", "second"]) project.write(`.opencode/agent/${name}.md`, CODER)
  project.write(SHARED_FILE, SHARED_CONTENT)
  addFaultPlugin(project)
  const environment: Record<string, string> = Object.assign(
    {},
    ...faults.map((fault) => fault.options?.environment?.(task)),
  )
  return {
    task,
    guard,
    environment,
    launcher: [...HELD_TO_MODES, ...faults.flatMap((fault) => fault.options?.launcher ?? [])],
  }
}

/** Longer than any run on a quiet machine: a run that reaches it hangs. */
export const HANG_LIMIT_MS = 600_000

const references = new Map<string, Promise<RunResult>>()

/** Without the bundle its tools are missing; their answers are not compared, so that any step can replace them. */
const withoutTools = ({ kind, steps }: Turn): Turn => ({
  kind,
  steps: kind === "handoff" ? ["write"] : steps.map((step) => (step === "compact" ? step : "write")),
})

const runReference = async (plan: StormPlan, turn: Turn, git: boolean): Promise<RunResult> => {
  const agents = createStormScript({ seed: plan.seed })
  const task = await openTaskProject(binaryOf(plan), agents.script, { bundle: "none", git })
  agents.beginTurn(0, turn)
  const ending = await task.run(task.message, { deadlineMs: HANG_LIMIT_MS })
  await task.model.close()
  await task.project.remove()
  return ending
}

/** The end of this run without the bundle and without faults; runs with the same work share it. */
export const referenceOf = (plan: StormPlan, planned: Turn): Promise<RunResult> => {
  const git = plan.faults.every(({ name }) => faultNamed(name).options?.project?.git !== false)
  const turn = withoutTools(planned)
  // Without the bundle a handoff calls a missing tool, with any steps.
  const key = JSON.stringify([plan.end, turn.kind === "handoff", turn.steps, git])
  const found = references.get(key) ?? runReference(plan, turn, git)
  references.set(key, found)
  return found
}
