import type { Event } from "@opencode-ai/sdk"
import { createLruMap } from "../host/async.ts"
import { count, field, type RawEvent, sessionOf, text, tokensIn } from "../host/schema.ts"
import { redactedLine } from "../host/secrets.ts"
import type { RunEnd } from "../ledger/ledger.ts"

/** The facts about a run: of a root session and its subagents, since it began. */
export type RunFacts = {
  readonly tools: number
  readonly tokens: number
  /** In dollars, as OpenCode counts. */
  readonly cost: number
  /** The newest, unless the agent went on after it. */
  readonly error:
    | { readonly name: string; readonly message: string; readonly status: number; readonly nextTry: string }
    | undefined
  /** A refused or open request for a permission after which the agent did nothing more. */
  readonly permission: string
  /** The same for a question. */
  readonly question: string
  /** The agent's newest words. */
  readonly words: string
}

export const NO_FACTS: RunFacts = {
  tools: 0,
  tokens: 0,
  cost: 0,
  error: undefined,
  permission: "",
  question: "",
  words: "",
}

const DETAIL_CHARACTERS = 200

const detailOf = (words: string): string => redactedLine(words.trim().split("\n").at(-1) ?? "", DETAIL_CHARACTERS)

const CONTEXT =
  /context (?:length|window|size)|ContextOverflow|(?:prompt|input|request) is too long|maximum context|exceeds? the (?:model|context)/i

/** A question mark at the end, in any script; quotes and brackets may follow. */
const ASKS = /[?？؟\u037e⸮]["'”’»)\]*_`]*\s*$/u

/** Judges the end of a run by what was seen of it; the ledger looks at the task's status first. */
export const judgeEnd = (facts: RunFacts): Pick<RunEnd, "kind" | "detail" | "next_try"> => {
  const { error, permission, question, words, tools } = facts
  if (error !== undefined) {
    const status = error.status === 0 || error.message.includes(String(error.status)) ? "" : `${error.status} `
    const detail = redactedLine(`${status}${error.message || error.name}`, DETAIL_CHARACTERS)
    if (error.name === "MessageAbortedError") return { kind: "killed", detail: "it was stopped" }
    if (error.name === "MessageOutputLengthError") return { kind: "unfinished", detail }
    if (CONTEXT.test(error.name) || CONTEXT.test(error.message)) return { kind: "context", detail }
    return { kind: "provider", detail, next_try: error.nextTry }
  }
  if (permission !== "") return { kind: "permission refused", detail: redactedLine(permission, DETAIL_CHARACTERS) }
  if (question !== "") return { kind: "question", detail: redactedLine(question, DETAIL_CHARACTERS) }
  if (ASKS.test(words)) return { kind: "question", detail: detailOf(words) }
  return { kind: tools === 0 ? "idle" : "unfinished", detail: detailOf(words) }
}

/** The time that the provider names, ISO 8601; "" for none. @param headers names in any case */
const nextTryIn = (headers: unknown, nowMs: number): string => {
  const found = new Map(
    Object.entries(Object(headers)).map(([name, value]) => [name.toLowerCase(), String(value)] as const),
  )
  const given = found.get("retry-after") ?? ""
  const ms = Number(found.get("retry-after-ms") ?? Number.NaN)
  const seconds = given === "" ? Number.NaN : Number(given)
  const at = ms > 0 ? nowMs + ms : seconds > 0 ? nowMs + seconds * 1_000 : Date.parse(given)
  return at > nowMs && at < nowMs + 31 * 24 * 60 * 60_000 ? new Date(at).toISOString() : ""
}

const MAX_SESSIONS = 500

type Counted = { readonly tokens: number; readonly cost: number }

/** @param rootOf the session above all subagents */
export const createRunFacts = (rootOf: (sessionID: string) => string, nowMs: () => number = Date.now) => {
  const runs = createLruMap<RunFacts>({ limit: MAX_SESSIONS })
  /** Tokens and cost of each message of a run: OpenCode reports a message more than once. */
  const messages = createLruMap<Map<string, Counted>>({ limit: MAX_SESSIONS })
  /** The newest answer of each root session. */
  const answers = createLruMap<string>({ limit: MAX_SESSIONS })
  /** A deleted session's last events come after it. */
  const isKnown = (sessionID: string): boolean => runs.get(sessionID) !== undefined
  const of = (sessionID: string): RunFacts => runs.get(sessionID) ?? NO_FACTS
  const change = (sessionID: string, changes: Partial<RunFacts>): void =>
    runs.set(sessionID, { ...of(sessionID), ...changes })

  const messageUpdated = (root: string, sessionID: string, info: unknown): void => {
    const id = text(field(info, "id"))
    if (id === undefined || field(info, "role") !== "assistant") return
    if (sessionID === root) answers.set(root, id)
    if (field(info, "time", "completed") === undefined) return
    const known = messages.get(root) ?? new Map<string, Counted>()
    known.set(id, { tokens: tokensIn(info), cost: count(field(info, "cost")) })
    messages.set(root, known)
    const all = [...known.values()]
    const sum = (name: keyof Counted): number => all.reduce((total, each) => total + each[name], 0)
    const failed = field(info, "error") !== undefined
    change(root, { tokens: sum("tokens"), cost: sum("cost"), ...(failed ? {} : { error: undefined }) })
  }

  const partUpdated = (root: string, part: unknown): void => {
    const words = text(field(part, "text"))
    if (words === undefined || field(part, "type") !== "text" || field(part, "messageID") !== answers.get(root)) return
    change(root, { words })
  }

  const failed = (root: string, error: unknown): void => {
    const status = field(error, "data", "statusCode")
    change(root, {
      error: {
        name: text(field(error, "name")) ?? "error",
        message: text(field(error, "data", "message")) ?? "",
        status: typeof status === "number" ? status : 0,
        nextTry: nextTryIn(field(error, "data", "responseHeaders"), nowMs()),
      },
    })
  }

  const asked = (properties: unknown): string => {
    const title = text(field(properties, "title")) ?? text(field(properties, "permission")) ?? "permission"
    const patterns = field(properties, "patterns")
    const subject =
      text(field(properties, "metadata", "command")) ?? (Array.isArray(patterns) ? patterns.join(" ") : "")
    return [title, subject].filter((part) => part !== "").join(": ")
  }

  return {
    of,
    /** Begins a run's facts anew. */
    begin: (sessionID: string): void => {
      runs.set(sessionID, NO_FACTS)
      messages.delete(sessionID)
      answers.delete(sessionID)
    },
    /** Takes the session up, if it is new: a person's run goes on over many messages. */
    follow: (sessionID: string): void => {
      if (!isKnown(sessionID)) runs.set(sessionID, NO_FACTS)
    },
    toolStarted: (sessionID: string): void => {
      const root = rootOf(sessionID)
      if (isKnown(root)) change(root, { tools: of(root).tools + 1, error: undefined, permission: "", question: "" })
    },
    forget: (sessionID: string): void => {
      runs.delete(sessionID)
      messages.delete(sessionID)
      answers.delete(sessionID)
    },
    observe: ({ type, properties }: RawEvent | Event): void => {
      const sessionID = text(field(properties, "part", "sessionID")) ?? sessionOf(properties)
      if (sessionID === undefined) return
      const root = rootOf(sessionID)
      if (!isKnown(root)) return
      if (type === "session.error") failed(root, field(properties, "error"))
      if (type === "message.updated") messageUpdated(root, sessionID, field(properties, "info"))
      if (type === "message.part.updated") partUpdated(root, field(properties, "part"))
      if (type === "permission.asked" || type === "permission.updated") change(root, { permission: asked(properties) })
      if (type === "permission.replied") {
        const reply = text(field(properties, "reply")) ?? text(field(properties, "response"))
        if (reply !== "reject") change(root, { permission: "" })
      }
      if (type === "question.asked")
        change(root, { question: text(field(properties, "questions", "0", "question")) ?? "a question" })
      if (type === "question.replied") change(root, { question: "" })
    },
  }
}

export type RunFactsOf = ReturnType<typeof createRunFacts>
