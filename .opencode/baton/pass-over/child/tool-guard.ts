import type { Log } from "../../host/log.ts"
import { APPLY_TOOL, REJECT_TOOL, RETURN_TOOL, STATUS_TOOL } from "../contract.ts"
import { escapesSandbox, pathsToWrite, type SandboxPaths, toSandboxArgs } from "../sandbox/paths.ts"
import type { Sandboxes } from "../sandbox/sandbox.ts"
import { type ActivePass, type ActivePasses, hasReturned } from "./active-passes.ts"
import { isToolAllowed, type Limits, refusedTools } from "./permissions.ts"

type ToolCall = { readonly sessionID: string; readonly tool: string; readonly callID: string }

export type ToolGuardDeps = {
  readonly activePasses: Pick<ActivePasses, "covering" | "of">
  /** Resolves when the files of a pass are ready for its tools. */
  readonly sandboxReady: Sandboxes["ready"]
  /** The user's home folder. */
  readonly home: string
  readonly log: Pick<Log, "info">
}

/**
 * Checks each tool call of a session that works on a pass, or below one: refuses it, or moves it to the pass's sandbox.
 *
 * @returns a handler for OpenCode's `tool.execute.before`; it throws an Error for the model when the call is refused
 */
export const createToolGuard =
  ({ activePasses, sandboxReady, home, log }: ToolGuardDeps) =>
  async ({ sessionID, tool, callID }: ToolCall, output: { args: unknown }): Promise<void> => {
    const pass = activePasses.covering(sessionID)
    if (!pass) return
    const refuse = (reason: string): never => {
      log.info("a tool is refused in a pass", { sessionID, pass: pass.id, tool, reason })
      throw new Error(reason)
    }
    const args = typeof output.args === "object" && output.args !== null ? output.args : {}
    const isOwn = activePasses.of(sessionID) === pass
    const verdict = checkToolCall(pass, { tool, args: { ...args }, isOwn, home })
    if (verdict.kind === "refused") return refuse(verdict.reason)
    // It touches no file, and returning needs no sandbox.
    if (tool === RETURN_TOOL) return
    if (isOwn) pass.callsOfStep.add(callID)
    const missing = await sandboxReady(pass.id)
    if (missing) return refuse(`There is nothing to work in: ${missing.reason}. End your turn.`)
    // The pass may have ended during the wait.
    if (pass.isOver) return refuse(PASS_IS_OVER)
    const { sandbox } = pass
    const out = pathsToWrite(tool, verdict.changes).find((path) => sandbox && escapesSandbox(path, sandbox.root))
    if (out !== undefined)
      return refuse(`${out} is reached through a link that leads out of your sandbox: nothing is written.`)
    // OpenCode passes this same object to the tool.
    Object.assign(args, verdict.changes)
  }

type ToolVerdict =
  /** With these arguments changed. */
  | { readonly kind: "go"; readonly changes: Readonly<Record<string, unknown>> }
  /** A sentence for the model. */
  | { readonly kind: "refused"; readonly reason: string }

const PASS_IS_OVER = "Use no more tools and end your turn: the pass is over."

/** Tools that wait for the user; a subagent must not use them. */
const ASKING = "question"

const escapePattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

/** Replaces `~/…`, `$HOME/…` and `${HOME}/…` by absolute paths where they name the project. */
const spellOutHome = (command: string, home: string, { worktree, spellings = [] }: SandboxPaths): string =>
  [worktree, ...spellings].reduce((text, root) => {
    if (!root.startsWith(`${home}/`)) return text
    const way = escapePattern(root.slice(home.length))
    const pattern = String.raw`(?<![\w./~-])(?:~|"\$HOME"|"\$\{HOME\}"|\$HOME|\$\{HOME\})${way}(?![\w-])`
    return text.replaceAll(new RegExp(pattern, "g"), () => root)
  }, command)

/** Decides whether a session that works on a pass, or is below one, may use a tool, and with which arguments. Pure. */
export const checkToolCall = (
  pass: Pick<ActivePass, "isOver" | "limits" | "sandbox" | "returned" | "returnError">,
  { tool, args, isOwn, home }: { tool: string; args: Readonly<Record<string, unknown>>; isOwn: boolean; home: string },
): ToolVerdict => {
  if (pass.isOver) return { kind: "refused", reason: PASS_IS_OVER }
  if (isOwn && hasReturned(pass))
    return { kind: "refused", reason: "The result has been returned. Use no more tools and end your turn." }
  if (tool === ASKING)
    return { kind: "refused", reason: "Nobody can be asked from here: decide, or return with what you need to know." }
  if (!isToolAllowed(tool, pass.limits)) {
    const limit = pass.limits.can_run_tools
      ? "change files (can_modify_files)"
      : "use tools but reading (can_run_tools)"
    return {
      kind: "refused",
      reason: `The tool ${tool} is refused: this pass may not ${limit}. Return what you can tell.`,
    }
  }
  if (!pass.sandbox) return { kind: "go", changes: {} }
  const { command } = args
  const spelled = typeof command === "string" ? { ...args, command: spellOutHome(command, home, pass.sandbox) } : args
  const redirection = toSandboxArgs(tool, spelled, pass.sandbox)
  if (redirection.kind === "refused") return redirection
  return { kind: "go", changes: redirection.kind === "redirected" ? redirection.args : {} }
}

/** A session's part in passes: only one that works on a pass returns, only one that made a pass decides on results. */
type SessionRole = {
  readonly worksOnPass: boolean
  readonly hasPasses: boolean
  /** Of the pass that the session, or one above it, works on. */
  readonly limits: Limits | undefined
}

export const hiddenTools = ({ worksOnPass, hasPasses, limits }: SessionRole): string[] => [
  ...(limits ? refusedTools(limits) : []),
  ...(worksOnPass ? [] : [RETURN_TOOL]),
  ...(hasPasses ? [] : [APPLY_TOOL, REJECT_TOOL, STATUS_TOOL]),
]
