import { localMinute } from "../../host/cli.ts"
import { SILENT } from "../../host/log.ts"
import { createProcessRunner } from "../../host/process.ts"
import { count, field, isRecord, text } from "../../host/schema.ts"
import { createStateFolder } from "../../host/state.ts"
import { createLedger } from "../../ledger/client.ts"
import { parseHandoffTitle, parseNextStep, splitHandoffs } from "../../ledger/description.ts"
import type { LedgerTask } from "../../ledger/ledger.ts"
import { isCutOff } from "../statefile.ts"
import { describeWait, ofWhom, STATUS } from "../web/page/words.js"
import type { FoundState } from "./state-files.ts"
import { readWaits, type Wait } from "./waits.ts"

export type TaskSummary = {
  readonly title: string
  readonly status: string
  /** Newest last. */
  readonly log: readonly { readonly message: string; readonly createdAt: string }[]
  /** The newest handoff in one line: whose it is, and the next step. */
  readonly handoff?: string
  /** Holder of the claim on the task, where, and since when. */
  readonly claim?: string
}

const toSummary = ({ title, status, logs, description, claim }: LedgerTask): TaskSummary => {
  const [section] = splitHandoffs(description.untrusted).handoffs
  const handoff = section === undefined ? undefined : renderHandoff(section)
  return {
    title: title.untrusted,
    status: status.untrusted,
    log: logs.map(({ message, createdAt }) => ({ message: message.untrusted, createdAt })),
    ...(handoff === undefined ? {} : { handoff }),
    ...(claim ? { claim: claim.summary.untrusted } : {}),
  }
}

export type TaskReading =
  | { readonly kind: "read"; readonly news: TaskSummary | undefined }
  /** The ledger could not be asked now; an earlier summary still holds. */
  | { readonly kind: "failed" }

/** Creates a reader of the ledger's tasks; undefined for a task that the ledger does not have. */
export const createTaskReader = (root: string): ((taskID: string) => Promise<TaskReading>) => {
  const ledger = createLedger({
    run: createProcessRunner({ shell: undefined }),
    directory: root,
    // An observer has no log; what it cannot read is shown as missing.
    log: SILENT,
    state: createStateFolder(root),
  })
  return async (taskID) => {
    const read = await ledger.readTask(taskID, { withClaim: true })
    if (read.kind === "unavailable") return { kind: "failed" }
    return { kind: "read", news: read.kind === "found" ? toSummary(read.task) : undefined }
  }
}

const HEADING = /^#+\s*/
const BULLET = /^(?:[-*+]|\d+[.)])\s+/

/**
 * Renders a handoff in one line: which it is, and its next step; without one its first line of text.
 *
 * @param section the handoff section of a description, Markdown, without its marks
 * @returns undefined when it is empty
 */
export const renderHandoff = (section: string): string | undefined => {
  const lines = section.split("\n")
  const title = parseHandoffTitle(section)
  const name = title === undefined ? [] : [title.number === 0 ? "work in progress" : `after compaction ${title.number}`]
  const step = parseNextStep(section)
  if (step !== undefined) return [...name, `next: ${step}`].join(", ")
  const line = lines
    .find((each) => each.trim() !== "" && !HEADING.test(each))
    ?.trim()
    .replace(BULLET, "")
  return [...name, ...(line === undefined ? [] : [line])].join(": ") || undefined
}

export type Status =
  | { readonly kind: "gone" | "crashed" | "idle" | "busy" | "started" }
  | { readonly kind: "permission" | "question" | "retry"; readonly text: string }

/** A provider that failed and is asked again. Times are ISO 8601. */
type RetryView = {
  readonly message: string
  readonly attempt: number
  readonly nextAt?: string
  /** Title of the subagent's session whose provider it is. */
  readonly subagent?: string
}

export type AgentView = {
  readonly project: string
  readonly name: string
  readonly session?: string
  /** The session's, as OpenCode shows it. */
  readonly title?: string
  readonly pid: number
  readonly task?: { readonly id: string; readonly role: string }
  readonly news?: TaskSummary
  readonly doing: Status
  /** Start of what it does, ISO 8601; absent if that is not known. */
  readonly since?: string
  readonly waits: readonly Wait[]
  readonly retry?: RetryView
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
  readonly contextTokens?: number
  readonly model?: string
  /** ISO 8601. */
  readonly updatedAt: string
}

const retryOf = ({ state, alive }: FoundState): RetryView | undefined => {
  const retry = field(state, "extensions", "retry")
  if (!alive || !isRecord(retry)) return undefined
  const [nextAt, subagent] = [text(retry.next_at), text(retry.subagent)]
  return {
    message: text(retry.message) ?? "",
    attempt: count(retry.attempt),
    ...(nextAt === undefined ? {} : { nextAt }),
    ...(subagent === undefined ? {} : { subagent }),
  }
}

const doingOf = ({ state, alive }: FoundState, waits: readonly Wait[], retry: RetryView | undefined): Status => {
  if (!alive) return { kind: isCutOff(state) ? "crashed" : "gone" }
  const [first] = waits
  if (first) {
    const asked = first.kind === "permission" ? describeWait(first) : first.text || first.header
    const who = ofWhom(first, text(state.root_opencode_session_id)).map((each) => `(${each})`)
    return { kind: first.kind, text: [asked, ...who].join(" ") }
  }
  if (retry) return { kind: "retry", text: retry.message }
  const isIdle = field(state, "agent", "is_idle")
  return { kind: isIdle === true ? "idle" : isIdle === false ? "busy" : "started" }
}

/** Returns the task in a state; undefined in strict mode and for a session without one. */
export const taskOf = ({ state }: FoundState): { id: string; role: string } | undefined => {
  const id = text(field(state, "extensions", "task", "id"))
  return id === undefined ? undefined : { id, role: text(field(state, "extensions", "task", "role")) ?? "" }
}

/** The step that begins a status, for a statefile without extensions. */
const BEGINNINGS: Readonly<Record<string, string>> = {
  "session.idle": "idle",
  "permission.asked": "permission",
  "permission.updated": "permission",
}

const sinceOf = (
  { state, ts }: FoundState,
  { kind }: Status,
  [first]: readonly { readonly since?: string }[],
): string | undefined => {
  if (kind === "gone" || kind === "crashed") return ts
  if (kind === "retry") return text(field(state, "extensions", "retry", "since"))
  if (first?.since !== undefined) return first.since
  const step = text(field(state, "agent", "last_step", "event_type"))
  const began =
    step !== undefined && BEGINNINGS[step] === kind ? text(field(state, "agent", "last_step", "at")) : undefined
  return text(field(state, "extensions", "status_since")) ?? began
}

export const toAgentView = (project: string, found: FoundState, news: TaskSummary | undefined): AgentView => {
  const { state } = found
  const task = taskOf(found)
  const session = text(state.root_opencode_session_id)
  const title = text(field(state, "extensions", "title"))
  const turns = field(state, "extensions", "turns") ?? field(state, "agent", "turn_count")
  const waits = found.alive ? readWaits(state) : []
  const retry = retryOf(found)
  const doing = doingOf(found, waits, retry)
  const since = sinceOf(found, doing, waits)
  const tokens = field(state, "extensions", "context_tokens")
  const [provider, model] = [text(field(state, "agent", "provider_id")), text(field(state, "agent", "model_id"))]
  return {
    project,
    name: text(state.c2c_alias) ?? String(state.c2c_session_id),
    ...(session === undefined ? {} : { session }),
    ...(title === undefined ? {} : { title }),
    ...(task ? { task } : {}),
    ...(news ? { news } : {}),
    pid: Number(state.opencode_pid),
    doing,
    ...(since === undefined ? {} : { since }),
    waits,
    ...(retry ? { retry } : {}),
    turns: count(turns),
    compactions: count(field(state, "extensions", "compactions")),
    handoffs: count(field(state, "extensions", "handoffs")),
    ...(typeof tokens === "number" ? { contextTokens: tokens } : {}),
    ...(model === undefined ? {} : { model: provider === undefined ? model : `${provider}/${model}` }),
    updatedAt: found.ts,
  }
}

const describeStatus = (doing: Status): string => {
  const { word } = STATUS[doing.kind]
  return "text" in doing && doing.text !== "" ? `${word}: ${doing.text}` : word
}

/** Renders one agent in one line: running, gone or crashed, last change, session, task, kind of work. */
export const renderState = (found: FoundState): string => {
  const { ts, state, alive } = found
  const task = taskOf(found)
  const { doing } = toAgentView("", found, undefined)
  return [
    (alive ? "alive" : doing.kind).padEnd(7),
    localMinute(ts),
    String(state.c2c_session_id),
    text(state.root_opencode_session_id) ?? "no session",
    ...(task ? [task.id] : []),
    ...(alive ? [describeStatus(doing)] : []),
  ].join("  ")
}
