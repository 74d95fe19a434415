import type { Fault } from "../fault.ts"
import { FOREIGN_PROG, HANGING_LEDGERS, LEDGER_FAULTS } from "../fault-ledger-table.ts"
import { MACHINE_FAULTS } from "../fault-machine-table.ts"
import { STORED_FAULTS } from "../fault-stored-table.ts"
import { clientFault, PROJECT_FAULTS } from "../fault-table.ts"
import { LIVE_STATE_FAULTS } from "./live-state-faults.ts"
import { PASS_FAULTS, RECORD_FAULTS } from "./work-faults.ts"

/** All faults of the storm, those of the tables first. A seed's plan depends on their order. */
export const CATALOGUE: readonly Fault[] = [
  ...PROJECT_FAULTS,
  clientFault("session.get", "hangs"),
  ...new Set([...LEDGER_FAULTS, ...HANGING_LEDGERS]),
  FOREIGN_PROG,
  ...MACHINE_FAULTS,
  ...STORED_FAULTS,
  ...LIVE_STATE_FAULTS,
  ...PASS_FAULTS,
  ...RECORD_FAULTS,
]

export const faultNamed = (name: string): Fault => {
  const found = CATALOGUE.find((fault) => fault.name === name)
  if (found === undefined) throw new Error(`the storm knows no fault '${name}'`)
  return found
}
