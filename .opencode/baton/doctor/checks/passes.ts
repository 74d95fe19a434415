import { createStateFolder } from "../../host/state.ts"
import { readPolicy } from "../../pass-over/policy-file.ts"
import { POLICY_FILE } from "../../pass-over/policy-path.ts"
import { listPending } from "../../pass-over/worktree/restore-pass.ts"
import type { PendingPass } from "../../pass-over/worktree/worktree.ts"
import { broken, type Check, type Observation, ok, warning } from "../finding.ts"

const judgePolicy = async (root: string): Promise<Observation> => {
  const read = await readPolicy(root)
  if (read.kind === "policy")
    return ok(
      read.isAbsent ? `no ${POLICY_FILE}: no agent passes work over; {} in it is enough` : `${POLICY_FILE} is in order`,
    )
  const fix = `Mend ${POLICY_FILE}; docs/pass-over-reference.md lists what it may hold. Until then nothing is passed.`
  return broken(`${read.error.message}: ${read.error.cause}`, fix)
}

const judgePending = (pass: PendingPass): readonly Observation[] => {
  const { passID, state, since, isOwned } = pass
  if (state === "held" || isOwned) return []
  if (state === "damaged") {
    const fix = `Look at .opencode/state/pass-over/${passID}; delete the folder when its changes are not needed.`
    return [warning(`the files of ${passID} cannot be read: ${pass.reason ?? "unknown"}`, fix)]
  }
  const what = state === "applying" ? "while its changes were applied" : "while its subagent worked"
  const fix = `Run .opencode/baton/bin/baton passes restore ${passID}; OpenCode does it too when it starts. Nothing is lost.`
  return [warning(`${passID}, begun ${since.slice(0, 16).replace("T", " ")}, was cut off ${what}`, fix)]
}

const countHeld = (pending: readonly PendingPass[]): readonly Observation[] => {
  const held = pending.filter(({ state }) => state === "held").length
  if (held === 0) return []
  return [ok(`${held} ${held === 1 ? "pass holds" : "passes hold"} changes that wait to be applied or rejected`)]
}

export const passesCheck: Check = {
  id: "passes",
  needsBundle: true,
  examine: async ({ root }) => {
    const pending = await listPending(createStateFolder(root))
    return [await judgePolicy(root), ...countHeld(pending), ...pending.flatMap(judgePending)]
  },
}
