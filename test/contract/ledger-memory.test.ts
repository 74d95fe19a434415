import { createLedgerDriver } from "../support/ledger-driver.ts"
import { createMemoryLedger } from "../support/memory-ledger/memory-ledger.ts"
import { describeLedgerContract } from "./ledger-contract.ts"

describeLedgerContract("the ledger in memory", () => createLedgerDriver(createMemoryLedger()))
