/** What an event of OpenCode means for passes. */
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

/** Events as 1.2.15 to 1.18.33 send them; the SDK's types know older ones. */
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
