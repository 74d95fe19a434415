import { existsSync } from "node:fs"
import type { ProcessOutcome } from "../../host/process.ts"
import type { LedgerStatus } from "../../ledger/ledger.ts"
import { broken, type Check, type Observation, ok, type Subject, warning } from "../finding.ts"
import { locateLedger } from "../locate-ledger.ts"

const ANSWER_DEADLINE_MS = 2_000
const LEAVE_IT_ALONE = "Mend or remove that program, or set BATON_LEDGER=embedded to leave it alone."

const describeAnswer = (outcome: ProcessOutcome): string => {
  switch (outcome.kind) {
    case "exited":
      return `exited with ${outcome.exitCode} when asked for help`
    case "timed-out":
      return `did not answer within ${outcome.deadlineMs} ms`
    case "not-started":
      return `cannot be started: ${outcome.cause}`
  }
}

const judgeReal = async (path: string, { run, scratch }: Pick<Subject, "run" | "scratch">): Promise<Observation> => {
  const outcome = await run([path, "--help"], { cwd: scratch, deadlineMs: ANSWER_DEADLINE_MS })
  if (outcome.kind === "exited" && outcome.exitCode === 0) return ok(`real prog (${path})`)
  return broken(`no ledger: ${path} ${describeAnswer(outcome)}; records wait in the outbox`, LEAVE_IT_ALONE)
}

const judgeProgram = async ({ program }: LedgerStatus, subject: Subject): Promise<Observation> => {
  switch (program.kind) {
    case "real":
      return judgeReal(program.path, subject)
    case "embedded":
      return existsSync(program.path)
        ? ok("embedded ledger, since no real prog is on PATH; both keep the same database")
        : broken(
            `no real prog on PATH, and the embedded ledger is missing: ${program.path}`,
            "Run scripts/install again.",
          )
    case "unavailable":
      return broken(`no ledger: ${program.reason}; records wait in the outbox`, LEAVE_IT_ALONE)
  }
}

export const ledgerCheck: Check = {
  id: "ledger",
  needsBundle: true,
  examine: async (subject) => {
    const status = await locateLedger(subject)
    const foreign = status.foreign.map(({ path, reason }) =>
      warning(
        `${path} is called prog and is not the ledger: ${reason}`,
        "Baton does not use it. In your own shell, write .opencode/baton/bin/prog. A script around the real prog needs a line that names github.com/baiirun/prog.",
      ),
    )
    return [await judgeProgram(status, subject), ...foreign]
  },
}
