import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { disableTools, enableTool, noteTextOf, pathsToWrite } from "../host/messages.ts"
import type { RawEvent } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { TaskRegistry } from "../task/registry.ts"
import { APPLY_TOOL, REJECT_TOOL, RETURN_TOOL, STATUS_TOOL } from "./agents.ts"
import { type ActivePass, advance, outcomeOf } from "./child/active-pass.ts"
import type { ActivePasses } from "./child/active-passes.ts"
import { isDenied, isToolAllowed, type Limits, refusedTools, TASK_TOOLS } from "./child/permissions.ts"
import type { createPermissionWatch } from "./result/approval.ts"
import type { Announcer } from "./result/notify.ts"
import { escapesSandbox, type SandboxCall, spellOutHome, toSandboxArgs, toSandboxText } from "./sandbox/paths.ts"
import type { Sandboxes } from "./sandbox/sandbox.ts"
import { type PassSignal, parsePassSignal } from "./signals.ts"
import type { PassStore } from "./store/store.ts"

type ToolCall = { readonly sessionID: string; readonly tool: string; readonly callID: string }

/**
 * Checks each tool call of a session that works on a pass, or below one: refuses it, or moves it to the pass's sandbox.
 *
 * @returns a handler for OpenCode's `tool.execute.before`; it throws an Error for the model when the call is refused
 */
const createToolGuard =
  ({ activePasses, sandboxReady, home, log }: SessionHooksDeps) =>
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
    if (isOwn) advance(pass, { type: "call_began", callID })
    const missing = await sandboxReady(pass.id)
    if (missing) return refuse(`There is nothing to work in: ${missing.reason}. End your turn.`)
    // The pass, or this attempt, may have ended during the wait.
    if (activePasses.covering(sessionID) !== pass || pass.state.kind === "over") return refuse(PASS_IS_OVER)
    const { sandbox } = pass
    const out = pathsToWrite(tool, verdict.changes).find((path) => sandbox && escapesSandbox(path, sandbox.root))
    if (out !== undefined)
      return refuse(`${out} is reached through a link that leads out of your sandbox: nothing is written.`)
    const { command } = verdict.changes
    const guarded = pass.boundary && typeof command === "string" ? { command: pass.boundary.guard(command) } : {}
    // OpenCode passes this same object to the tool.
    Object.assign(args, verdict.changes, guarded)
  }

const PASS_IS_OVER = "Use no more tools and end your turn: the pass is over."

/** Tools that wait for the user; a subagent must not use them. */
const ASKING = "question"

/** Decides whether a session that works on a pass, or is below one, may use a tool, and with which arguments. Pure. */
export const checkToolCall = (
  pass: Pick<ActivePass, "limits" | "sandbox" | "state">,
  { tool, args, isOwn, home }: { tool: string; args: Readonly<Record<string, unknown>>; isOwn: boolean; home: string },
): SandboxCall => {
  if (pass.state.kind === "over") return { kind: "refused", reason: PASS_IS_OVER }
  if (isOwn && outcomeOf(pass.state))
    return { kind: "refused", reason: "The result has been returned. Use no more tools and end your turn." }
  if (tool === ASKING)
    return { kind: "refused", reason: "No user can be asked from here: decide, or return with what you need to know." }
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
  return toSandboxArgs(tool, spelled, pass.sandbox)
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

const mayUseShell = ({ limits, prepared }: ActivePass): boolean =>
  isToolAllowed("bash", limits) &&
  ![prepared.subagent.permission, prepared.originatorRules].some((rules) => isDenied(rules, "bash"))

/** Offers an agent without a shell the tools in place of `prog`, and names no command of it where its task is told. */
const offerTaskTools = (messages: readonly StoredMessage[], { limits, prepared }: ActivePass): void => {
  const { task } = prepared.request.work_context
  if (!task) return
  const isOffered = limits.can_run_tools
  if (isOffered) for (const tool of TASK_TOOLS) enableTool(messages, tool)
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type === "text" && noteTextOf(part) !== undefined) part.text = withoutCommands(part.text, isOffered)
  }
}

/** The note on a task as an agent without a shell gets it. @param isOffered the tools take the place of commands; else the lines go */
export const withoutCommands = (text: string, isOffered: boolean): string =>
  isOffered
    ? text.replaceAll(/(`?)prog (show|log) [\w-]+(?: "…")?\1/g, "$1task_$2$1")
    : text.replaceAll(/^.*\bprog (?:show|log) .*\n?/gm, "")

type SessionHooksDeps = {
  readonly activePasses: ActivePasses
  /** Resolves when the files of a pass are ready for its tools. */
  readonly sandboxReady: Sandboxes["ready"]
  /** The user's home folder. */
  readonly home: string
  readonly announcer: Announcer
  readonly permissions: ReturnType<typeof createPermissionWatch>
  readonly tasks: Pick<TaskRegistry, "forget">
  readonly hasUser: boolean
  /** Settles when passes of earlier processes have been recovered. Never rejects. */
  readonly recovered: Promise<void>
  readonly store: Pick<PassStore, "idsOfSession" | "idsUnfinished">
  readonly log: Log
}

/** Creates the feature's part of OpenCode's hooks, for sessions that pass work on and those that do the work. */
export const createSessionHooks = (deps: SessionHooksDeps) => {
  const { activePasses, announcer, permissions, hasUser, store, log } = deps
  const hasUnfinished = (sessionID: string): boolean => {
    const unfinished = new Set(store.idsUnfinished())
    return store.idsOfSession(sessionID).some((id) => unfinished.has(id))
  }
  const cancelBelow = (sessionID: string): void => {
    for (const pass of activePasses.below(sessionID)) {
      log.info("a pass is cancelled: an originator above it was aborted", { sessionID, pass: pass.id })
      activePasses.cancel(pass, "cancelled")
    }
  }

  const react = async (signal: PassSignal): Promise<void> => {
    switch (signal.kind) {
      case "created":
        return activePasses.sessionCreated(signal.sessionID, signal.parentID)
      case "deleted":
        cancelBelow(signal.sessionID)
        for (const pass of activePasses.running())
          if (pass.state.childSessionID === signal.sessionID) pass.stopping.abort()
        activePasses.sessionDeleted(signal.sessionID)
        announcer.forget(signal.sessionID)
        permissions.forget(signal.sessionID)
        return deps.tasks.forget(signal.sessionID)
      case "aborted":
        return cancelBelow(signal.sessionID)
      case "idle":
        if (!hasUser) return
        // Recovery may find earlier results only after the first turn has ended.
        await deps.recovered
        // The instance before this one may have stored its results after that.
        if (hasUnfinished(signal.sessionID)) announcer.queue(signal.sessionID)
        return announcer.idle(signal.sessionID)
      case "asked":
        permissions.asked(signal)
        // On 1.2.15 `run` answers for its own session only; a subagent would wait forever.
        if (!hasUser && activePasses.covering(signal.sessionID)) await permissions.refuse(signal)
        return
      case "answered":
        return permissions.answered(signal.permissionID, signal.reply)
    }
  }

  return {
    /** @throws Error for the model, when a session of a pass may not use a tool this way */
    beforeTool: createToolGuard(deps),

    offerTools: async (sessionID: string, messages: readonly StoredMessage[]): Promise<Change | undefined> => {
      const own = activePasses.of(sessionID)
      // A new step begins when every tool call of the previous one has ended.
      if (own) advance(own, { type: "step_began" })
      const hidden = hiddenTools({
        worksOnPass: own !== undefined,
        hasPasses: store.idsOfSession(sessionID).length > 0,
        limits: activePasses.covering(sessionID)?.limits,
      })
      return () => {
        disableTools(messages, hidden)
        if (own && !mayUseShell(own)) offerTaskTools(messages, own)
      }
    },

    /** Leads a shell that a pass's child starts into its boundary. */
    setShellEnv: (sessionID: string, { env }: { env: Record<string, string> }): void => {
      Object.assign(env, activePasses.covering(sessionID)?.boundary?.environment)
    },

    /** Names the sandbox as the working directory in the system prompt. */
    rewriteSystemPrompt: (sessionID: string, output: { system: string[] }): Change | undefined => {
      const sandbox = activePasses.covering(sessionID)?.sandbox
      if (!sandbox) return undefined
      return () => {
        output.system.splice(0, output.system.length, ...output.system.map((text) => toSandboxText(text, sandbox)))
      }
    },

    /** Most events, token deltas above all, do not concern a pass; those create no promise. */
    receive: (event: RawEvent): Promise<void> | undefined => {
      const signal = parsePassSignal(event)
      return signal && react(signal)
    },
  }
}
