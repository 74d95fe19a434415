import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { disableTools } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { TaskRegistry } from "../task/registry.ts"
import { type ActivePasses, cancelPass } from "./child/active-passes.ts"
import { createToolGuard, hiddenTools, type ToolGuardDeps } from "./child/tool-guard.ts"
import type { createPermissionWatch } from "./result/approval.ts"
import type { Announcer } from "./result/notify.ts"
import { toSandboxText } from "./sandbox/paths.ts"
import type { PassStore } from "./store/store.ts"

/** The meaning of an OpenCode event for passes. */
export type PassSignal =
  | { readonly kind: "created"; readonly sessionID: string; readonly parentID: string | undefined }
  | { readonly kind: "deleted" | "idle" | "aborted"; readonly sessionID: string }
  | {
      readonly kind: "asked"
      readonly sessionID: string
      readonly permissionID: string
      readonly passID: string | undefined
    }
  | { readonly kind: "answered"; readonly permissionID: string }

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** Reads events of 1.2.15 to 1.18.33; the SDK's types cover older ones. */
export const parsePassSignal = (event: { type: string; properties?: unknown }): PassSignal | undefined => {
  const properties = fieldsOf(event.properties)
  const info = fieldsOf(properties.info)
  const sessionID = textOf(properties.sessionID) ?? textOf(info.id)
  if (event.type === "permission.replied") {
    const permissionID = textOf(properties.requestID) ?? textOf(properties.permissionID)
    return permissionID === undefined ? undefined : { kind: "answered", permissionID }
  }
  if (sessionID === undefined) return undefined
  switch (event.type) {
    case "session.created":
      return { kind: "created", sessionID, parentID: textOf(info.parentID) }
    case "session.deleted":
      return { kind: "deleted", sessionID }
    case "session.idle":
      return { kind: "idle", sessionID }
    case "session.error":
      return fieldsOf(properties.error).name === "MessageAbortedError" ? { kind: "aborted", sessionID } : undefined
    case "permission.asked":
    case "permission.updated": {
      const permissionID = textOf(properties.id)
      const passID = textOf(fieldsOf(properties.metadata).pass_over_id)
      return permissionID === undefined ? undefined : { kind: "asked", sessionID, permissionID, passID }
    }
    default:
      return undefined
  }
}

type SessionHooksDeps = ToolGuardDeps & {
  readonly activePasses: ActivePasses
  readonly announcer: Announcer
  readonly permissions: ReturnType<typeof createPermissionWatch>
  readonly tasks: Pick<TaskRegistry, "sessionCreated" | "forget">
  readonly hasUser: boolean
  /** Settles when passes of earlier processes have been recovered. Never rejects. */
  readonly recovered: Promise<void>
  readonly store: Pick<PassStore, "idsOfSession">
  readonly log: Log
}

/** Creates the feature's part of OpenCode's hooks, for sessions that pass work on and those that do the work. */
export const createSessionHooks = (deps: SessionHooksDeps) => {
  const { activePasses, announcer, permissions, hasUser, store, log } = deps
  const cancelBelow = (sessionID: string): void => {
    for (const pass of activePasses.below(sessionID)) {
      log.info("a pass is cancelled: an originator above it was aborted", { sessionID, pass: pass.id })
      cancelPass(pass, "cancelled")
    }
  }

  const react = async (signal: PassSignal): Promise<void> => {
    switch (signal.kind) {
      case "created":
        deps.tasks.sessionCreated(signal.sessionID, signal.parentID)
        return activePasses.sessionCreated(signal.sessionID, signal.parentID)
      case "deleted":
        cancelBelow(signal.sessionID)
        announcer.forget(signal.sessionID)
        permissions.forget(signal.sessionID)
        activePasses.sessionDeleted(signal.sessionID)
        return deps.tasks.forget(signal.sessionID)
      case "aborted":
        return cancelBelow(signal.sessionID)
      case "idle":
        if (!hasUser) return
        // Recovery may find earlier results only after the first turn has ended.
        await deps.recovered
        return announcer.idle(signal.sessionID)
      case "asked":
        permissions.asked(signal)
        // On 1.2.15 `run` answers for its own session only; a subagent would wait forever.
        if (!hasUser && activePasses.covering(signal.sessionID)) await permissions.refuse(signal)
        return
      case "answered":
        return permissions.answered(signal.permissionID)
    }
  }

  return {
    /** @throws Error for the model, when a session of a pass may not use a tool this way */
    beforeTool: createToolGuard(deps),

    offerTools: async (sessionID: string, messages: readonly StoredMessage[]): Promise<Change | undefined> => {
      const own = activePasses.of(sessionID)
      // A new step begins when every tool call of the previous one has ended.
      own?.callsOfStep.clear()
      const hidden = hiddenTools({
        worksOnPass: own !== undefined,
        hasPasses: store.idsOfSession(sessionID).length > 0,
        limits: activePasses.covering(sessionID)?.limits,
      })
      return hidden.length === 0 ? undefined : () => disableTools(messages, hidden)
    },

    /** Names the sandbox as the working directory in the system prompt. */
    placeSystemPrompt: (sessionID: string, output: { system: string[] }): Change | undefined => {
      const sandbox = activePasses.covering(sessionID)?.sandbox
      if (!sandbox) return undefined
      return () => {
        output.system.splice(0, output.system.length, ...output.system.map((text) => toSandboxText(text, sandbox)))
      }
    },

    /** Most events, token deltas above all, do not concern a pass; those create no promise. */
    receive: (event: { type: string; properties?: unknown }): Promise<void> | undefined => {
      const signal = parsePassSignal(event)
      return signal && react(signal)
    },
  }
}
