import { describe } from "vitest"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import { CLAIM_FAULTS } from "../../support/faults/fault-claim-table.ts"
import { FOREIGN_PROG, LEDGER_FAULTS, pathWithFakeProg } from "../../support/faults/fault-ledger-table.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { endsOf, IS_NIGHT, type TaskProject } from "../../support/index.ts"

const withLedger = (ledger: string) => (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: ledger })

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  describeFaults("faults of the ledger", binary, LEDGER_FAULTS, { environment: withLedger("real") })
})

/** By day without what test/contract/ledger/claims.test.ts holds: a killed holder, and a clock that is set back. */
const claims = IS_NIGHT ? CLAIM_FAULTS : CLAIM_FAULTS.slice(0, 2)

for (const [index, fault] of [...MACHINE_FAULTS, FOREIGN_PROG, ...claims].entries())
  describe.each(endsOf(index))("OpenCode $version", (binary) =>
    describeFaults(fault.name, binary, [fault], fault.options),
  )
