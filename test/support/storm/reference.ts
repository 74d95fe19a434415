import { faultNamed } from "./catalogue.ts"
import type { Ending } from "./oracle.ts"
import type { StormPlan, Turn } from "./plan.ts"
import { runTurn } from "./run-turn.ts"
import { openStormProject } from "./storm-project.ts"
import { createStormScript } from "./storm-script.ts"

const known = new Map<string, Promise<Ending>>()

/** OpenCode without the bundle lacks its tools; what they answer is not compared, so that any step stands in for them. */
const withoutTools = ({ kind, steps }: Turn): Turn => ({
  kind,
  steps: kind === "handoff" ? ["write"] : steps.map((step) => (step === "compact" ? step : "write")),
})

const run = async (plan: StormPlan, turn: Turn): Promise<Ending> => {
  const agents = createStormScript({
    seed: plan.seed,
    child: undefined,
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

/** How this run of a plan ends without the bundle and with nothing broken; runs of the same work share it. */
export const referenceOf = (plan: StormPlan, planned: Turn): Promise<Ending> => {
  const faults = plan.faults.filter(({ name }) => faultNamed(name).options?.project?.git === false)
  const turn = withoutTools(planned)
  // A handoff calls a tool that is not there without the bundle, whatever its steps.
  const key = JSON.stringify([plan.end, turn.kind === "handoff", turn.steps, faults.length])
  const found = known.get(key) ?? run({ ...plan, faults }, turn)
  known.set(key, found)
  return found
}
