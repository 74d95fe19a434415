import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { describeArguments, describeRefusals } from "./contract-lines.ts"
import { describeStatuses, describeTasks } from "./contract-tasks.ts"
import { describeKnowledge, describeViews } from "./contract-views.ts"

/** Opens a ledger with nothing in it; what it needs is removed when the test ends. */
export type OpenLedger = () => Promise<LedgerDriver>

const CONTRACT = ["ledger.D3", "ledger.D5"] as const

/**
 * What prog v0.17 does, for every ledger that wants to stand in its place.
 *
 * @param start gives a ledger of its own, without a database
 */
export const describeLedgerContract = (name: string, start: () => LedgerDriver): void => {
  const open: OpenLedger = async () => {
    const ledger = start()
    await ledger.ok("init")
    return ledger
  }

  describe(name, () => {
    test(promised(CONTRACT, "init makes a database, and again leaves it as it is"), async () => {
      const ledger = start()
      expect(await ledger.ok("init")).toMatch(/^Initialized prog database at /)
      const id = await ledger.task("kept")
      await ledger.ok("init")
      expect(await ledger.ok("list")).toContain(id)
    })

    test(promised(CONTRACT, "help goes to standard output with exit code 0, and so does the version"), async () => {
      const { ok } = start()
      for (const line of ["--help", "help", "-h"]) expect(await ok(line)).toMatch(/^Usage:\s+prog/m)
      expect(await ok()).toMatch(/^Usage:\s+prog/m)
      for (const line of ["show --help", "help show", "show -h", "show a b -h"])
        expect(await ok(...line.split(" "))).toMatch(/^Usage:\s+prog show <id> \[flags\]/m)
      expect(await ok("learn", "edit", "--help")).toMatch(/^Usage:\s+prog learn edit <learning-id> \[flags\]/m)
      expect(await ok("--version")).toMatch(/^prog version \S+/)
    })

    describeTasks(open)
    describeStatuses(open)
    describeViews(open)
    describeKnowledge(open)
    describeRefusals(open)
    describeArguments(open)
  })
}
