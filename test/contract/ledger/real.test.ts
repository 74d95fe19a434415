import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { describeLedgerContract } from "./contract.ts"

const real = findRealProg()

if (real.kind === "found") {
  describeLedgerContract("the real prog", () =>
    createLedgerDriver(runProgram(real.program, { home: temporaryFolder() })),
  )
} else registerMissingRealProg("the ledger's contract", real.reason)
