import { describe } from "vitest"
import { describeFaults } from "../support/fault-assertions.ts"
import { MACHINE_FAULTS } from "../support/fault-machine-table.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { closeTaskProjects } from "../support/task-project.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  for (const fault of MACHINE_FAULTS) describeFaults(fault.name, binary, [fault], fault.options)
})
