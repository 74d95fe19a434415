import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { holdEmbedded, type RunLedger, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { ALL_LINES } from "../../support/opencode/opencode-binary.ts"
import { describeArguments, describeRefusals } from "./contract-lines.ts"
import { CONTRACT, describeStatuses, describeTasks, type OpenLedger } from "./contract-tasks.ts"
import { describeKnowledge, describeViews } from "./contract-views.ts"

/**
 * The behaviour of prog v0.17, for every ledger that wants to stand in its place.
 *
 * @param run gives the ledger of a home folder without a database
 */
const describeLedgerContract = (name: string, run: (home: string) => RunLedger): void => {
  const start = () => createLedgerDriver(run(temporaryFolder()))
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

for (const binary of ALL_LINES) describeLedgerContract(`embedded on OpenCode ${binary.version}`, holdEmbedded(binary))

const real = findRealProg()

if (real.kind === "found") describeLedgerContract("the real prog", (home) => runProgram(real.program, { home }))
else registerMissingRealProg("the ledger's contract", real.reason)
