import { createLruMap, type LruMap } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { collectUserText } from "../host/messages.ts"
import { messagePages, type Sessions, type StoredMessage } from "../host/sessions.ts"
import { newestTask, oldestUserText, type ParsedTask } from "./parse.ts"
import type { TaskStep } from "./session-task.ts"
import { type TypedMessage, toUserWords, type UserWords } from "./user-words.ts"

type LookUp =
  | { readonly kind: "found" | "unknown" }
  /** `missingDatabase`: there is no ledger; otherwise it did not answer in time. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly missingDatabase?: string }

export type TaskSearchDeps = {
  sessions: Pick<Sessions, "messages" | "parent">
  /** Of the sessions that this process saw created; null for none. OpenCode is asked for others. */
  parents: Pick<LruMap<string | null>, "get">
  /** Looks an id up in the ledger, within a deadline. Asked only for natural spellings. */
  lookUp: (taskID: string) => Promise<LookUp>
  hasTasks: () => Promise<boolean>
  log: Log
  now: () => Date
  /** Milliseconds that a search of the history may take. */
  searchDeadlineMs?: number
}

const SEARCH_DEADLINE_MS = 5_000
/** A page of this size takes 5–35 ms in a session of any length (measured at 10,000 messages on 1.18.33). */
const PAGE_MESSAGES = 50

export type FoundTask =
  | {
      readonly kind: "task"
      readonly task: ParsedTask
      readonly origin: TaskStep["origin"]
      /** The one that names the task. */
      readonly messageID?: string | undefined
      /** The user's, from that message on. */
      readonly words: readonly UserWords[]
    }
  /** `isCertain`: everything that could hold a task was read. */
  | { readonly kind: "nothing"; readonly isCertain: boolean }

const toTyped = ({ info, parts }: StoredMessage): TypedMessage => ({
  sessionID: info.sessionID,
  messageID: info.id,
  createdAt: info.time.created,
  text: collectUserText(parts),
})

/** The words that a person typed in these messages of a root session. */
export const wordsOf = (messages: readonly StoredMessage[]): UserWords[] =>
  messages.filter(({ info }) => info.role === "user").flatMap((message) => toUserWords(toTyped(message)) ?? [])

/** Asks OpenCode and the ledger what tells the task of a session. */
export const createTaskSearch = (deps: TaskSearchDeps) => {
  const { sessions, parents, lookUp, hasTasks, log, now, searchDeadlineMs = SEARCH_DEADLINE_MS } = deps
  /** Parents that OpenCode told; null: a root session. */
  const asked = createLruMap<string | null>()

  const knownParent = (sessionID: string): string | null | undefined => {
    const seen = parents.get(sessionID)
    return seen === undefined ? asked.get(sessionID) : seen
  }
  const parentOf = async (sessionID: string): Promise<{ parentID: string | null; isCertain: boolean }> => {
    const parentID = knownParent(sessionID)
    if (parentID !== undefined) return { parentID, isCertain: true }
    const answer = await sessions.parent(sessionID)
    if (answer.kind === "failed") {
      log.warn("parent of the session is unknown", { sessionID, reason: answer.reason })
      return { parentID: null, isCertain: false }
    }
    asked.set(sessionID, answer.value ?? null)
    return { parentID: answer.value ?? null, isCertain: true }
  }

  /** Lets a natural spelling count; never in a subagent's session. */
  const isKnown = async (sessionID: string, taskID: string): Promise<boolean> => {
    if (!(await parentOf(sessionID)).isCertain) return false
    const answer = await lookUp(taskID)
    const isMissing = answer.kind === "unavailable" && answer.missingDatabase !== undefined
    // The project's sessions had tasks, so the ledger was lost: the request says so, as it does for a `Task:` line.
    if (isMissing && (await hasTasks())) return true
    if (answer.kind === "unknown")
      log.info("the ledger does not know the task that a message names: not bound", { sessionID, taskID })
    if (answer.kind === "unavailable") {
      const about = { sessionID, taskID, reason: answer.reason }
      log.warn("the ledger cannot tell whether it knows the task that a message names: not bound", about)
    }
    return answer.kind === "found"
  }

  /** Finds the task of a session that began without the bundle, page by page from the newest message back. */
  const findInHistory = async (sessionID: string): Promise<FoundTask> => {
    // A subagent's messages are an agent's words, which bind nothing.
    if ((await parentOf(sessionID)).parentID !== null) return { kind: "nothing", isCertain: true }
    const over = now().getTime() + searchDeadlineMs
    const deadlinePassed = () => now().getTime() >= over
    let isCertain = false
    const later: StoredMessage[][] = []
    for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, shouldStop: deadlinePassed })) {
      if (answer.kind === "failed") {
        log.warn("task not found: the history cannot be read", { sessionID, reason: answer.reason })
        return { kind: "nothing", isCertain: false }
      }
      const found = await newestTask(answer.value.messages, (taskID) => isKnown(sessionID, taskID))
      if (found) {
        const since = [...found.since, ...later.flat()]
        return {
          kind: "task",
          task: found.task,
          origin: "history",
          messageID: since[0]?.info.id,
          words: wordsOf(since),
        }
      }
      later.unshift(answer.value.messages.filter(({ info }) => info.role === "user"))
      isCertain = answer.value.isOldest
    }
    log.debug("no task in the session's history", { sessionID, wholeHistoryRead: isCertain })
    return { kind: "nothing", isCertain }
  }

  /** The oldest text among a session's newest messages: a subagent has few. */
  const firstText = async (sessionID: string): Promise<string> => {
    const page = await sessions.messages(sessionID, PAGE_MESSAGES)
    return (page.kind === "ok" && oldestUserText(page.value.messages)) || ""
  }

  return {
    knownParent,
    parentOf,
    isKnown,
    findInHistory,
    firstText,
    forget: (sessionID: string) => asked.delete(sessionID),
  }
}
