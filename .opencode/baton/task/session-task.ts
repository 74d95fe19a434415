import type { Log } from "../host/log.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { createJsonStore, type JsonStore, type StateFolder } from "../host/state.ts"
import { ROLES } from "./parse.ts"
import {
  NO_WORDS,
  type TaskWords,
  type TypedMessage,
  type UserWords,
  userWordsSchema,
  withWords,
} from "./user-words.ts"

const stepSchema = (z: Zod) =>
  z.object({
    /** The user's message behind it; undefined for a subagent's task, and until the message of a command has come. */
    messageID: z.string().optional(),
    taskID: z.string(),
    role: z.enum(ROLES),
    /** True if the user's text states the role and so asks for its protocol. */
    hasRoleHeading: z.boolean(),
    origin: z.enum(["message", "parent", "history"]),
    /** Since when the session has this task: ISO 8601, UTC. */
    boundAt: z.string(),
    /** Baton made the task of this message. */
    isMade: z.boolean().optional(),
    /** The user took the task off the session. */
    isOff: z.boolean().optional(),
  })

/** One step by which a session came to its task, or lost it. It stands as long as OpenCode shows its message. */
export type TaskStep = Parsed<typeof stepSchema>

export const taskRecordSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    /** Oldest first; the last one that stands counts. */
    steps: z.array(stepSchema(z)).readonly(),
    /** Words of the user's on each task, by its id; of this session, and of earlier ones on the same task. */
    words: z.record(
      z.string(),
      z.object({ words: z.array(userWordsSchema(z)).readonly(), leftOut: z.number().int().min(0) }),
    ),
    /** A subagent's first message: the order of the agent that started it. */
    order: z.string().optional(),
  })

/** All that is stored of a session's task. */
export type TaskRecord = Parsed<typeof taskRecordSchema>

export const TASKS_FOLDER = "tasks"

/** The tasks of a project's sessions, under `.opencode/state/tasks`. */
export const createTaskStore = (deps: { state: StateFolder; log: Log }): JsonStore<TaskRecord> =>
  createJsonStore({ ...deps, folder: TASKS_FOLDER, schema: taskRecordSchema })

/** A session's task, which is kept when its context is lost. */
export type SessionTask = Omit<TaskStep, "isMade"> & {
  readonly sessionID: string
  /** The user's words on the task. */
  readonly said: TaskWords
  readonly order?: string | undefined
}

const MAX_STEPS = 20

export const emptyRecord = (sessionID: string): TaskRecord => ({ version: 1, sessionID, steps: [], words: {} })

/** @param hidden ids of messages that the user undid */
export type Hidden = ReadonlySet<string>

const stands = ({ messageID }: TaskStep, hidden: Hidden): boolean => messageID === undefined || !hidden.has(messageID)

/** The task that a record gives a session now, or the one that was taken off it (`isOff`). */
export const taskOf = (record: TaskRecord | undefined, hidden: Hidden = new Set()): SessionTask | undefined => {
  const step = record?.steps.findLast((one) => stands(one, hidden))
  if (!record || !step) return undefined
  const { isMade: _, ...task } = step
  const { words, leftOut } = record.words[step.taskID] ?? NO_WORDS
  const isShown = ({ sessionID, messageID }: UserWords): boolean =>
    sessionID !== record.sessionID || !hidden.has(messageID)
  return { ...task, sessionID: record.sessionID, said: { words: words.filter(isShown), leftOut }, order: record.order }
}

export const withStep = (record: TaskRecord, step: TaskStep): TaskRecord => ({
  ...record,
  steps: [...record.steps, step].slice(-MAX_STEPS),
})

export const withSaid = (record: TaskRecord, taskID: string, words: readonly UserWords[]): TaskRecord => ({
  ...record,
  words: { ...record.words, [taskID]: withWords(record.words[taskID] ?? NO_WORDS, words) },
})

/** Gives the steps of a command its message, which comes after it. */
export const withMessageID = (record: TaskRecord, messageID: string): TaskRecord => ({
  ...record,
  steps: record.steps.map((step) =>
    step.messageID === undefined && step.origin !== "parent" ? { ...step, messageID } : step,
  ),
})

/** The session's own messages that something was made of. */
export const messageIDsOf = ({ sessionID, steps, words }: TaskRecord): string[] => {
  const said = Object.values(words).flatMap((task) => task.words.filter((one) => one.sessionID === sessionID))
  return [...new Set([...steps, ...said].flatMap(({ messageID }) => messageID ?? []))]
}

/** The steps whose message is hidden now and was not before. */
export const stepsBetween = ({ steps }: TaskRecord, before: Hidden, now: Hidden): TaskStep[] =>
  steps.filter((step) => stands(step, before) && !stands(step, now))

/** Drops for good what was made of messages that OpenCode has deleted. */
export const withoutMessages = (record: TaskRecord, gone: Hidden): TaskRecord => ({
  ...record,
  steps: record.steps.filter((step) => stands(step, gone)),
  words: Object.fromEntries(
    Object.entries(record.words).map(([taskID, { words, leftOut }]) => [
      taskID,
      {
        words: words.filter(({ sessionID, messageID }) => sessionID !== record.sessionID || !gone.has(messageID)),
        leftOut,
      },
    ]),
  ),
})

/** The steps that an undo took away, or a redo brought back. */
export type Undone = { readonly undone: readonly TaskStep[]; readonly redone: readonly TaskStep[] }

/** Cached data of one session; all of it can be found again. */
export type Entry = {
  /** Undefined before it was read, and where there is none. */
  record?: TaskRecord | undefined
  hidden: Hidden
  /** The task by record and undo; undefined where the user took it off, too. */
  binding?: SessionTask | undefined
  /** Everything was read without finding a task. Not set for a child. */
  hasNoTask?: boolean
  /** The first message of a child session that was created in this process. */
  order?: string
  /** The user may have undone something that this process does not know. */
  mayBeUndone: boolean
  reading?: Promise<void>
  /** The running question what OpenCode shows. */
  looking?: Promise<void>
  searching?: Promise<SessionTask | undefined>
  /** The user's messages whose task is looked up. */
  saying?: Promise<unknown>
  /** The running write. Writes wait for each other, since of two at once the older record might be renamed into place last. */
  storing?: Promise<unknown>
}

/** Keeps the task of each session, and what the user said on it. No call throws. */
export type TaskRegistry = {
  /**
   * Handles a message of a user or, in a subagent's session, of an agent, after `followUndo`. Resolves when task and words are stored. A natural
   * spelling is looked up in the ledger first.
   *
   * @param make makes a task of a user's message that names none, in a session without one
   * @returns the ids of prog's that a user's message mentions without naming a task
   */
  userMessage(message: TypedMessage, make?: () => Promise<unknown>): Promise<readonly string[]>
  /** Gives a session a task that Baton made of its message. Resolves when it is stored. */
  bindTo(sessionID: string, taskID: string, messageID: string): Promise<void>
  /** Takes its task off a session until a message names one. @returns the task that it had */
  unbind(sessionID: string): Promise<SessionTask | undefined>
  /** Adds what the user said on the task in earlier sessions. */
  inherit(sessionID: string, taskID: string, words: readonly UserWords[]): Promise<void>
  /**
   * Follows the user's undo and redo: asks OpenCode which messages it shows.
   *
   * @param arriving the id of a message that comes now: OpenCode has deleted what was undone, and it does not come back
   */
  followUndo(sessionID: string, arriving?: string): Promise<Undone>
  /** Finds the task in memory, on disk, at the parent or in the history, in this order. */
  find(sessionID: string): Promise<SessionTask | undefined>
  /** The task that is stored for a session, with the words that OpenCode still shows; for sessions of others, too. */
  readStored(sessionID: string): Promise<SessionTask | undefined>
  /** Other sessions of this project that have the task. */
  othersOn(taskID: string, sessionID: string): Promise<readonly string[]>
  /** Finds the session that a child works for, through all its ancestors that have the task from their parent. */
  owner(binding: SessionTask): Promise<SessionTask | undefined>
  /** Calls the listener with each session's task when it becomes known, changes or ends (`isOff`), and with those known already. */
  onTask(listener: (binding: SessionTask) => void): void
  /** The task, if it is in memory. */
  cached(sessionID: string): SessionTask | undefined
  forget(sessionID: string): Promise<void>
}
