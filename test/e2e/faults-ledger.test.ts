import { describe } from "vitest"
import { describeFaults } from "../support/fault-assertions.ts"
import { FOREIGN_PROG, LEDGER_FAULTS, pathWithFakeProg } from "../support/fault-ledger-table.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { closeTaskProjects, type TaskProject } from "../support/task-project.ts"

closeTaskProjects()

const withLedger = (ledger: string) => (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: ledger })

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  describeFaults("faults of the ledger", binary, LEDGER_FAULTS, { environment: withLedger("real") })
  describeFaults("a stranger on PATH", binary, [FOREIGN_PROG], { environment: withLedger("") })
})
