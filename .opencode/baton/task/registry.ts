import { createLruMap, type LruMap } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { messagePages, type Sessions } from "../host/sessions.ts"
import { createJsonStore, type JsonStore, type StateFolder } from "../host/state.ts"
import { cutText } from "../host/text.ts"
import {
  DEFAULT_ROLE,
  extractBrief,
  type NaturalTask,
  newestTask,
  oldestUserText,
  type ParsedTask,
  parseNaturalTask,
  parseTask,
  ROLES,
} from "./parse.ts"

const sessionTaskSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    taskID: z.string(),
    role: z.enum(ROLES),
    /** True if the user's text states the role and so asks for its protocol. Baton 0.1.0 gave every task the protocol. */
    hasRoleHeading: z.boolean().default(true),
    /** The user's message that set the work, verbatim; for a child session its own first message. */
    brief: z.string(),
    origin: z.enum(["message", "parent", "history"]),
    /** Since when the session has this task: ISO 8601, UTC. */
    boundAt: z.string(),
    /** The user took the task off the session; an earlier message that names it no longer counts. */
    isOff: z.boolean().optional(),
  })

/** A session's task, which is kept when its context is lost. */
export type SessionTask = Parsed<typeof sessionTaskSchema>

type BindingOrigin = SessionTask["origin"]

/** A brief is kept verbatim up to this length: four times what a prompt shows of it. */
const STORED_BRIEF_CHARACTERS = 24_000

export const TASKS_FOLDER = "tasks"

/** The bindings of a project's sessions, under `.opencode/state/tasks`, shared by all features. */
export const createSessionTasks = (deps: { state: StateFolder; log: Log }): JsonStore<SessionTask> =>
  createJsonStore({ ...deps, folder: TASKS_FOLDER, schema: sessionTaskSchema })

/** Keeps the task of each session. No call throws. */
export type TaskRegistry = {
  /**
   * Handles a user's message; `text` is the user's own text. Resolves when the binding is stored. A natural spelling is looked
   * up in the ledger first.
   */
  userMessage(sessionID: string, text: string): Promise<void>
  /** Gives a session a task that its message does not name. Resolves when the binding is stored. */
  bindTo(sessionID: string, taskID: string, text: string): Promise<void>
  /** Takes its task off a session until a message names one. @returns the task that it had */
  unbind(sessionID: string): Promise<SessionTask | undefined>
  /** Adds the user's request from an earlier session on the same task to the brief, unless it is there. */
  addToBrief(sessionID: string, taskID: string, text: string): Promise<void>
  /** Finds the binding in memory, on disk, at the parent or in the history, in this order. */
  find(sessionID: string): Promise<SessionTask | undefined>
  /** Finds the session that a child works for, through all its ancestors that have the task from their parent. */
  owner(binding: SessionTask): Promise<SessionTask | undefined>
  /** Calls the listener with each session's binding when it becomes known or ends (`isOff`), and with those known already. */
  onTask(listener: (binding: SessionTask) => void): void
  /** The binding, if it is in memory. */
  cached(sessionID: string): SessionTask | undefined
  forget(sessionID: string): Promise<void>
}

type LookUp =
  | { readonly kind: "found" | "unknown" }
  /** `missingDatabase`: there is no ledger; otherwise it did not answer in time. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly missingDatabase?: string }

type TaskRegistryDeps = {
  store: Pick<JsonStore<SessionTask>, "read" | "write" | "remove" | "keys">
  sessions: Pick<Sessions, "messages" | "parent">
  /** Of the sessions that this process saw created; null for none. OpenCode is asked for others. */
  parents: Pick<LruMap<string | null>, "get">
  /** Looks an id up in the ledger, within a deadline. Asked only for natural spellings. */
  lookUp: (taskID: string) => Promise<LookUp>
  log: Log
  now: () => Date
  /** Milliseconds that a search of the history may take. */
  searchDeadlineMs?: number
}

const SEARCH_DEADLINE_MS = 5_000
/** A page of this size takes 5–35 ms in a session of any length (measured at 10,000 messages on 1.18.33). */
const PAGE_MESSAGES = 50
/** Deeper than any real delegation; a cycle in damaged data ends here. */
const MAX_ANCESTORS = 16

/** Cached data of one session; all of it can be found again. */
type Entry = {
  binding?: SessionTask | undefined
  /** Everything was read without finding a task. Not set for a child, unless the user took the task off it. */
  hasNoTask?: boolean
  /** null: a root session. */
  parentID?: string | null
  /** The first message of a child session that was created in this process. */
  brief?: string
  searching?: Promise<SessionTask | undefined>
  /** The running write. Writes wait for each other, since of two at once the older binding might be renamed into place last. */
  storing?: Promise<unknown>
}

type Found =
  | { readonly kind: "stored"; readonly binding: SessionTask }
  | { readonly kind: "task"; readonly task: ParsedTask; readonly text: string; readonly origin: BindingOrigin }
  /** `isCertain`: everything that could hold a task was read. */
  | { readonly kind: "nothing"; readonly isCertain: boolean }

export const createTaskRegistry = (deps: TaskRegistryDeps): TaskRegistry => {
  const { store, sessions, parents, lookUp, log, now, searchDeadlineMs = SEARCH_DEADLINE_MS } = deps
  const remembered = createLruMap<Entry>()

  const entryOf = (sessionID: string): Entry => {
    const entry = remembered.get(sessionID) ?? {}
    remembered.set(sessionID, entry)
    return entry
  }

  const listeners: ((binding: SessionTask) => void)[] = []
  const remember = (session: Entry, binding: SessionTask): void => {
    session.binding = binding.isOff ? undefined : binding
    for (const listener of listeners) listener(binding)
  }

  const keep = async (binding: SessionTask): Promise<void> => {
    const session = entryOf(binding.sessionID)
    remember(session, binding)
    session.storing = Promise.resolve(session.storing).then(() => store.write(binding.sessionID, binding))
    await session.storing
  }

  const bind = async (
    sessionID: string,
    task: ParsedTask,
    brief: string,
    origin: BindingOrigin,
    before?: SessionTask,
  ): Promise<SessionTask> => {
    const binding: SessionTask = {
      version: 1,
      sessionID,
      taskID: task.taskID,
      role: task.role,
      hasRoleHeading: task.hasRoleHeading,
      brief: cutText(extractBrief(brief), STORED_BRIEF_CHARACTERS),
      origin,
      boundAt: before?.taskID === task.taskID ? before.boundAt : now().toISOString(),
    }
    const { taskID, role } = task
    if (before && before.taskID !== taskID)
      log.info("session changed its task", { sessionID, from: before.taskID, to: taskID })
    else log.info("session has a task", { sessionID, taskID, role, origin })
    await keep(binding)
    return binding
  }

  const knownParent = (sessionID: string): string | null | undefined => {
    const seen = parents.get(sessionID)
    return seen === undefined ? entryOf(sessionID).parentID : seen
  }
  const parentOf = async (sessionID: string): Promise<{ parentID: string | null; isCertain: boolean }> => {
    const parentID = knownParent(sessionID)
    if (parentID !== undefined) return { parentID, isCertain: true }
    const answer = await sessions.parent(sessionID)
    if (answer.kind === "failed") {
      log.warn("parent of the session is unknown", { sessionID, reason: answer.reason })
      return { parentID: null, isCertain: false }
    }
    entryOf(sessionID).parentID = answer.value ?? null
    return { parentID: answer.value ?? null, isCertain: true }
  }

  /** Tells whether a natural spelling counts in a session that is no subagent's. */
  const isKnown = async (sessionID: string, taskID: string): Promise<boolean> => {
    if (!(await parentOf(sessionID)).isCertain) return false
    const answer = await lookUp(taskID)
    const isMissing = answer.kind === "unavailable" && answer.missingDatabase !== undefined
    // The project's sessions had tasks, so the ledger was lost: the request says so, as it does for a `Task:` line.
    if (isMissing && (await store.keys()).length > 0) return true
    if (answer.kind === "unknown")
      log.info("the ledger does not know the task that a message names: not bound", { sessionID, taskID })
    if (answer.kind === "unavailable") {
      const about = { sessionID, taskID, reason: answer.reason }
      log.warn("the ledger cannot tell whether it knows the task that a message names: not bound", about)
    }
    return answer.kind === "found"
  }

  /** Finds the task of a session that began without the bundle, page by page from the newest message back. */
  const findInHistory = async (sessionID: string): Promise<Found> => {
    // A subagent's messages are an agent's words, which bind nothing.
    if ((await parentOf(sessionID)).parentID !== null) return { kind: "nothing", isCertain: true }
    const over = now().getTime() + searchDeadlineMs
    const isOver = () => now().getTime() >= over
    let isCertain = false
    for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, isOver })) {
      if (answer.kind === "failed") {
        log.warn("task not found: the history cannot be read", { sessionID, reason: answer.reason })
        return { kind: "nothing", isCertain: false }
      }
      const found = await newestTask(answer.value.messages, (taskID) => isKnown(sessionID, taskID))
      if (found) return { kind: "task", ...found, origin: "history" }
      isCertain = answer.value.isOldest
    }
    log.debug("no task in the session's history", { sessionID, wholeHistoryRead: isCertain })
    return { kind: "nothing", isCertain }
  }

  const readStored = async (sessionID: string): Promise<SessionTask | undefined> => {
    if (entryOf(sessionID).hasNoTask) return undefined
    const stored = await store.read(sessionID)
    if (!stored?.isOff) return stored
    entryOf(sessionID).hasNoTask = true
    return undefined
  }

  const findStored = async (sessionID: string): Promise<SessionTask | undefined> => {
    const stored = await readStored(sessionID)
    if (stored) log.debug("task known from an earlier run", { sessionID, taskID: stored.taskID })
    return stored
  }

  /** Finds the binding of the nearest ancestor with a task. */
  const findInherited = async (sessionID: string): Promise<{ binding?: SessionTask; isCertain: boolean }> => {
    const seen = new Set([sessionID])
    let isCertain = true
    for (let at = sessionID; seen.size <= MAX_ANCESTORS; ) {
      const parent = await parentOf(at)
      isCertain &&= parent.isCertain
      if (parent.parentID === null || seen.has(parent.parentID)) break
      at = parent.parentID
      seen.add(at)
      const binding = entryOf(at).binding ?? (await findStored(at))
      if (binding && binding.origin !== "parent") return { binding, isCertain }
      const found = entryOf(at).hasNoTask ? undefined : await findInHistory(at)
      if (found?.kind === "task") {
        // A message that bound the session during the search is newer than the search's result.
        const newest = entryOf(at).binding ?? (await bind(at, found.task, found.text, found.origin))
        return { binding: newest, isCertain }
      }
      if (found?.kind === "nothing") isCertain &&= found.isCertain
    }
    return { isCertain }
  }

  const search = async (sessionID: string): Promise<Found> => {
    const stored = entryOf(sessionID).binding ?? (await findStored(sessionID))
    if (stored && stored.origin !== "parent") return { kind: "stored", binding: stored }
    if (entryOf(sessionID).hasNoTask) return { kind: "nothing", isCertain: true }
    const { binding, isCertain } = await findInherited(sessionID)
    if (stored && (binding ? binding.taskID === stored.taskID : !isCertain)) return { kind: "stored", binding: stored }
    if (binding) {
      const task = { ...binding, hasRoleHeading: false }
      return { kind: "task", task, text: stored?.brief ?? (await firstMessage(sessionID)), origin: "parent" }
    }
    const found = await findInHistory(sessionID)
    return found.kind === "nothing" ? { kind: "nothing", isCertain: isCertain && found.isCertain } : found
  }

  const firstMessage = async (sessionID: string): Promise<string> => {
    const { brief } = entryOf(sessionID)
    if (brief !== undefined) return brief
    const page = await sessions.messages(sessionID, PAGE_MESSAGES)
    return (page.kind === "ok" && oldestUserText(page.value.messages)) || ""
  }

  const searchOnce = async (sessionID: string, session: Entry): Promise<SessionTask | undefined> => {
    const before = session.binding
    const found = await search(sessionID)
    // A session that was deleted meanwhile stays forgotten.
    if (session.binding !== before || remembered.get(sessionID) !== session) return session.binding
    if (found.kind === "task") return bind(sessionID, found.task, found.text, found.origin, before)
    if (found.kind === "stored") {
      if (found.binding !== before) remember(session, found.binding)
    } else if (found.isCertain) {
      if (before) remember(session, { ...before, isOff: true })
      session.hasNoTask ||= typeof knownParent(sessionID) !== "string"
    }
    return session.binding
  }

  const find = (sessionID: string): Promise<SessionTask | undefined> => {
    const session = entryOf(sessionID)
    // A child's is its parent's, which may have another one by now.
    const isSettled = session.binding ? session.binding.origin !== "parent" : session.hasNoTask
    if (isSettled) return Promise.resolve(session.binding)
    session.searching ??= searchOnce(sessionID, session)
      .catch((error: unknown) => {
        log.error("search for the task failed", { sessionID, error: describeError(error) })
        return undefined
      })
      .finally(() => {
        delete session.searching
      })
    return session.searching
  }

  const confirm = async (sessionID: string, natural: NaturalTask): Promise<ParsedTask | undefined> => {
    const { taskID, isBare } = natural
    const before = entryOf(sessionID).binding ?? (await readStored(sessionID))
    if (before?.taskID === taskID && before.origin !== "parent") return natural
    if (isBare && before && (await lookUp(before.taskID)).kind !== "unknown") {
      log.debug("an id alone may answer a question: the session keeps its task", { sessionID, taskID: before.taskID })
      return undefined
    }
    if (!(await isKnown(sessionID, taskID))) return undefined
    const after = entryOf(sessionID).binding
    const isOutdated = after?.origin === "message" && after.taskID !== before?.taskID
    return isOutdated ? undefined : natural
  }

  return {
    userMessage: async (sessionID, text) => {
      const session = entryOf(sessionID)
      if (typeof knownParent(sessionID) === "string") session.brief ??= cutText(text, STORED_BRIEF_CHARACTERS)
      const exact = parseTask(text)
      const natural = exact ? undefined : parseNaturalTask(text)
      const named = exact ?? natural
      const isOrder = named !== undefined && (await parentOf(sessionID)).parentID !== null
      if (isOrder) log.info("an agent's order to its subagent binds no task", { sessionID, taskID: named.taskID })
      const task = isOrder ? undefined : (exact ?? (natural && (await confirm(sessionID, natural))))
      if (!task) {
        // In the background: a search may read a long history, and the user's message must not wait for it.
        return void find(sessionID)
      }
      const before = session.binding ?? (await readStored(sessionID))
      const isSame =
        before?.taskID === task.taskID &&
        before.origin !== "parent" &&
        // Naming the task again without a heading does not change the role.
        (!task.hasRoleHeading || (before.hasRoleHeading && before.role === task.role))
      if (isSame) remember(session, before)
      else await bind(sessionID, task, text, "message", before)
    },
    bindTo: async (sessionID, taskID, text) => {
      const task = { taskID, role: DEFAULT_ROLE, hasRoleHeading: false }
      await bind(sessionID, task, text, "message", entryOf(sessionID).binding)
    },
    unbind: async (sessionID) => {
      const binding = await find(sessionID)
      if (!binding) return undefined
      entryOf(sessionID).hasNoTask = true
      await keep({ ...binding, isOff: true })
      log.info("session has no task any more", { sessionID, taskID: binding.taskID })
      return binding
    },
    addToBrief: async (sessionID, taskID, text) => {
      const { binding } = entryOf(sessionID)
      if (binding?.taskID !== taskID || binding.brief.includes(text.trim())) return
      const brief = cutText(`${binding.brief.trimEnd()}\n\n${text.trim()}`, STORED_BRIEF_CHARACTERS)
      await keep({ ...binding, brief })
    },
    find,
    owner: async (binding) => {
      let owner: SessionTask | undefined = binding
      for (let above = 0; owner?.origin === "parent" && above < MAX_ANCESTORS; above++) {
        const { parentID } = await parentOf(owner.sessionID)
        owner = parentID === null ? undefined : await find(parentID)
      }
      return owner
    },
    onTask: (listener) => {
      listeners.push(listener)
      for (const { binding } of remembered.values()) if (binding) listener(binding)
    },
    cached: (sessionID) => remembered.get(sessionID)?.binding,
    forget: async (sessionID) => {
      const storing = remembered.get(sessionID)?.storing
      remembered.delete(sessionID)
      await storing
      await store.remove(sessionID)
    },
  }
}
