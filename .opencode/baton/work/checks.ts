import { spawn } from "node:child_process"
import { childEnvironment } from "../host/process.ts"
import { redact } from "../host/secrets.ts"
import { cutTextStart } from "../host/text.ts"
import { toArgument } from "../ledger/description.ts"
import type { Queue } from "./ledger.ts"
import { endMarked, RUN_MARK, WORKER_MARK } from "./processes.ts"

// A line `check: COMMAND` in a definition of done is run, where the person allowed it, instead of believing "done".

const CHECK_LINE = /^[ \t]*(?:[-*+][ \t]+|\[[ x]\][ \t]+)*`?check:[ \t]*`?(.+)$/gim

/** The commands of a definition of done, in order. */
export const checksIn = (definitionOfDone: string | null | undefined): string[] =>
  [...(definitionOfDone ?? "").matchAll(CHECK_LINE)].flatMap(([, rest = ""]) => {
    const command = rest.trimEnd().replace(/`$/, "")
    return command === "" ? [] : command
  })

/** The checks that stand in each task of the queue now, those of begun ones too: their next run may be this worker's. */
export const checksOf = ({ tasks, begun }: Pick<Queue, "tasks" | "begun">): ReadonlyMap<string, readonly string[]> =>
  new Map([...tasks, ...begun].map((each) => [each.task, checksIn(each.definition_of_done)]))

export type CheckResult = {
  readonly command: string
  readonly isGreen: boolean
  readonly exitCode: number | null
  readonly output: string
}

const OUTPUT_CHARACTERS = 4_000

/** Runs one check by the shell. @param mark its processes end with it */
export const runCheck = async (
  command: string,
  { directory, deadlineMs, mark, workerID }: { directory: string; deadlineMs: number; mark: string; workerID: string },
): Promise<CheckResult> => {
  const child = spawn("/bin/sh", ["-c", command], {
    cwd: directory,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: childEnvironment({ BUN_BE_BUN: undefined, PWD: directory, [RUN_MARK]: mark, [WORKER_MARK]: workerID }),
  })
  let output = ""
  const take = (data: Buffer): void => {
    output = cutTextStart(output + data.toString(), 2 * OUTPUT_CHARACTERS)
  }
  child.stdout.on("data", take)
  child.stderr.on("data", take)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    void endMarked(RUN_MARK, mark, 0)
  }, deadlineMs)
  const exitCode = await new Promise<number | null>((resolve) => {
    child.on("error", () => resolve(127))
    child.on("exit", resolve)
  })
  clearTimeout(timer)
  await endMarked(RUN_MARK, mark)
  const text = toArgument(redact(cutTextStart(output.trim(), OUTPUT_CHARACTERS)))
  return {
    command,
    isGreen: exitCode === 0 && !isLate,
    exitCode,
    output: isLate ? `${text}\n(it did not end in time)` : text,
  }
}

/** `npm test: 2 failed`: the command and the last line of its output. */
export const redLine = ({ command, exitCode, output }: CheckResult): string =>
  `${command}: ${output.split("\n").findLast((line) => line.trim() !== "") ?? `exit code ${exitCode}`}`
