import { field, isRecord, text } from "../schema.ts"
import type { StoredMessage } from "../sessions.ts"
import { isOlder } from "../shown-messages.ts"
import type { ModelName, Session } from "./context.ts"
import { toolArguments, toolName } from "./names.ts"

/** The mark in the metadata of a compaction for whose summary another text stands in. The model's own is beside it, as `answer`. */
export const RESCUED = "rescued"

/** The newest summary that the model is shown; "" for none. */
export const shownSummary = (entries: readonly unknown[]): string => {
  const newest = entries.findLast(
    (entry) => field(entry, "type") === "compaction" && field(entry, "status") === "completed",
  )
  return text(field(newest, "summary")) ?? ""
}

/** The end of the id of a compaction's summary. In OpenCode 1 it is a message of its own, behind the compaction. */
const SUMMARY = "z"

/** @returns the id in OpenCode 2 of the message with this id in OpenCode 1, where there is none of this id itself */
export const sourceID = (id: string): string => (id.endsWith(SUMMARY) ? id.slice(0, -SUMMARY.length) : id)

/** Agent and model of the session's next request; its user messages do not say theirs. */
type Speaking = { readonly agent: string; readonly model: ModelName }

type Entry = Readonly<Record<string, unknown>>

const timeOf = (entry: Entry): Record<string, number> => {
  const time = isRecord(entry.time) ? entry.time : {}
  return Object.fromEntries(
    Object.entries(time).filter((pair): pair is [string, number] => typeof pair[1] === "number"),
  )
}

const contentText = (content: unknown): string =>
  (Array.isArray(content) ? content : []).flatMap((each) => text(field(each, "text")) ?? []).join("\n")

/** A command that goes on in the background: its call is completed, its end comes as a message. @param tool its name in OpenCode 1 */
export const isInBackground = (tool: string, metadata: unknown): boolean =>
  tool === "bash" && field(metadata, "status") === "running"

/** A part of an assistant's message: text, reasoning, or a tool call. */
const assistantPart = (content: unknown, at: number, of: { sessionID: string; messageID: string }): object => {
  const part = { ...of, id: `prt_${of.messageID}_${at}` }
  if (field(content, "type") !== "tool")
    return { ...part, type: field(content, "type"), text: field(content, "text") ?? "" }
  const tool = toolName(text(field(content, "name")) ?? "")
  const state = field(content, "state")
  const time = field(content, "time")
  return {
    ...part,
    type: "tool",
    tool,
    callID: field(content, "id"),
    state: {
      status: isInBackground(tool, field(state, "metadata")) ? "running" : (field(state, "status") ?? "running"),
      input: toolArguments(tool, field(state, "input")) ?? {},
      output: contentText(field(state, "content")),
      error: text(field(state, "error", "message")) ?? "",
      title: "",
      metadata: field(state, "metadata") ?? {},
      time: { start: field(time, "created") ?? 0, end: field(time, "completed") ?? 0 },
    },
  }
}

/** The fields that features read; the types of OpenCode 1 have more. */
const message = (info: object, parts: readonly object[]): StoredMessage => ({ info, parts }) as unknown as StoredMessage

const userMessage = (
  { sessionID, id, time, agent, model }: Speaking & { sessionID: string; id: string; time: object },
  parts: readonly object[],
): StoredMessage => {
  const info = { id, sessionID, role: "user", time, agent, model: { providerID: model.providerID, modelID: model.id } }
  return message(
    info,
    parts.map((part) => ({ id: `prt_${id}`, sessionID, messageID: id, ...part })),
  )
}

/** A user's message that is being sent, and its text. */
export const sentMessage = (
  ids: { readonly sessionID: string; readonly messageID: string },
  words: string,
  speaking: Speaking,
  now: number,
): StoredMessage =>
  userMessage({ ...speaking, sessionID: ids.sessionID, id: ids.messageID, time: { created: now } }, [
    { type: "text", text: words },
  ])

const assistantMessage = (sessionID: string, entry: Entry, id: string, parentID: string): StoredMessage => {
  const content = Array.isArray(entry.content) ? entry.content : []
  const info = {
    id,
    sessionID,
    role: "assistant",
    parentID,
    time: timeOf(entry),
    mode: entry.agent,
    providerID: field(entry.model, "providerID"),
    modelID: field(entry.model, "id"),
    finish: entry.finish ?? (isRecord(entry.time) && entry.time.completed ? "stop" : undefined),
    ...(isRecord(entry.error) ? { error: entry.error } : {}),
  }
  return message(
    info,
    content.map((each, at) => assistantPart(each, at, { sessionID, messageID: id })),
  )
}

/** The message that set the session's task: a plugin is shown none from before the compaction. */
const taskMessages = (sessionID: string, entry: Entry, speaking: Speaking): StoredMessage[] => {
  const [messageID, words] = [field(entry.metadata, "task", "id"), field(entry.metadata, "task", "text")].map(text)
  if (messageID === undefined || words === undefined) return []
  return [sentMessage({ sessionID, messageID }, words, speaking, timeOf(entry).created ?? 0)]
}

/** A compaction is a user's message with such a part, and the summary, which answers it. */
const compactionMessages = (sessionID: string, entry: Entry, id: string, speaking: Speaking): StoredMessage[] => {
  const time = timeOf(entry)
  const request = userMessage({ ...speaking, sessionID, id, time }, [
    { type: "compaction", auto: entry.reason !== "manual" },
  ])
  if (entry.status !== "completed") return [request]
  const messageID = `${id}${SUMMARY}`
  const { created } = time
  const info = { id: messageID, sessionID, role: "assistant", parentID: id, summary: true, finish: "stop" }
  const isRescued = field(entry.metadata, "baton") === RESCUED
  const summary = text(isRescued ? field(entry.metadata, "answer") : entry.summary) ?? ""
  const part = { id: `prt_${messageID}`, sessionID, messageID, type: "text", text: summary }
  return [request, message({ ...info, time: { created, completed: created } }, [part])]
}

/**
 * Translates a session's stored messages, as `session.context` gives them, into those of OpenCode 1. Entries of other kinds are left
 * out.
 */
export const toStoredMessages = (
  sessionID: string,
  entries: readonly unknown[],
  speaking: Speaking,
): StoredMessage[] => {
  let parentID = ""
  return entries.filter(isRecord).flatMap((entry): StoredMessage[] => {
    const id = text(entry.id)
    if (id === undefined) return []
    switch (entry.type) {
      case "user":
      case "synthetic": {
        parentID = id
        const mark = entry.type === "synthetic" ? { synthetic: true } : {}
        const part = { type: "text", text: text(entry.text) ?? "", ...mark }
        return [userMessage({ ...speaking, sessionID, id, time: timeOf(entry) }, [part])]
      }
      case "compaction":
        // OpenCode goes on as if it had not been: cancelled, cut off, or with nothing to sum up.
        if (entry.status === "failed") return []
        parentID = id
        return [...taskMessages(sessionID, entry, speaking), ...compactionMessages(sessionID, entry, id, speaking)]
      case "assistant":
        return [assistantMessage(sessionID, entry, id, parentID)]
      default:
        return []
    }
  })
}

/** Without what the user has undone, which OpenCode shows until the next message. */
export const standing = (entries: readonly unknown[], revert: Session["revert"]): readonly unknown[] =>
  revert ? entries.filter((entry) => isOlder(text(field(entry, "id")) ?? "", revert.messageID)) : entries

/** Agent and model of the newest answer. */
export const lastSpeaking = (entries: readonly unknown[]): Speaking | undefined => {
  const answer = entries.findLast((entry) => field(entry, "type") === "assistant")
  const [agent, id, providerID] = [["agent"], ["model", "id"], ["model", "providerID"]].map((path) =>
    text(field(answer, ...path)),
  )
  return agent !== undefined && id !== undefined && providerID !== undefined
    ? { agent, model: { id, providerID } }
    : undefined
}
