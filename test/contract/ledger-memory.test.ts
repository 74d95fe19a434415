import { createMemoryLedger } from "../../.opencode/baton/ledger/embedded/memory-ledger.ts"
import { createLedgerDriver } from "../support/ledger-driver.ts"
import { describeLedgerContract } from "./ledger-contract.ts"

describeLedgerContract("the ledger in memory", () => createLedgerDriver(createMemoryLedger()))
