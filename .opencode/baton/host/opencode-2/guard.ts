import { describeError, type Log } from "../log.ts"

/** A hook of OpenCode 2's that throws fails the user's turn. The features' hooks have guards; this is one for the translation. */
export const safely = async (log: Log, hook: string, sessionID: string, run: () => Promise<void>): Promise<void> => {
  try {
    await run()
  } catch (error) {
    log.error("hook failed", { hook, sessionID, error: describeError(error) })
  }
}
