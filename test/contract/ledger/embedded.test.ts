import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { holdEmbedded } from "../../support/ledger/ledger-process.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { describeLedgerContract } from "./contract.ts"

for (const binary of BOTH_ENDS) {
  const embedded = holdEmbedded(binary)
  describeLedgerContract(`embedded on OpenCode ${binary.version}`, () =>
    createLedgerDriver(embedded(temporaryFolder())),
  )
}
