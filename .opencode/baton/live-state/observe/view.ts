import { SILENT } from "../../host/log.ts"
import { createProcessRunner } from "../../host/process.ts"
import { createStateFolder } from "../../host/state.ts"
import { createLedger } from "../../ledger/client.ts"
import { splitHandoffs } from "../../ledger/description.ts"
import type { LedgerTask } from "../../ledger/ledger.ts"
import { isObject } from "../protocol.ts"
import type { FoundState } from "./state-files.ts"

const toNews = ({ title, status, logs, description, claim }: LedgerTask): TaskNews => {
  const [handoff] = splitHandoffs(description).handoffs
  const heading = handoff === undefined ? undefined : renderHandoffHeading(handoff)
  return {
    title,
    status,
    log: logs,
    ...(heading === undefined ? {} : { handoff: heading }),
    ...(claim ? { claim: claim.summary } : {}),
  }
}

export type TaskReading =
  | { readonly kind: "read"; readonly news: TaskNews | undefined }
  /** The ledger could not be asked now; earlier news still hold. */
  | { readonly kind: "failed" }

/** Creates a reader of the ledger's news of a task; none for a task the ledger does not have. */
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
    return { kind: "read", news: read.kind === "found" ? toNews(read.task) : undefined }
  }
}

/** The title of a compaction handoff: the number is shown, the ids are for programs. */
const TITLE = /^Handoff (after compaction \d+) \(.*\)$/

/**
 * Renders a handoff in one line: its title and the start of its text.
 *
 * @param section the handoff section of a description, Markdown, without its marks
 * @returns undefined when it is empty
 */
export const renderHandoffHeading = (section: string): string | undefined => {
  const [title, text] = section
    .split("\n")
    .map((line) => line.replace(/^#+ */, "").trim())
    .filter((line) => line !== "")
  const [, compaction] = TITLE.exec(title ?? "") ?? []
  return compaction === undefined || text === undefined ? title : `${compaction}: ${text}`
}

export type TaskNews = {
  readonly title: string
  readonly status: string
  /** Newest last. */
  readonly log: readonly { readonly message: string; readonly createdAt: string }[]
  /** The handoff in the task's description, in one line. */
  readonly handoff?: string
  /** Holder of the claim on the task, where, and since when. */
  readonly claim?: string
}

export type Doing =
  | { readonly kind: "gone" | "idle" | "busy" | "started" }
  | { readonly kind: "permission" | "question"; readonly text: string }

export type AgentView = {
  readonly project: string
  readonly name: string
  readonly session?: string
  readonly task?: { readonly id: string; readonly role: string }
  readonly news?: TaskNews
  readonly doing: Doing
  /** Time of its last step, ISO 8601. */
  readonly since?: string
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
  readonly contextTokens?: number
  readonly model?: string
  readonly updatedAt: string
}

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((found, key) => (isObject(found) ? found[key] : undefined), value)
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)
const count = (value: unknown): number => (typeof value === "number" ? value : 0)

const doingOf = ({ state, alive }: FoundState): Doing => {
  if (!alive) return { kind: "gone" }
  const permission = text(at(state, "tui_focus", "details", "title"))
  if (at(state, "tui_focus", "ty") === "permission") return { kind: "permission", text: permission ?? "" }
  const question = text(at(state, "pendingQuestion", "text")) ?? text(at(state, "pendingQuestion", "header"))
  if (isObject(at(state, "pendingQuestion"))) return { kind: "question", text: question ?? "" }
  const isIdle = at(state, "agent", "is_idle")
  return { kind: isIdle === true ? "idle" : isIdle === false ? "busy" : "started" }
}

/** Returns the task in a state; undefined in strict mode and for a session without one. */
export const taskOf = ({ state }: FoundState): { id: string; role: string } | undefined => {
  const id = text(at(state, "extensions", "task", "id"))
  return id === undefined ? undefined : { id, role: text(at(state, "extensions", "task", "role")) ?? "" }
}

export const toAgentView = (project: string, found: FoundState, news: TaskNews | undefined): AgentView => {
  const { state } = found
  const task = taskOf(found)
  const session = text(state.root_opencode_session_id)
  const since = text(at(state, "agent", "last_step", "at"))
  const tokens = at(state, "extensions", "context_tokens")
  const [provider, model] = [text(at(state, "agent", "provider_id")), text(at(state, "agent", "model_id"))]
  return {
    project,
    name: text(state.c2c_alias) ?? String(state.c2c_session_id),
    ...(session === undefined ? {} : { session }),
    ...(task ? { task } : {}),
    ...(news ? { news } : {}),
    doing: doingOf(found),
    ...(since === undefined ? {} : { since }),
    turns: count(at(state, "agent", "turn_count")),
    compactions: count(at(state, "extensions", "compactions")),
    handoffs: count(at(state, "extensions", "handoffs")),
    ...(typeof tokens === "number" ? { contextTokens: tokens } : {}),
    ...(model === undefined ? {} : { model: provider === undefined ? model : `${provider}/${model}` }),
    updatedAt: found.ts,
  }
}

/** Words for the kinds of work; web/page/words.js repeats them for the browser. */
export const DOING_WORDS: Readonly<Record<Doing["kind"], string>> = {
  gone: "gone",
  idle: "idle",
  busy: "busy",
  started: "started",
  permission: "asks permission",
  question: "asks",
}

export const describeDoing = (doing: Doing): string =>
  "text" in doing && doing.text !== "" ? `${DOING_WORDS[doing.kind]}: ${doing.text}` : DOING_WORDS[doing.kind]

/** Renders one agent in one line: running or gone, last change, session, task, kind of work. */
export const renderState = (found: FoundState): string => {
  const { ts, state, alive } = found
  const task = taskOf(found)
  return [
    alive ? "alive" : "gone ",
    ts.slice(0, 19).replace("T", " "),
    String(state.c2c_session_id),
    text(state.root_opencode_session_id) ?? "no session",
    ...(task ? [task.id] : []),
    ...(alive ? [describeDoing(doingOf(found))] : []),
  ].join("  ")
}
