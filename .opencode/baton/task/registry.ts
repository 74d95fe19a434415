import { describeError, type Log } from "../host/log.ts"
import type { SessionStore } from "../host/session-store.ts"
import type { Sessions } from "../host/sessions.ts"
import { type BindingOrigin, STORED_BRIEF_CHARACTERS, type TaskBinding } from "./binding.ts"
import { extractBrief } from "./brief.ts"
import { searchHistory } from "./history.ts"
import { type ParsedTask, parseTask } from "./parse.ts"

/** Which task a session works on. No call throws. */
export type TaskRegistry = {
  /** A user's message arrived; `text` is what the user wrote of it. Resolves when the binding is stored. */
  userMessage(sessionID: string, text: string): Promise<void>
  sessionCreated(sessionID: string, parentID: string | undefined): void
  /** The binding from memory, disk, the parent or the history, in this order. */
  find(sessionID: string): Promise<TaskBinding | undefined>
  /** The binding as far as memory knows it. */
  peek(sessionID: string): TaskBinding | undefined
  forget(sessionID: string): Promise<void>
}

export type TaskRegistryDeps = {
  store: SessionStore<TaskBinding>
  sessions: Pick<Sessions, "messages" | "parent">
  log: Log
  now: () => Date
  /** How long a search of the history may go on, in milliseconds. */
  searchDeadlineMs?: number
}

const SEARCH_DEADLINE_MS = 5_000
/** Deeper than any honest delegation; a cycle in damaged data ends here. */
const MAX_ANCESTORS = 16

type Known = { binding: TaskBinding | undefined }

export const createTaskRegistry = (deps: TaskRegistryDeps): TaskRegistry => {
  const { store, sessions, log, now, searchDeadlineMs = SEARCH_DEADLINE_MS } = deps
  const known = new Map<string, Known>()
  const searching = new Map<string, Promise<TaskBinding | undefined>>()
  const parents = new Map<string, string | undefined>()
  const briefs = new Map<string, string>()

  const bind = async (
    sessionID: string,
    task: ParsedTask,
    brief: string,
    origin: BindingOrigin,
    before?: TaskBinding,
  ): Promise<TaskBinding> => {
    const binding: TaskBinding = {
      version: 1,
      sessionID,
      taskID: task.taskID,
      role: task.role,
      brief: extractBrief(brief).slice(0, STORED_BRIEF_CHARACTERS),
      origin,
      boundAt: now().toISOString(),
    }
    known.set(sessionID, { binding })
    if (before && before.taskID !== task.taskID) {
      log.info("session changed its task", { sessionID, from: before.taskID, to: task.taskID })
    } else {
      log.info("session has a task", { sessionID, taskID: task.taskID, role: task.role, origin })
    }
    await store.write(sessionID, binding)
    return binding
  }

  const parentOf = async (sessionID: string): Promise<string | undefined> => {
    if (parents.has(sessionID)) return parents.get(sessionID)
    const answer = await sessions.parent(sessionID)
    if (answer.kind === "failed") {
      log.warn("parent of the session is unknown", { sessionID, reason: answer.reason })
      return undefined
    }
    parents.set(sessionID, answer.value)
    return answer.value
  }

  const fromHistory = async (sessionID: string): Promise<TaskBinding | undefined> => {
    const over = now().getTime() + searchDeadlineMs
    const search = await searchHistory(sessions, sessionID, () => now().getTime() >= over)
    if (search.kind === "found") return bind(sessionID, search.task, search.text, "history")
    if (search.kind === "failed")
      log.warn("task not found: the history cannot be read", { sessionID, reason: search.reason })
    else log.debug("session has no task: nothing to do", { sessionID, wholeHistoryRead: search.complete })
    return undefined
  }

  /** The session's own binding, its ancestors left aside. */
  const findOwn = async (sessionID: string): Promise<TaskBinding | undefined> => {
    const entry = known.get(sessionID)
    if (entry?.binding) return entry.binding
    const stored = await store.read(sessionID)
    if (!stored) return fromHistory(sessionID)
    log.debug("task known from an earlier run", { sessionID, taskID: stored.taskID })
    return stored
  }

  /** The nearest ancestor's binding. */
  const findInherited = async (sessionID: string): Promise<TaskBinding | undefined> => {
    const seen = new Set([sessionID])
    let ancestor = await parentOf(sessionID)
    while (ancestor !== undefined && !seen.has(ancestor) && seen.size <= MAX_ANCESTORS) {
      const binding = await findOwn(ancestor)
      if (binding) return binding
      seen.add(ancestor)
      ancestor = await parentOf(ancestor)
    }
    return undefined
  }

  const search = async (sessionID: string): Promise<TaskBinding | undefined> => {
    const stored = await store.read(sessionID)
    if (stored) {
      log.debug("task known from an earlier run", { sessionID, taskID: stored.taskID })
      return stored
    }
    const inherited = await findInherited(sessionID)
    if (inherited) return bind(sessionID, inherited, await ownBrief(sessionID), "parent")
    return fromHistory(sessionID)
  }

  const ownBrief = async (sessionID: string): Promise<string> => {
    const seen = briefs.get(sessionID)
    if (seen !== undefined) return seen
    const page = await searchHistory(sessions, sessionID, () => true)
    return page.kind === "nothing" ? (page.firstText ?? "") : page.kind === "found" ? page.text : ""
  }

  const find = (sessionID: string): Promise<TaskBinding | undefined> => {
    const entry = known.get(sessionID)
    if (entry) return Promise.resolve(entry.binding)
    const running = searching.get(sessionID)
    if (running) return running
    const started = search(sessionID)
      .catch((error: unknown) => {
        log.error("search for the task failed", { sessionID, error: describeError(error) })
        return undefined
      })
      .then((binding) => {
        searching.delete(sessionID)
        // A message that bound the session while the search ran is newer than what the search found.
        const current = known.get(sessionID)
        if (current) return current.binding
        known.set(sessionID, { binding })
        return binding
      })
    searching.set(sessionID, started)
    return started
  }

  return {
    userMessage: async (sessionID, text) => {
      if (!briefs.has(sessionID)) briefs.set(sessionID, text.slice(0, STORED_BRIEF_CHARACTERS))
      const task = parseTask(text)
      if (!task) {
        // In the background: a search may page through a long history, and the user's message must not wait for it.
        void find(sessionID)
        return
      }
      const before = known.get(sessionID)?.binding ?? (await store.read(sessionID))
      const isSame = before?.taskID === task.taskID && before.role === task.role && before.origin !== "parent"
      if (isSame) known.set(sessionID, { binding: before })
      else await bind(sessionID, task, text, "message", before)
    },
    sessionCreated: (sessionID, parentID) => {
      parents.set(sessionID, parentID)
    },
    find,
    peek: (sessionID) => known.get(sessionID)?.binding,
    forget: async (sessionID) => {
      // What a search finds is remembered, so that it has to end first.
      await searching.get(sessionID)
      for (const memory of [known, searching, parents, briefs]) memory.delete(sessionID)
      await store.remove(sessionID)
    },
  }
}
