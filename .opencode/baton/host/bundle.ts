import { join } from "node:path"
import type { PluginInput } from "@opencode-ai/plugin"
import { type BundleClaim, claimBundle } from "./bundle-claim.ts"
import { createLog, type Log } from "./log.ts"
import { createProcessRunner, type RunProcess } from "./process.ts"
import { createSessions, type Sessions } from "./sessions.ts"
import { createStateFolder, findProjectRoot, type StateFolder } from "./state-folder.ts"

/** What a feature gets of OpenCode and of the machine, for one directory. */
export type Bundle = {
  directory: string
  worktree: string
  /** The folder that holds `.opencode` and `prompts`. */
  projectRoot: string
  /** The folder of this copy of the bundle: `<somewhere>/baton`. */
  bundleRoot: string
  log: Log
  state: StateFolder
  run: RunProcess
  sessions: Sessions
  claim: BundleClaim
}

/** Wires a feature to its host. Does no I/O but a look for the `.opencode` folder, and waits for nothing. */
export const createBundle = (input: PluginInput, feature: string): Bundle => {
  const { client, directory, worktree, $ } = input
  const bundleRoot = join(import.meta.dirname, "..")
  const projectRoot = findProjectRoot(directory, worktree)
  return {
    directory,
    worktree,
    projectRoot,
    bundleRoot,
    log: createLog(client, feature),
    state: createStateFolder(projectRoot),
    run: createProcessRunner({ shell: $ }),
    sessions: createSessions(client),
    claim: claimBundle({ feature, directory, projectRoot, bundleRoot }),
  }
}
