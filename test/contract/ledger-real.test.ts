import { createLedgerDriver } from "../support/ledger-driver.ts"
import { runProgram } from "../support/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../support/ledger-real.ts"
import { temporaryFolder } from "../support/temporary-folder.ts"
import { describeLedgerContract } from "./ledger-contract.ts"

const real = findRealProg()

if (real.kind === "found") {
  describeLedgerContract("the real prog", () =>
    createLedgerDriver(runProgram(real.program, { home: temporaryFolder() })),
  )
} else registerMissingRealProg("the ledger's contract", real.reason)
