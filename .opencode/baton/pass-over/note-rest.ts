import { withDeadline } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import type { Sessions } from "../host/sessions.ts"
import { isAtRest } from "./child-transcript.ts"
import type { LivePass } from "./live-pass.ts"
import type { PassSession } from "./pass-sessions.ts"
import { CHILD_MESSAGES } from "./work-output.ts"

/** How long a child stands still at most while its result is taken. */
const TAKING_MS = 300

/**
 * A child has returned: where nothing that it began is at work any more, its pass need not wait for its closing words. Where
 * that cannot be told, the end of its turn tells it. Never rejects.
 *
 * @returns when the result is taken, or the child may as well go on
 */
export const noteRest = async (
  { sessions, log }: { sessions: Pick<Sessions, "messages">; log: Pick<Log, "debug"> },
  session: PassSession,
  pass: LivePass,
): Promise<void> => {
  if (pass.childSessionID === null) return
  const read = await sessions.messages(pass.childSessionID, CHILD_MESSAGES)
  if (read.kind === "answer" && isAtRest(read.value.messages, session.begun)) {
    pass.transcript = read.value.messages
    pass.rest.resolve()
    await withDeadline(pass.finished, TAKING_MS)
    return
  }
  const reason = read.kind === "answer" ? "other tools are at work" : read.reason
  log.debug("a pass that has returned waits for the end of its turn", { pass: pass.id, reason })
}
