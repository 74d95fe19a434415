import type { Log } from "../../host/log.ts"
import type { PermissionAnswer, Requests } from "../../host/requests.ts"
import { field, type RawEvent, text } from "../../host/schema.ts"
import type { Result } from "../../host/sessions.ts"
import { cutText } from "../../host/text.ts"
import type { C2cMessage } from "./inbox.ts"

type ApprovalsDeps = {
  /** c2c's id of this session, for the supervisor's reply. */
  readonly c2cSession: string
  readonly supervisors: readonly string[]
  readonly send: (alias: string, text: string) => void
  readonly requests: Requests
  readonly timeoutMs: number
  readonly log: Log
}

type Pending = { readonly kind: "permission" | "question"; readonly sessionID: string; readonly questions: number }
type Answer = { readonly kind: Pending["kind"]; readonly id: string; readonly decision: string }

const PERMISSION_ANSWERS: Readonly<Record<string, PermissionAnswer>> = {
  "approve-once": "once",
  "approve-always": "always",
  reject: "reject",
}

/** More than are answered late. */
const MAX_ENDED = 100
const ACTION_CHARACTERS = 500

const PERMISSION = /\bpermission:([\w-]+):(approve-once|approve-always|reject)\b/
const QUESTION = /\bquestion:([\w-]+):(?:(reject)\b|answer:(.+))/s

/** Reads c2c's form of an answer anywhere in a message. */
const parseAnswer = (content: string): Answer | undefined => {
  const [, permissionID, decision] = PERMISSION.exec(content) ?? []
  if (permissionID && decision) return { kind: "permission", id: permissionID, decision }
  const [, questionID, rejected, answer] = QUESTION.exec(content) ?? []
  return questionID ? { kind: "question", id: questionID, decision: rejected ?? answer?.trim() ?? "" } : undefined
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The permission's tool and command or paths, as c2c's own plugin words them. */
const describePermission = (properties: unknown): string => {
  const type = text(field(properties, "permission")) ?? text(field(properties, "type")) ?? "unknown"
  const patterns = list(field(properties, "patterns") ?? field(properties, "pattern")).join(" ")
  const action = text(field(properties, "metadata", "command")) ?? (patterns || text(field(properties, "title"))) ?? ""
  return action === "" ? type : `${type}: \`${cutText(action, ACTION_CHARACTERS)}\``
}

const describeQuestions = (properties: unknown): string[] =>
  list(field(properties, "questions")).flatMap((asked, index) => {
    const options = list(field(asked, "options")).flatMap((option) => text(field(option, "label")) ?? [])
    return [
      `  Q${index + 1}: ${text(field(asked, "question")) ?? ""}`,
      ...(options.length > 0 ? [`      Options: ${options.join(" | ")}`] : []),
    ]
  })

/**
 * Lets supervisors answer what OpenCode asks. A request without an answer is rejected after `timeoutMs`; one that a person has
 * answered meanwhile is over. A late answer changes nothing, and its sender is told.
 */
export const createApprovals = (deps: ApprovalsDeps) => {
  const { c2cSession, supervisors, send, requests, timeoutMs, log } = deps
  const pending = new Map<string, Pending & { readonly timer: NodeJS.Timeout }>()
  const over = new Set<string>()

  const end = (id: string): Pending | undefined => {
    const request = pending.get(id)
    if (!request) return undefined
    clearTimeout(request.timer)
    pending.delete(id)
    over.add(id)
    for (const oldest of over) if (over.size > MAX_ENDED) over.delete(oldest)
    return request
  }

  const respond = (
    id: string,
    { kind, sessionID, questions }: Pending,
    decision: string,
  ): Promise<Result<undefined>> => {
    if (kind === "permission") return requests.answerPermission(sessionID, id, PERMISSION_ANSWERS[decision] ?? "reject")
    if (decision === "reject") return requests.rejectQuestion(id)
    return requests.answerQuestion(
      id,
      Array.from({ length: questions }, () => [decision]),
    )
  }

  const decide = async (id: string, decision: string, by: string): Promise<void> => {
    const request = end(id)
    if (!request) return
    const { kind, sessionID } = request
    const answered = await respond(id, request, decision)
    if (answered.kind === "failed")
      log.warn("an answer from c2c was not taken", { sessionID, kind, id, reason: answered.reason })
    else log.info("a request was answered through c2c", { sessionID, kind, id, by })
  }

  return {
    /** Sends a permission or question of the root session, or of a subagent below it, to the supervisors. */
    asked: ({ properties }: RawEvent, sessionID: string, rootSession: string): void => {
      const id = text(field(properties, "id"))
      if (id === undefined || pending.has(id) || over.has(id)) return
      const questions = list(field(properties, "questions")).length
      const kind = questions > 0 ? "question" : "permission"
      const timer = setTimeout(() => {
        for (const alias of supervisors) send(alias, `${kind} ${id} timed out after ${timeoutMs / 1_000}s: rejected`)
        void decide(id, "reject", "the deadline")
      }, timeoutMs)
      timer.unref()
      pending.set(id, { kind, sessionID, questions, timer })
      const answers = kind === "question" ? ["answer:<your answer>", "reject"] : Object.keys(PERMISSION_ANSWERS)
      const message = [
        `${kind.toUpperCase()} REQUEST from ${c2cSession}:`,
        ...(kind === "question" ? describeQuestions(properties) : [`  action: ${describePermission(properties)}`]),
        `  id: ${id}`,
        `  session: ${sessionID}${sessionID === rootSession ? "" : ` (subagent of ${rootSession})`}`,
        `Reply within ${timeoutMs / 1_000}s:`,
        ...answers.map((answer) => `  c2c send ${c2cSession} "${kind}:${id}:${answer}"`),
      ].join("\n")
      for (const alias of supervisors) send(alias, message)
    },
    /** The request was answered, by a person or by a supervisor. */
    ended: (id: string): void => void end(id),
    /** Takes a supervisor's answer, which is no message for the agent. @returns false for any other message */
    take: ({ from_alias, content }: C2cMessage): boolean => {
      const answer = parseAnswer(content)
      // Other agents' words decide nothing.
      if (!answer || !supervisors.includes(from_alias)) return false
      const { kind, id, decision } = answer
      if (pending.get(id)?.kind === kind) void decide(id, decision, from_alias)
      else if (over.has(id)) send(from_alias, `${kind} ${id}: your answer came too late, the request is over`)
      else return false
      return true
    },
    /** The session's turn ended, and with it what was asked in it; without a session, every turn. */
    endAll: (sessionID?: string): void => {
      for (const [id, request] of pending) if ((sessionID ?? request.sessionID) === request.sessionID) end(id)
    },
    isWaiting: (): boolean => pending.size > 0,
  }
}
