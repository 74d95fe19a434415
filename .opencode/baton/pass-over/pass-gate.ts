import type { Log } from "../host/log.ts"
import type { PassSessions } from "./pass-sessions.ts"
import { judgeToolCall, PASS_IS_OVER } from "./tool-gate.ts"
import { RETURN_TOOL } from "./tool-names.ts"
import { pathsToWrite } from "./worktree/redirect.ts"
import { leadsOut } from "./worktree/way-out.ts"
import type { PassWorktree } from "./worktree/worktree.ts"

export type ToolCall = { readonly sessionID: string; readonly tool: string; readonly callID: string }

export type PassGateDeps = {
  readonly passSessions: Pick<PassSessions, "find" | "own">
  /** Ends when the files of a pass are there for its tools. */
  readonly enterFiles: PassWorktree["enter"]
  readonly log: Pick<Log, "info">
}

/**
 * Stands before each tool of a session that works on a pass, or below one: refuses it, or moves it to where the pass works.
 *
 * @returns for OpenCode's `tool.execute.before`; throws an Error for the model when the tool may not be used so
 */
export const createPassGate =
  ({ passSessions, enterFiles, log }: PassGateDeps) =>
  async ({ sessionID, tool, callID }: ToolCall, output: { args: unknown }): Promise<void> => {
    const pass = passSessions.find(sessionID)
    if (!pass) return
    const refuse = (reason: string): never => {
      log.info("a tool is refused in a pass", { sessionID, pass: pass.passID, tool, reason })
      throw new Error(reason)
    }
    const args = typeof output.args === "object" && output.args !== null ? output.args : {}
    const isOwn = passSessions.own(sessionID) === pass
    const verdict = judgeToolCall(pass, { tool, args: { ...args }, isOwn })
    if (verdict.kind === "refused") return refuse(verdict.reason)
    // It touches no file, and nobody waits for a copy to give something back.
    if (tool === RETURN_TOOL) return
    if (isOwn) pass.begun.add(callID)
    const missing = await enterFiles(pass.passID)
    if (missing) return refuse(`There is nothing to work in: ${missing.reason}. End your turn.`)
    // While it waited.
    if (pass.isOver) return refuse(PASS_IS_OVER)
    const { place } = pass
    const out = pathsToWrite(tool, verdict.changes).find((path) => place && leadsOut(path, place.copy))
    if (out !== undefined)
      return refuse(`${out} is reached through a link that leads out of your copy of the project: nothing is written.`)
    // OpenCode hands these very arguments to the tool.
    Object.assign(args, verdict.changes)
  }
