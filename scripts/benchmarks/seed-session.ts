/** A session as `opencode export` prints it; only what is changed here is named. */
export type ExportedMessage = {
  info: {
    id: string
    sessionID: string
    role: string
    parentID?: string
    time: { created: number; completed?: number }
  }
  parts: { id: string; sessionID: string; messageID: string }[]
}
export type ExportedSession = { info: { id: string; [key: string]: unknown }; messages: ExportedMessage[] }

const SECOND_MS = 1_000

/** An id that sorts by time and counter as OpenCode's own do: twelve hex digits of both, fourteen characters more. */
export const sortableId = (prefix: string, atMs: number, counter: number): string => {
  const time = (BigInt(atMs) * 0x1000n + BigInt(counter % 0x1000)) & 0xffff_ffff_ffffn
  return `${prefix}_${time.toString(16).padStart(12, "0")}${counter.toString(36).padStart(14, "0")}`
}

/**
 * A session of `count` messages made by repeating a real, small one, a second apart and ending at `untilMs`.
 *
 * @param template what `opencode export` printed in the same project: an import of another project's is refused
 * @param index tells sessions of one project apart
 */
export const multiplySession = (
  template: ExportedSession,
  { count, untilMs, index }: { count: number; untilMs: number; index: number },
): ExportedSession => {
  const sessionID = sortableId("ses", untilMs, index)
  let ids = index * 0x1000
  let parentID = ""
  const messages = Array.from({ length: count }, (_, position): ExportedMessage => {
    const source = template.messages[position % template.messages.length]
    if (!source) throw new Error("the session to multiply has no messages")
    const created = untilMs - (count - position) * SECOND_MS
    const id = sortableId("msg", created, ids++)
    const isUser = source.info.role === "user"
    if (isUser) parentID = id
    const info = { ...source.info, id, sessionID, time: { created } }
    return {
      info: isUser ? info : { ...info, parentID, time: { created, completed: created + SECOND_MS / 2 } },
      parts: source.parts.map((part) => ({ ...part, id: sortableId("prt", created, ids++), sessionID, messageID: id })),
    }
  })
  return { info: { ...template.info, id: sessionID }, messages }
}
