import { describe } from "vitest"
import type { LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { describeArguments } from "./contract-arguments.ts"
import { describeKnowledge } from "./contract-knowledge.ts"
import { describeRefusals } from "./contract-refusals.ts"
import { describeStatuses } from "./contract-statuses.ts"
import { describeTasks } from "./contract-tasks.ts"
import { describeViews } from "./contract-views.ts"

/** Opens a ledger with nothing in it; what it needs is removed when the test ends. */
export type OpenLedger = () => LedgerDriver

/** What prog v0.17 does, for every ledger that wants to stand in its place. */
export const describeLedgerContract = (name: string, open: OpenLedger): void => {
  describe(name, () => {
    describeTasks(open)
    describeStatuses(open)
    describeViews(open)
    describeKnowledge(open)
    describeRefusals(open)
    describeArguments(open)
  })
}
