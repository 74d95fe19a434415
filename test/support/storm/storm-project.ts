import { cpSync } from "node:fs"
import { join } from "node:path"
import { HELD_TO_MODES } from "../fault-table.ts"
import { NEWEST, OLDEST, type OpenCodeBinary, REPOSITORY } from "../opencode-binary.ts"
import type { Script } from "../scripted-model.ts"
import { openTaskProject, type TaskProject } from "../task-project.ts"
import { faultNamed } from "./catalogue.ts"
import { type Guard, openGuard } from "./guard.ts"
import type { StormPlan } from "./plan.ts"
import { CORRECTION, type StormFault } from "./storm-fault.ts"
import { SHARED_CONTENT, SHARED_FILE } from "./storm-script.ts"

/** Short, so that a subagent that never answers costs seconds. */
const POLICY = { timeout_ms: 4_000, max_time_ms: 8_000, retry_delay_ms: 10, max_retries: 1 }
const CODER = "---\ndescription: writes code\nmode: subagent\n---\nYou write code.\n"

export type StormProject = {
  readonly task: TaskProject
  readonly guard: Guard
  readonly faults: readonly StormFault[]
  /** What the faults of the plan start OpenCode with, and in. */
  readonly environment: Readonly<Record<string, string>>
  readonly launcher: readonly string[]
  readonly correction: { readonly text: string; readonly isSecret: boolean }
}

export const binaryOf = ({ end }: Pick<StormPlan, "end">): OpenCodeBinary => (end === "oldest" ? OLDEST : NEWEST)

export const correctionOf = (faults: readonly StormFault[]): StormProject["correction"] =>
  faults.find(({ correction }) => correction !== undefined)?.correction ?? { text: CORRECTION, isSecret: false }

const renderPolicy = (faults: readonly StormFault[]): string => {
  const policies = faults.flatMap(({ policy }) => (policy === undefined ? [] : [policy]))
  const text = policies.find((policy) => typeof policy === "string")
  if (typeof text === "string") return text
  const changes = policies.map((policy) => Object(Object(policy).defaults))
  return JSON.stringify({ defaults: Object.assign({}, POLICY, ...changes) })
}

/** The project of a plan: its features, its agents, and baits around it. Nothing is broken yet. */
export const openStormProject = async (
  plan: StormPlan,
  script: Script,
  bundle: "planned" | "none" = "planned",
): Promise<StormProject> => {
  const faults = plan.faults.map(({ name }) => faultNamed(name))
  const options = Object.assign({}, ...faults.map((fault) => fault.options?.project ?? {}))
  const task = await openTaskProject(binaryOf(plan), script, bundle === "none" ? { ...options, bundle } : options)
  const { project } = task
  const guard = openGuard(project)
  const { liveState, learning, passOver } = plan.features
  const settings = { liveState: { enabled: liveState }, learning: { enabled: learning } }
  project.write(".opencode/baton.json", JSON.stringify(settings))
  if (passOver) project.write(".opencode/pass-over.json", renderPolicy(faults))
  for (const name of ["coder", "second"]) project.write(`.opencode/agent/${name}.md`, CODER)
  project.write(SHARED_FILE, SHARED_CONTENT)
  if (bundle === "planned") {
    cpSync(join(REPOSITORY, "test/support/fault-plugin.ts"), join(project.directory, ".opencode/plugins/a-fault.ts"))
  }
  return {
    task,
    guard,
    faults,
    environment: Object.assign({}, ...faults.map((fault) => fault.options?.environment?.(task) ?? {})),
    launcher: [...HELD_TO_MODES, ...faults.flatMap((fault) => fault.options?.launcher ?? [])],
    correction: correctionOf(faults),
  }
}
