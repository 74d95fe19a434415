import { createLruMap } from "../host/async.ts"
import { describeError } from "../host/log.ts"
import type { ShownMessages } from "../host/shown-messages.ts"
import type { JsonStore } from "../host/state.ts"
import { cutText } from "../host/text.ts"
import {
  DEFAULT_ROLE,
  mentionedTasks,
  type NaturalTask,
  type ParsedTask,
  parseNaturalTask,
  parseTask,
} from "./parse.ts"
import {
  type Entry,
  emptyRecord,
  messageIDsOf,
  type SessionTask,
  stepsBetween,
  type TaskRecord,
  type TaskRegistry,
  type TaskStep,
  taskOf,
  type Undone,
  withMessageID,
  withoutMessages,
  withSaid,
  withStep,
} from "./session-task.ts"
import { createTaskSearch, type FoundTask, type TaskSearchDeps } from "./task-search.ts"
import { type TypedMessage, toUserWords, type UserWords } from "./user-words.ts"

export type { SessionTask, TaskRegistry, Undone } from "./session-task.ts"

/** An order of an agent is kept up to this length. */
const ORDER_CHARACTERS = 24_000

type TaskRegistryDeps = Omit<TaskSearchDeps, "hasTasks"> & {
  store: Pick<JsonStore<TaskRecord>, "read" | "write" | "remove" | "keys">
  shownMessages: ShownMessages
}

/** Deeper than any real delegation; a cycle in damaged data ends here. */
const MAX_ANCESTORS = 16

type Found = { readonly kind: "stored" } | FoundTask

const NOTHING_UNDONE: Undone = { undone: [], redone: [] }

export const createTaskRegistry = (deps: TaskRegistryDeps): TaskRegistry => {
  const { store, shownMessages, parents, lookUp, log, now } = deps
  const search = createTaskSearch({
    ...deps,
    hasTasks: async () => (await store.keys()).length > 0,
  })
  const { knownParent, parentOf, isKnown, findInHistory, firstText } = search
  const remembered = createLruMap<Entry>()

  const entryOf = (sessionID: string): Entry => {
    const entry = remembered.get(sessionID) ?? { hidden: new Set(), mayBeUndone: parents.get(sessionID) === undefined }
    remembered.set(sessionID, entry)
    return entry
  }

  const listeners: ((binding: SessionTask) => void)[] = []
  /** Works the task out again and tells those who follow it. */
  const update = (session: Entry): void => {
    const before = session.binding
    const task = taskOf(session.record, session.hidden)
    session.binding = task?.isOff ? undefined : task
    const isSame = (other: SessionTask | undefined): boolean =>
      before?.taskID === other?.taskID &&
      before?.role === other?.role &&
      before?.hasRoleHeading === other?.hasRoleHeading
    if (isSame(session.binding)) return
    const changed = session.binding ?? (task?.isOff ? task : before && { ...before, isOff: true })
    if (changed) for (const listener of listeners) listener(changed)
  }

  const loaded = async (sessionID: string): Promise<Entry> => {
    const session = entryOf(sessionID)
    session.reading ??= store.read(sessionID).then((stored) => {
      if (session.record || !stored) return
      session.record = stored
      update(session)
      log.debug("task known from an earlier run", { sessionID, taskID: session.binding?.taskID })
    })
    await session.reading
    return session
  }

  /** Changes a session's record, and stores it. */
  const keep = async (sessionID: string, change: (record: TaskRecord) => TaskRecord): Promise<void> => {
    const session = await loaded(sessionID)
    const record = change(session.record ?? emptyRecord(sessionID))
    if (record === session.record) return
    session.record = record
    update(session)
    session.storing = Promise.resolve(session.storing).then(() => store.write(sessionID, record))
    await session.storing
  }

  type Step = Pick<TaskStep, "origin" | "messageID" | "isMade">
  type Said = { readonly order?: string; readonly words?: readonly UserWords[] }
  /** With the words that are known with it: who finds the task finds them, too. */
  const bind = async (
    sessionID: string,
    task: ParsedTask,
    step: Step,
    { order, words = [] }: Said = {},
  ): Promise<void> => {
    const before = entryOf(sessionID).binding
    const { taskID, role, hasRoleHeading } = task
    if (before && before.taskID !== taskID)
      log.info("session changed its task", { sessionID, from: before.taskID, to: taskID })
    else log.info("session has a task", { sessionID, taskID, role, origin: step.origin })
    const boundAt = before?.taskID === taskID ? before.boundAt : now().toISOString()
    await keep(sessionID, (record) => {
      const bound = withStep(record, { ...step, taskID, role, hasRoleHeading, boundAt })
      return {
        ...(words.length === 0 ? bound : withSaid(bound, taskID, words)),
        ...(order === undefined ? {} : { order }),
      }
    })
  }

  const say = (sessionID: string, taskID: string, words: readonly UserWords[]): Promise<void> =>
    words.length === 0 ? Promise.resolve() : keep(sessionID, (record) => withSaid(record, taskID, words))

  const bindFromHistory = (
    sessionID: string,
    { task, messageID, words }: Extract<FoundTask, { kind: "task" }>,
  ): Promise<void> => bind(sessionID, task, { origin: "history", messageID }, { words })

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
      const ancestor = await loaded(at)
      const { binding } = ancestor
      if (binding && binding.origin !== "parent") return { binding, isCertain }
      const isSettled = ancestor.hasNoTask || ancestor.record !== undefined
      const found = isSettled ? undefined : await findInHistory(at)
      if (found?.kind === "task") {
        // A message that bound the session during the search is newer than the search's result.
        if (!ancestor.binding) await bindFromHistory(at, found)
        return ancestor.binding ? { binding: ancestor.binding, isCertain } : { isCertain }
      }
      if (found?.kind === "nothing") isCertain &&= found.isCertain
    }
    return { isCertain }
  }

  const searchTask = async (sessionID: string): Promise<Found> => {
    const session = await loaded(sessionID)
    const stored = session.binding
    if (stored && stored.origin !== "parent") return { kind: "stored" }
    // A task that the user took off, or whose message is undone.
    if (session.hasNoTask || (session.record && !stored)) return { kind: "nothing", isCertain: true }
    const { binding, isCertain } = await findInherited(sessionID)
    if (stored && (binding ? binding.taskID === stored.taskID : !isCertain)) return { kind: "stored" }
    if (binding) return { kind: "task", task: { ...binding, hasRoleHeading: false }, words: [], origin: "parent" }
    const found = await findInHistory(sessionID)
    return found.kind === "nothing" ? { kind: "nothing", isCertain: isCertain && found.isCertain } : found
  }

  const searchOnce = async (sessionID: string): Promise<SessionTask | undefined> => {
    const session = await loaded(sessionID)
    // After a restart, where this is no message's arrival.
    if (session.record && session.mayBeUndone) await followUndo(sessionID)
    const before = session.record
    const found = await searchTask(sessionID)
    // A session that was deleted meanwhile stays forgotten.
    if (session.record !== before || remembered.get(sessionID) !== session) return session.binding
    if (found.kind === "task" && found.origin === "parent") {
      const order = before?.order ?? session.order ?? (await firstText(sessionID))
      await bind(sessionID, found.task, { origin: "parent" }, { order: cutText(order, ORDER_CHARACTERS) })
    } else if (found.kind === "task") await bindFromHistory(sessionID, found)
    else if (found.kind === "nothing" && found.isCertain) {
      // The task of the parent has ended.
      if (session.binding) {
        session.record = undefined
        update(session)
      }
      session.hasNoTask ||= typeof knownParent(sessionID) !== "string"
    }
    return session.binding
  }

  const find = (sessionID: string): Promise<SessionTask | undefined> => {
    const session = entryOf(sessionID)
    // A child's is its parent's, which may have another one by now.
    const isSettled = session.binding ? session.binding.origin !== "parent" : session.hasNoTask
    if (isSettled) return Promise.resolve(session.looking).then(() => session.binding)
    session.searching ??= searchOnce(sessionID)
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
    const before = (await loaded(sessionID)).binding
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

  const look = async (sessionID: string, arriving: string | undefined): Promise<Undone> => {
    const isFinal = arriving !== undefined
    const session = await loaded(sessionID)
    const { record, hidden: before } = session
    // The arriving message is not stored yet.
    const ids = record ? messageIDsOf(record).filter((id) => id !== arriving) : []
    if (!record || ids.length === 0) {
      session.mayBeUndone &&= !isFinal
      return NOTHING_UNDONE
    }
    // An event may come after the message that follows the undo. It takes the newest messages away.
    const asked = session.mayBeUndone ? ids : ids.toSorted().slice(-1)
    const answer = await shownMessages(sessionID, asked)
    if (!answer || (!session.mayBeUndone && answer.size > 0)) return NOTHING_UNDONE
    const shown = session.mayBeUndone ? answer : await shownMessages(sessionID, ids)
    if (!shown) return NOTHING_UNDONE
    const hidden = new Set(ids.filter((id) => !shown.has(id)))
    const undone = stepsBetween(record, isFinal ? new Set() : before, hidden)
    const redone = stepsBetween(record, hidden, before)
    session.hidden = isFinal ? new Set() : hidden
    session.hasNoTask = false
    session.mayBeUndone = !isFinal && hidden.size > 0
    if (isFinal && hidden.size > 0) await keep(sessionID, (current) => withoutMessages(current, hidden))
    else update(session)
    if (undone.length + redone.length > 0)
      log.info("a task follows the user's undo", { sessionID, undone: undone.length, redone: redone.length })
    return { undone, redone }
  }

  const followUndo: TaskRegistry["followUndo"] = (sessionID, arriving) => {
    const session = entryOf(sessionID)
    // What OpenCode shows is asked for again at the next message, should this call fail.
    session.mayBeUndone ||= arriving === undefined
    // One after the other: of two answers the later one counts.
    const looked = Promise.resolve(session.looking).then(() => look(sessionID, arriving))
    const ended = looked.then(
      () => {},
      (error: unknown) => log.error("an undo was not followed", { sessionID, error: describeError(error) }),
    )
    session.looking = ended
    void ended.then(() => {
      if (session.looking === ended) delete session.looking
    })
    return looked.catch(() => NOTHING_UNDONE)
  }

  /** Handles the words of a user in a root session. @returns the ids that they mention and do not bind */
  const userSaid = async (
    message: TypedMessage,
    isCertain: boolean,
    make: () => Promise<unknown>,
    earlier: Promise<unknown> | undefined,
  ): Promise<readonly string[]> => {
    const { sessionID, messageID, text } = message
    const exact = parseTask(text)
    const natural = exact ? undefined : parseNaturalTask(text)
    const task = exact ?? (natural && (await confirm(sessionID, natural)))
    const words = isCertain ? toUserWords(message) : undefined
    if (!isCertain) log.warn("whose words a message holds is not known: they are not kept", { sessionID, messageID })
    const said = words ? [words] : []
    const session = await loaded(sessionID)
    const before = session.binding
    if (task) {
      const isSame =
        before?.taskID === task.taskID &&
        before.origin !== "parent" &&
        // Naming the task again without a heading does not change the role.
        (!task.hasRoleHeading || (before.hasRoleHeading && before.role === task.role))
      if (isSame) await say(sessionID, task.taskID, said)
      else await bind(sessionID, task, { origin: "message", messageID }, { words: said })
      return []
    }
    const mentioned = mentionedTasks(words?.text ?? "").filter((taskID) => taskID !== before?.taskID)
    if (!before) await make()
    const { binding } = session
    if (binding && binding.origin !== "parent") await say(sessionID, binding.taskID, said)
    // In the background: a search may read a long history, and the user's message must not wait for it, nor for one before it.
    else
      void Promise.resolve(earlier).then(async () => {
        const found = await find(sessionID)
        if (found) await say(sessionID, found.taskID, said)
      })
    return mentioned
  }

  return {
    userMessage: async (message, make = async () => {}) => {
      const { sessionID, messageID, text } = message
      const session = entryOf(sessionID)
      if (typeof knownParent(sessionID) === "string") session.order ??= cutText(text, ORDER_CHARACTERS)
      if (message.command && session.record?.steps.some((step) => step.messageID === undefined))
        await keep(sessionID, (record) => withMessageID(record, messageID))
      const { parentID, isCertain } = await parentOf(sessionID)
      if (parentID === null) {
        const said = userSaid(message, isCertain, make, session.saying)
        session.saying = Promise.allSettled([session.saying, said]).then(() => {})
        return said
      }
      if (parseTask(text) ?? parseNaturalTask(text))
        log.info("an agent's order to its subagent binds no task", { sessionID })
      void find(sessionID)
      return []
    },
    bindTo: (sessionID, taskID, messageID) =>
      bind(
        sessionID,
        { taskID, role: DEFAULT_ROLE, hasRoleHeading: false },
        { origin: "message", messageID, isMade: true },
      ),
    unbind: async (sessionID) => {
      const binding = await find(sessionID)
      if (!binding) return undefined
      const { taskID, role, hasRoleHeading, origin, boundAt } = binding
      await keep(sessionID, (record) =>
        withStep(record, { taskID, role, hasRoleHeading, origin, boundAt, isOff: true }),
      )
      entryOf(sessionID).hasNoTask = true
      log.info("session has no task any more", { sessionID, taskID })
      return binding
    },
    inherit: async (sessionID, taskID, words) => {
      if (remembered.get(sessionID)?.binding?.taskID !== taskID) return
      await say(
        sessionID,
        taskID,
        words.filter((one) => one.sessionID !== sessionID),
      )
    },
    followUndo,
    find,
    readStored: async (sessionID) => {
      const record = remembered.get(sessionID)?.record ?? (await store.read(sessionID))
      const ids = record ? messageIDsOf(record) : []
      const shown = ids.length === 0 ? undefined : await shownMessages(sessionID, ids)
      const task = taskOf(record, shown && new Set(ids.filter((id) => !shown.has(id))))
      return task?.isOff ? undefined : task
    },
    othersOn: async (taskID, sessionID) => {
      const keys = (await store.keys()).filter((key) => key !== sessionID)
      const records = await Promise.all(keys.map(async (key) => remembered.get(key)?.record ?? (await store.read(key))))
      // A subagent has its task from a session above it.
      const isOn = (other: SessionTask | undefined): boolean =>
        other?.taskID === taskID && !other.isOff && other.origin !== "parent"
      return keys.filter((_, at) => isOn(taskOf(records[at])))
    },
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
      search.forget(sessionID)
      await storing
      await store.remove(sessionID)
    },
  }
}
