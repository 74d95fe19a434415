import { describe } from "vitest"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import { FOREIGN_PROG, LEDGER_FAULTS, pathWithFakeProg } from "../../support/faults/fault-ledger-table.ts"
import { closeTaskProjects, endsOf, type TaskProject } from "../../support/index.ts"

closeTaskProjects()

const withLedger = (ledger: string) => (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: ledger })

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  describeFaults("faults of the ledger", binary, LEDGER_FAULTS, { environment: withLedger("real") })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  describeFaults("a stranger on PATH", binary, [FOREIGN_PROG], { environment: withLedger("") })
})
