import { describe } from "vitest"
import { describeFaults } from "../support/fault-assertions.ts"
import { PROJECT_FAULTS } from "../support/fault-table.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { closeTaskProjects } from "../support/task-project.ts"

closeTaskProjects()

/** Root may read and write whatever the mode says; without these two rights it may not. */
const HELD_TO_MODES = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : []

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  describeFaults("faults of prompts, state folder and client", binary, PROJECT_FAULTS, { launcher: HELD_TO_MODES })
})
