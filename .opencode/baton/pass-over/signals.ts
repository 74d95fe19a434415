import { answeredPermission, field, type RawEvent, sessionOf, text } from "../host/schema.ts"

/** The meaning of an OpenCode event for passes. */
export type PassSignal =
  | { readonly kind: "created"; readonly sessionID: string; readonly parentID: string | undefined }
  | { readonly kind: "deleted" | "idle" | "aborted"; readonly sessionID: string }
  | {
      readonly kind: "asked"
      readonly sessionID: string
      readonly permissionID: string
      readonly passID: string | undefined
      /** Of a question about a result. */
      readonly subagent: string | undefined
      readonly isCritical: boolean
    }
  | { readonly kind: "answered"; readonly permissionID: string; readonly reply: string | undefined }

export const parsePassSignal = ({ type, properties }: RawEvent): PassSignal | undefined => {
  const sessionID = sessionOf(properties)
  if (type === "permission.replied") {
    const permissionID = answeredPermission(properties)
    const reply = text(field(properties, "reply")) ?? text(field(properties, "response"))
    return permissionID === undefined ? undefined : { kind: "answered", permissionID, reply }
  }
  if (sessionID === undefined) return undefined
  switch (type) {
    case "session.created":
      return { kind: "created", sessionID, parentID: text(field(properties, "info", "parentID")) }
    case "session.deleted":
      return { kind: "deleted", sessionID }
    case "session.idle":
      return { kind: "idle", sessionID }
    case "session.error": {
      const isAbort = field(properties, "error", "name") === "MessageAbortedError"
      return isAbort ? { kind: "aborted", sessionID } : undefined
    }
    case "permission.asked":
    case "permission.updated": {
      const permissionID = text(field(properties, "id"))
      const passID = text(field(properties, "metadata", "pass_over_id"))
      const subagent = text(field(properties, "metadata", "subagent"))
      const isCritical = field(properties, "metadata", "is_critical") === true
      return permissionID === undefined
        ? undefined
        : { kind: "asked", sessionID, permissionID, passID, subagent, isCritical }
    }
    default:
      return undefined
  }
}
