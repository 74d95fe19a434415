import { type AgentView, type TaskNews, toAgentView } from "../agent-view.ts"
import type { FoundState } from "../found-states.ts"
import { isObject } from "../merge.ts"
import type { Sighting } from "./agent-history.ts"

/** What an agent waits for a person to say. */
export type Wait =
  | { readonly kind: "permission"; readonly title: string; readonly type: string }
  | { readonly kind: "question"; readonly header: string; readonly text: string; readonly options: readonly string[] }

/** One agent as the page gets it: values and plain text, no markup. Times are milliseconds since the epoch. */
export type PageAgent = {
  /** Stable for as long as the statefile is there. */
  readonly key: string
  readonly project: string
  readonly name: string
  readonly doing: AgentView["doing"]["kind"]
  readonly waits: readonly Wait[]
  readonly session?: string
  readonly pid: number
  readonly task?: { readonly id: string; readonly role: string }
  readonly news?: PageNews
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
  readonly contextTokens?: number
  readonly model?: string
  readonly updatedAt: number
}

export type PageNews = Pick<TaskNews, "title" | "status" | "handoff"> & {
  /** Newest last. */
  readonly log: readonly { readonly at: number; readonly message: string }[]
}

/** The log of a task may be long; what is older is in the ledger. */
const SHOWN_LOG_ENTRIES = 5
const MAX_LOG_CHARACTERS = 600

const text = (value: unknown): string => (typeof value === "string" ? value : "")
const fields = (value: unknown): { readonly [key: string]: unknown } => (isObject(value) ? value : {})
const time = (iso: string): number => {
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? 0 : ms
}

const waitsOf = ({ state, alive }: FoundState): Wait[] => {
  if (!alive) return []
  const waits: Wait[] = []
  const focus = fields(state.tui_focus)
  if (focus.ty === "permission") {
    const details = fields(focus.details)
    waits.push({ kind: "permission", title: text(details.title), type: text(details.type) })
  }
  if (isObject(state.pendingQuestion)) {
    const { header, text: asked, options } = state.pendingQuestion
    waits.push({
      kind: "question",
      header: text(header),
      text: text(asked),
      options: Array.isArray(options) ? options.filter((option) => typeof option === "string") : [],
    })
  }
  return waits
}

const toPageNews = ({ title, status, log, handoff }: TaskNews): PageNews => ({
  title,
  status,
  ...(handoff === undefined ? {} : { handoff }),
  log: log.slice(-SHOWN_LOG_ENTRIES).map(({ message, createdAt }) => ({
    at: time(createdAt),
    message: message.length > MAX_LOG_CHARACTERS ? `${message.slice(0, MAX_LOG_CHARACTERS)}…` : message,
  })),
})

export const toPageAgent = (key: string, project: string, found: FoundState, news: TaskNews | undefined): PageAgent => {
  const view = toAgentView(project, found, undefined)
  const { session, task, contextTokens, model } = view
  return {
    key,
    project,
    name: view.name,
    doing: view.doing.kind,
    waits: waitsOf(found),
    pid: Number(found.state.opencode_pid),
    ...(session === undefined ? {} : { session }),
    ...(task ? { task } : {}),
    ...(news ? { news: toPageNews(news) } : {}),
    turns: view.turns,
    compactions: view.compactions,
    handoffs: view.handoffs,
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(model === undefined ? {} : { model }),
    updatedAt: time(found.ts),
  }
}

/** A step after which the agent is in the stretch that the step began. */
const BEGINS: Readonly<Record<string, string>> = {
  "session.idle": "idle",
  "permission.asked": "permission",
  "permission.updated": "permission",
}

/** An agent's end is in no statefile: it was soon after it was last heard of where there is a heartbeat, else when it was noticed. */
const goneAt = ({ state, ts }: FoundState, lookedAt: number): number =>
  fields(state.extensions).heartbeat_at === undefined ? lookedAt : time(ts)

/** @param lookedAt ms */
export const toSighting = (project: string, found: FoundState, lookedAt: number): Sighting => {
  const { doing, since, session, turns, compactions, handoffs } = toAgentView(project, found, undefined)
  const step = fields(fields(found.state.agent).last_step)
  const began = since !== undefined && BEGINS[text(step.event_type)] === doing.kind ? { beganAt: time(since) } : {}
  return {
    at: doing.kind === "gone" ? goneAt(found, lookedAt) : time(found.ts),
    doing,
    ...began,
    identity: [found.state.opencode_pid, found.state.plugin_started_at, session].join(" "),
    turns,
    compactions,
    handoffs,
  }
}
