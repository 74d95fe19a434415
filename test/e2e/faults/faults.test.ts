import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import {
  FOREIGN_PROG,
  HANGING_LEDGERS,
  LEDGER_FAULTS,
  pathWithFakeProg,
} from "../../support/faults/fault-ledger-table.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { HELD_TO_MODES, PROJECT_FAULTS } from "../../support/faults/fault-table.ts"
import { BOTH_ENDS, closeTaskProjects, endsOf, REPOSITORY, type TaskProject } from "../../support/index.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const faults = PROJECT_FAULTS.filter((_, index) => endsOf(index).includes(binary))
  describeFaults(promised("repo.A3", "faults of prompts, state and client"), binary, faults, {
    launcher: HELD_TO_MODES,
  })
})

const withLedger = (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "real" })

describe.each(endsOf(0))("OpenCode $version", (binary) =>
  describeFaults("faults of the ledger", binary, LEDGER_FAULTS, { environment: withLedger }),
)

for (const [index, fault] of [...MACHINE_FAULTS, FOREIGN_PROG].entries())
  describe.each(endsOf(index))("OpenCode $version", (binary) =>
    describeFaults(fault.name, binary, [fault], fault.options),
  )

test(promised("faults.F1", "docs/faults.md names every fault of the tables"), () => {
  const rows = readFileSync(join(REPOSITORY, "docs/faults.md"), "utf8").replaceAll("`", "").split("\n")
  const faults = [...PROJECT_FAULTS, ...LEDGER_FAULTS, ...HANGING_LEDGERS, FOREIGN_PROG, ...MACHINE_FAULTS]
  const missing = faults.filter(({ name }) => {
    const [subject = "", ...predicate] = name.split(" ")
    return !rows.some((row) => row.startsWith(`| ${subject} `) && row.includes(predicate.join(" ")))
  })
  expect(missing.map(({ name }) => name)).toEqual([])
})
