import { describe } from "vitest"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { closeTaskProjects, endsOf } from "../../support/index.ts"

closeTaskProjects()

for (const [index, fault] of MACHINE_FAULTS.entries())
  describe.each(endsOf(index))("OpenCode $version", (binary) =>
    describeFaults(fault.name, binary, [fault], fault.options),
  )
