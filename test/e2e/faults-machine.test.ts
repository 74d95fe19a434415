import { describe } from "vitest"
import { endsOf } from "../support/ends.ts"
import { describeFaults } from "../support/fault-assertions.ts"
import { MACHINE_FAULTS } from "../support/fault-machine-table.ts"
import { closeTaskProjects } from "../support/task-project.ts"

closeTaskProjects()

for (const [index, fault] of MACHINE_FAULTS.entries())
  describe.each(endsOf(index))("OpenCode $version", (binary) =>
    describeFaults(fault.name, binary, [fault], fault.options),
  )
