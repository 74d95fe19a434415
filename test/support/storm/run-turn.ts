import { runProgram } from "../opencode-run.ts"
import type { TaskProject } from "../task-project.ts"
import type { Ending } from "./oracle.ts"

/** More than any run needs on a quiet machine: whoever has not ended then never will. */
export const HANG_LIMIT_MS = 600_000

export type TurnOptions = {
  readonly message: string
  readonly args: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly launcher?: readonly string[]
  readonly onStart?: (pid: number) => void
  readonly limitMs?: number
}

/** One `opencode run` to its end; at the limit it is killed, by its id. */
export const runTurn = async (
  { project, binary }: Pick<TaskProject, "project" | "binary">,
  { message, args, environment = {}, launcher = [], onStart, limitMs = HANG_LIMIT_MS }: TurnOptions,
): Promise<Ending> => {
  const argv = [...launcher, binary.path, "run", "--log-level", "DEBUG", ...args]
  return await runProgram(argv as [string, ...string[]], {
    project,
    environment: { ...environment },
    stdin: message,
    deadlineMs: limitMs,
    ...(onStart ? { onStart } : {}),
  })
}
