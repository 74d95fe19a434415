import { createLedgerDriver } from "../support/ledger-driver.ts"
import { embeddedProgram, runProgram } from "../support/ledger-process.ts"
import { NEWEST } from "../support/opencode-binary.ts"
import { temporaryFolder } from "../support/temporary-folder.ts"
import { describeLedgerContract } from "./ledger-contract.ts"

const program = embeddedProgram(NEWEST)

describeLedgerContract(program.name, () => createLedgerDriver(runProgram(program, { home: temporaryFolder() })))
