import { createLedgerDriver } from "../support/ledger-driver.ts"
import { holdEmbedded } from "../support/ledger-process.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { temporaryFolder } from "../support/temporary-folder.ts"
import { describeLedgerContract } from "./ledger-contract.ts"

for (const binary of BOTH_ENDS) {
  const embedded = holdEmbedded(binary)
  describeLedgerContract(`embedded on OpenCode ${binary.version}`, () =>
    createLedgerDriver(embedded(temporaryFolder())),
  )
}
