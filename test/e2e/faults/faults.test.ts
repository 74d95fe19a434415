import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import { CLAIM_FAULTS } from "../../support/faults/fault-claim-table.ts"
import { FOREIGN_PROG, HANGING_LEDGERS, LEDGER_FAULTS } from "../../support/faults/fault-ledger-table.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { HELD_TO_MODES, PROJECT_FAULTS } from "../../support/faults/fault-table.ts"
import { BOTH_ENDS, casesOf, REPOSITORY } from "../../support/index.ts"

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const faults = casesOf(binary, PROJECT_FAULTS)
  const title = promised("repo.A3", "faults of prompts, state folder and client")
  describeFaults(title, binary, faults, { launcher: HELD_TO_MODES })
})

test(promised("faults.F1", "docs/faults.md names every fault of the tables"), () => {
  const rows = readFileSync(join(REPOSITORY, "docs", "faults.md"), "utf8")
    .replaceAll("`", "")
    .split("\n")
  const faults = [
    ...PROJECT_FAULTS,
    ...LEDGER_FAULTS,
    ...HANGING_LEDGERS,
    FOREIGN_PROG,
    ...MACHINE_FAULTS,
    ...CLAIM_FAULTS,
  ]
  const missing = faults.filter(({ name }) => {
    const [subject = "", ...predicate] = name.split(" ")
    return !rows.some((row) => row.startsWith(`| ${subject} `) && row.includes(predicate.join(" ")))
  })
  expect(missing.map(({ name }) => name)).toEqual([])
})
