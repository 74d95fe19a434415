import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { holdEmbedded, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { describeLedgerContract } from "./contract.ts"

for (const binary of BOTH_ENDS) {
  const embedded = holdEmbedded(binary)
  describeLedgerContract(`embedded on OpenCode ${binary.version}`, () =>
    createLedgerDriver(embedded(temporaryFolder())),
  )
}

const real = findRealProg()

if (real.kind === "found") {
  describeLedgerContract("the real prog", () =>
    createLedgerDriver(runProgram(real.program, { home: temporaryFolder() })),
  )
} else registerMissingRealProg("the ledger's contract", real.reason)
