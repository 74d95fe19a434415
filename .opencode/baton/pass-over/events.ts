import { withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import type { Log } from "../host/log.ts"
import { disableTools } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { TaskRegistry } from "../task/registry.ts"
import { type LivePass, type PassSessions, stopPass } from "./child/active-passes.ts"
import { createPassGate, hiddenTools, type PassGateDeps } from "./child/tool-guard.ts"
import type { createPermissionWatch } from "./result/approval.ts"
import type { Announcer } from "./result/notify.ts"
import { redirectText } from "./sandbox/paths.ts"
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
export const readPassSignal = (event: { type: string; properties?: unknown }): PassSignal | undefined => {
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
    case "permission.asked": {
      const permissionID = textOf(properties.id)
      const passID = textOf(fieldsOf(properties.metadata).pass_over_id)
      return permissionID === undefined ? undefined : { kind: "asked", sessionID, permissionID, passID }
    }
    default:
      return undefined
  }
}

type SessionHooksDeps = PassGateDeps & {
  readonly passSessions: PassSessions
  readonly live: ReadonlyMap<string, LivePass>
  readonly announcer: Announcer
  readonly permissions: ReturnType<typeof createPermissionWatch>
  readonly tasks: Pick<TaskRegistry, "sessionCreated" | "forget">
  readonly hasUser: boolean
  /** Settles when passes of earlier processes have been recovered. Never rejects. */
  readonly recovered: Promise<void>
  readonly store: Pick<PassStore, "idsOfSession">
  readonly log: Log
}

/** Time that a child's closing words wait for the originator's next step, which may come later. */
const ORIGINATOR_FIRST_MS = 300

/** Creates the feature's part of OpenCode's hooks, for sessions that pass work on and those that do the work. */
export const createSessionHooks = (deps: SessionHooksDeps) => {
  const { passSessions, live, announcer, permissions, hasUser, store, log } = deps
  /** By session: whether it has made passes, also in earlier processes; read once. */
  const madePasses = new Map<string, Promise<boolean>>()

  const hasPasses = (sessionID: string): Promise<boolean> => {
    const known = madePasses.get(sessionID)
    if (known) return known
    const asked = store.idsOfSession(sessionID).then(
      (ids) => ids.length > 0,
      (error: unknown) => {
        madePasses.delete(sessionID)
        throw error
      },
    )
    madePasses.set(sessionID, asked)
    return asked
  }

  const stopBelow = (sessionID: string): void => {
    for (const pass of live.values()) {
      if (pass.prepared.request.originating_session_id !== sessionID) continue
      log.info("a pass is cancelled: its originator was aborted", { sessionID, pass: pass.id })
      stopPass(pass, "cancelled")
    }
    for (const { above, stop } of passSessions.closing()) if (above.includes(sessionID)) stop()
  }

  const react = async (signal: PassSignal): Promise<void> => {
    switch (signal.kind) {
      case "created":
        deps.tasks.sessionCreated(signal.sessionID, signal.parentID)
        return passSessions.created(signal.sessionID, signal.parentID)
      case "deleted":
        stopBelow(signal.sessionID)
        announcer.forget(signal.sessionID)
        permissions.forget(signal.sessionID)
        madePasses.delete(signal.sessionID)
        passSessions.deleted(signal.sessionID)
        return deps.tasks.forget(signal.sessionID)
      case "aborted":
        return stopBelow(signal.sessionID)
      case "idle":
        if (!hasUser) return
        // Recovery may find earlier results only after the first turn has ended.
        await deps.recovered
        return announcer.idle(signal.sessionID)
      case "asked":
        permissions.asked(signal)
        // On 1.2.15 `run` answers for its own session only; a subagent would wait forever.
        if (!hasUser && passSessions.find(signal.sessionID)) await permissions.refuse(signal)
        return
      case "answered":
        return permissions.answered(signal.permissionID)
    }
  }

  return {
    /** @throws Error for the model, when a session of a pass may not use a tool this way */
    beforeTool: createPassGate(deps),

    requestPrepared: (sessionID: string): void => {
      for (const { above, originatorWentOn } of passSessions.closing())
        if (above.at(-1) === sessionID) originatorWentOn.resolve()
    },

    offerTools: async (sessionID: string, messages: readonly StoredMessage[]): Promise<Change | undefined> => {
      const own = passSessions.own(sessionID)
      // A new step begins when every tool call of the previous one has ended.
      own?.begun.clear()
      // The closing words run after the originator's next step, since both share a thread.
      if (own?.hasReturned) await withDeadline(own.originatorWentOn.promise, ORIGINATOR_FIRST_MS)
      const hidden = hiddenTools({
        worksOnPass: own !== undefined,
        hasPasses: await hasPasses(sessionID),
        limits: passSessions.find(sessionID)?.limits,
      })
      return hidden.length === 0 ? undefined : () => disableTools(messages, hidden)
    },

    /** From its first pass on, a session is offered the result tools. */
    passMade: async (sessionID: string): Promise<void> => {
      madePasses.set(sessionID, Promise.resolve(true))
    },

    /** Names the copy as the working directory in the system prompt. */
    placeSystemPrompt: (sessionID: string, output: { system: string[] }): Change | undefined => {
      const place = passSessions.find(sessionID)?.place
      if (!place) return undefined
      return () => {
        output.system.splice(0, output.system.length, ...output.system.map((text) => redirectText(text, place)))
      }
    },

    /** Most events, token deltas above all, do not concern a pass; those create no promise. */
    receive: (event: { type: string; properties?: unknown }): Promise<void> | undefined => {
      const signal = readPassSignal(event)
      return signal && react(signal)
    },
  }
}
