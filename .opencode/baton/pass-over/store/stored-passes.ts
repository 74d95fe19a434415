import type { Log } from "../../host/log.ts"
import { createProcessRunner } from "../../host/process.ts"
import type { StateFolder } from "../../host/state.ts"
import { createAuditLog } from "../audit/log.ts"
import { createSandboxes } from "../sandbox/sandbox.ts"
import { createPasses } from "./passes.ts"
import { createPassOwners, createPassStore } from "./store.ts"

/**
 * Opens what a project has stored of its passes: records, owners, audit and files.
 *
 * @param directory OpenCode's, which a sandbox is made of
 */
export const openStoredPasses = (given: {
  readonly projectRoot: string
  readonly directory: string
  readonly state: StateFolder
  readonly log: Pick<Log, "debug" | "warn">
}) => {
  const { projectRoot, directory, state, log } = given
  // A pass makes about ten git calls, and each takes twice as long with Bun's `$` on a busy machine.
  const run = createProcessRunner({ shell: undefined })
  const store = createPassStore({ state, log })
  const owners = createPassOwners(state)
  const passes = createPasses({ store, audit: createAuditLog({ projectRoot, log }), now: () => new Date() })
  const sandboxes = createSandboxes({ state, directory, run, owners, passes, log })
  return { run, store, owners, passes, sandboxes }
}
