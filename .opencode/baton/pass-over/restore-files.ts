import type { Log } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { createStateFolder } from "../host/state.ts"
import { createPassWorktree } from "./worktree/pass-worktree.ts"
import type { PassWorktree } from "./worktree/worktree.ts"

/**
 * Brings the files of a pass that was cut off into a state in which they can be applied or rejected, outside OpenCode.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 */
export const restoreFiles = (
  projectRoot: string,
  passID: string,
  log: Pick<Log, "debug" | "warn">,
): ReturnType<PassWorktree["restore"]> =>
  createPassWorktree({
    state: createStateFolder(projectRoot),
    directory: projectRoot,
    run: createProcessRunner({ shell: undefined }),
    log,
    now: () => new Date(),
  }).restore(passID)
