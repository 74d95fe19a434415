import { startAgent } from "./agent.ts"
import { type CheckResult, checksIn, redLine, runCheck } from "./checks.ts"
import type { Queue, WorkLedger } from "./ledger.ts"
import { readLive } from "./live.ts"
import type { WorkOptions } from "./options.ts"
import { endMarked, RUN_MARK } from "./processes.ts"
import type { Worktrees } from "./worktrees.ts"

/** The reason for which work is not begun, in words for the person. No task was touched. */
export class NotReady extends Error {
  override readonly name = "NotReady"
}

/** It asks for no work, so that no task is made of it where `autoTask` is on. */
const ASKED = "Are you there? Answer with one word."
const ANSWER_MS = 120_000
const LOOK_MS = 500

type ProbeDeps = {
  readonly opencode: string
  readonly directory: string
  readonly args: readonly string[]
  readonly workerID: string
  readonly answerMs?: number
}

/**
 * Asks the model for one answer, and once more when it does not come: several OpenCodes that start at once lock their database.
 *
 * @returns undefined when it came, else what is wrong
 */
export const probeModel = async (deps: ProbeDeps): Promise<string | undefined> =>
  (await probeOnce(deps)) === undefined ? undefined : probeOnce(deps)

const probeOnce = async ({ answerMs = ANSWER_MS, ...deps }: ProbeDeps): Promise<string | undefined> => {
  const mark = `probe.${deps.workerID}`
  let hasAnswered = false
  const agent = startAgent({
    ...deps,
    args: ["--title", "baton work: is the model there?", ...deps.args],
    message: ASKED,
    mark,
    holder: deps.workerID,
    onProgress: () => {
      hasAnswered = true
    },
  })
  let exit: Awaited<typeof agent.exited> | undefined
  void agent.exited.then((ended) => {
    exit = ended
  })
  let retrying: string | undefined
  for (const endsAt = Date.now() + answerMs; !exit && Date.now() < endsAt; ) {
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_MS)
    })
    const live = exit
      ? undefined
      : await readLive(deps.directory, { session: agent.seen().session, pid: agent.pid, mark })
    retrying = live?.retry?.message ?? retrying
  }
  await endMarked(RUN_MARK, mark)
  const { error, complaint } = agent.seen()
  if (error) return error.message || error.name
  if (hasAnswered) return undefined
  const last = complaint.trim().split("\n").at(-1)
  if (!exit) return `no answer within ${answerMs / 1_000} s${retrying === undefined ? "" : `: ${retrying}`}`
  return last || `opencode exited with ${exit.exitCode} and no answer`
}

type PreflightDeps = ProbeDeps & {
  readonly options: WorkOptions
  readonly queue: Queue
  readonly worktrees: Worktrees | undefined
  readonly ledger: Pick<WorkLedger, "touch">
  readonly worker: Parameters<WorkLedger["touch"]>[0]
  readonly say: (text: string) => void
}

/** The commands that stand in the ready tasks. */
const commandsIn = (queue: Queue): string[] => [
  ...new Set(queue.tasks.flatMap(({ definition_of_done }) => checksIn(definition_of_done))),
]

/** Runs the checks on the base. @returns the first that is red */
const findRed = async (
  commands: readonly string[],
  directory: string,
  { options, workerID }: PreflightDeps,
): Promise<CheckResult | undefined> => {
  for (const command of commands) {
    const result = await runCheck(command, {
      directory,
      deadlineMs: options.maxRunMs,
      mark: `base.${workerID}`,
      workerID,
    })
    if (!result.isGreen) return result
  }
  return undefined
}

/** Looks at all that would make a night fail, before a task is taken. @throws NotReady */
export const preflight = async (deps: PreflightDeps): Promise<void> => {
  const { options, queue, worktrees, ledger, worker, say, directory } = deps
  await ledger.touch(worker).catch((error: unknown) => {
    throw new NotReady(`the ledger cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  })
  const commands = options.checks ? commandsIn(queue) : []
  if (worktrees !== undefined || commands.length > 0) {
    const look = (base: string) => findRed(commands, base, deps)
    for (const command of commands) say(`check on the base: ${command}`)
    const red = await (worktrees ? worktrees.withBase(look) : look(directory)).catch((error: unknown) => {
      throw new NotReady(`no worktree can be made: ${error instanceof Error ? error.message : String(error)}`)
    })
    if (red) throw new NotReady(`the check is red before any work: ${redLine(red)}\n${red.output}`)
  }
  say("asking the model for one answer")
  const wrong = await probeModel(deps)
  if (wrong !== undefined) throw new NotReady(`the model does not answer: ${wrong}`)
}
