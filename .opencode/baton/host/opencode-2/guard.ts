import { withDeadline } from "../async.ts"
import { describeError, type Log } from "../log.ts"

/** A hook of OpenCode 2's that throws fails the user's turn. The features' hooks have guards; this is one for the translation. */
export const safely = async (log: Log, hook: string, sessionID: string, run: () => Promise<void>): Promise<void> => {
  try {
    await run()
  } catch (error) {
    log.error("hook failed", { hook, sessionID, error: describeError(error) })
  }
}

/** For a call to OpenCode in a hook, which the session waits for. */
const CALL_DEADLINE_MS = 1_000

/** @throws Error when the work fails or is late */
export const inTime = async <T>(work: Promise<T>): Promise<T> => {
  const outcome = await withDeadline(work, CALL_DEADLINE_MS)
  if (outcome.kind === "done") return outcome.value
  throw outcome.kind === "failed" ? outcome.error : new Error(`no answer within ${CALL_DEADLINE_MS} ms`)
}
