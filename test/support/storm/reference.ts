import { faultNamed } from "./catalogue.ts"
import { type Ending, plain } from "./oracle.ts"
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
  task.project.remove()
  return ending
}

const ATTEMPTS = 5

const isAlike = (one: Ending, other: Ending): boolean =>
  one.exitCode === other.exitCode &&
  plain(one.stdout) === plain(other.stdout) &&
  plain(one.stderr) === plain(other.stderr)

/** OpenCode alone may stumble on a busy machine: the reference is what two runs, one after the other, print alike. */
const runAlike = async (plan: StormPlan, turn: Turn): Promise<Ending> => {
  let before = await run(plan, turn)
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    const ending = await run(plan, turn)
    if (isAlike(ending, before)) return ending
    before = ending
  }
  throw new Error(`no two of ${ATTEMPTS} runs without the bundle ended alike, the last with ${JSON.stringify(before)}`)
}

/** How this run of a plan ends without the bundle and with nothing broken; runs of the same work share it. */
export const referenceOf = (plan: StormPlan, planned: Turn): Promise<Ending> => {
  const faults = plan.faults.filter(({ name }) => faultNamed(name).options?.project?.git === false)
  const turn = withoutTools(planned)
  const key = JSON.stringify([plan.end, turn.steps, faults.length])
  const found = known.get(key) ?? runAlike({ ...plan, faults }, turn)
  known.set(key, found)
  return found
}
