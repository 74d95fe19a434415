import { constants, existsSync } from "node:fs"
import { access, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError, errorCode } from "../../host/log.ts"
import { broken, type Check, type Observation, ok, type Subject, warning } from "../finding.ts"

const GIT_DEADLINE_MS = 5_000

const judgeWritable = async (root: string): Promise<Observation> => {
  const state = join(root, ".opencode", "state")
  const folder = existsSync(state) ? state : join(root, ".opencode")
  const fix = `Make it a folder that you can write in (chmod -R u+w '${folder}'); until then nothing survives a restart.`
  try {
    if (!(await stat(folder)).isDirectory()) return broken(`${folder} is not a folder`, fix)
    await access(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    return broken(`${folder} cannot be written in: ${errorCode(error) ?? describeError(error)}`, fix)
  }
  return ok(folder === state ? ".opencode/state is writable" : ".opencode/state is made when it is first needed")
}

/** The folder carries its own .gitignore; without it run-time records would be committed. */
const judgeIgnored = async ({ root, run }: Subject): Promise<readonly Observation[]> => {
  if (!existsSync(join(root, ".opencode", "state"))) return []
  const outcome = await run(["git", "-C", root, "check-ignore", "-q", ".opencode/state/record"], {
    cwd: root,
    deadlineMs: GIT_DEADLINE_MS,
    env: { GIT_OPTIONAL_LOCKS: "0" },
  })
  // 1 is "not ignored"; 128 is "no repository", and without git there is nothing to ignore.
  if (outcome.kind !== "exited" || outcome.exitCode !== 1) return []
  const fix = "Put a file .gitignore with the one line '*' into .opencode/state."
  return [warning("git does not ignore .opencode/state: its records could be committed", fix)]
}

export const stateCheck: Check = {
  id: "state",
  needsBundle: true,
  examine: async (subject) => [await judgeWritable(subject.root), ...(await judgeIgnored(subject))],
}
