import { createKeyedQueue, createLruMap } from "../host/async.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import type { JsonStore } from "../host/state.ts"
import { EMPTY_ACTIVITY } from "../task/activity.ts"
import { ROLES } from "../task/parse.ts"

const REMEMBERED_SUMMARIES = 100

/** The note for the turns after a compaction: its request, and the session's task and role at that time. */
const resumeNoteSchema = (z: Zod) =>
  z.object({
    requestID: z.string(),
    taskID: z.string(),
    role: z.enum(ROLES),
    /** The agent may use the shell. */
    hasShell: z.boolean(),
    text: z.string(),
    /** False where the ledger gave no answer. */
    isComplete: z.boolean().optional(),
  })

export type ResumeNote = Parsed<typeof resumeNoteSchema>

export const sessionStateSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    /** Compactions recorded so far. */
    count: z.number().int().min(0),
    /** Ids of the recorded summary messages, those of the original of a fork included; newest last. */
    recorded: z.array(z.string()).readonly(),
    /** The newest summary that did not say less than the one before it, and the task it was made for. */
    lastHandoff: z.object({ summaryID: z.string(), text: z.string(), taskID: z.string().optional() }).optional(),
    /**
     * The same text until the next compaction or task, so that prompts stay cached.
     */
    note: resumeNoteSchema(z).optional(),
    /** The text beside the message that names the task, until the next compaction; the same, so that prompts stay cached. */
    opening: z
      .object({
        taskID: z.string(),
        role: z.enum(ROLES),
        hasShell: z.boolean(),
        text: z.string(),
        /** The ledger has given the task, so that it is not read again. */
        isComplete: z.boolean(),
        /** The key of the notice that the user has seen. */
        told: z.string().optional(),
        /** The session's compactions before it. */
        compactions: z.number().optional(),
      })
      .optional(),
    /** The task's specification as first read from prog, for a description that loses it. */
    specification: z.object({ taskID: z.string(), text: z.string() }).optional(),
    /** The model's context in tokens, as last seen. */
    contextTokens: z.number().positive().optional(),
    /** Time of the newest activity, ISO 8601. */
    activeAt: z.string().optional(),
    activity: z.object({
      files: z
        .array(z.object({ path: z.string(), reads: z.number(), changes: z.number(), byShell: z.boolean() }))
        .readonly(),
      failures: z.array(z.object({ command: z.string(), exitCode: z.number().nullable() })).readonly(),
      forgottenFiles: z.number(),
      changedSinceSnapshot: z.array(z.string()).readonly(),
    }),
  })

/** State of one session's compactions, kept across restarts. */
export type SessionState = Parsed<typeof sessionStateSchema>
export type TaskNote = NonNullable<SessionState["opening"]>

export const EMPTY_STATE: SessionState = { version: 1, count: 0, recorded: [], activity: EMPTY_ACTIVITY }

export type SessionStates = ReturnType<typeof createSessionStates>

/** The states of all sessions, cached in memory and saved to disk. */
export const createSessionStates = (store: Pick<JsonStore<SessionState>, "read" | "write" | "remove">) => {
  /** States with changes that are not on disk. */
  const unsaved = new Map<string, Promise<SessionState>>()
  const writing = createKeyedQueue()
  const recent = createLruMap<Promise<SessionState>>({ onEvict: (sessionID) => void save(sessionID) })
  const load = (sessionID: string): Promise<SessionState> => {
    const known = recent.get(sessionID) ?? unsaved.get(sessionID)
    if (known) return known
    const loading = store.read(sessionID).then((stored) => stored ?? EMPTY_STATE)
    recent.set(sessionID, loading)
    return loading
  }
  const write = async (sessionID: string, options?: { isDurable?: boolean }): Promise<boolean> => {
    const sessionState = unsaved.get(sessionID)
    if (!sessionState) return true
    const written = await store.write(sessionID, await sessionState, options)
    if (written && unsaved.get(sessionID) === sessionState) unsaved.delete(sessionID)
    return written
  }
  /** One write at a time: of two at once the older state might be the last to be renamed into place. */
  const save = (sessionID: string, options?: { isDurable?: boolean }): Promise<boolean> =>
    writing.add(sessionID, () => write(sessionID, options))
  return {
    load,
    /** Changes the state in memory and marks it for `save`. */
    update: (sessionID: string, change: (sessionState: SessionState) => SessionState): Promise<SessionState> => {
      const changed = load(sessionID).then(change)
      unsaved.set(sessionID, changed)
      recent.set(sessionID, changed)
      return changed
    },
    /**
     * Writes what changed.
     *
     * @param options `isDurable: false`: without a flush, and done before OpenCode 1.2.15 ends a run that has become idle
     * @returns whether the disk has the newest state
     */
    save,
    /** Writes all changes that the disk takes. */
    saveAll: async (): Promise<void> => {
      await Promise.all([...unsaved.keys()].map((sessionID) => save(sessionID)))
    },
    forget: async (sessionID: string): Promise<void> => {
      recent.delete(sessionID)
      unsaved.delete(sessionID)
      await writing.idle(sessionID)
      await store.remove(sessionID)
    },
  }
}

type RecordedCompaction = { summaryID: string; summary: string; saysLess: boolean }

/** Drops a note without the ledger's data, so that it is made again. */
export const withoutIncompleteNote = (sessionState: SessionState): SessionState =>
  sessionState.note?.isComplete === false ? { ...sessionState, note: undefined } : sessionState

/** Adds the note for the turns after this compaction. */
export const withResumeNote = (
  sessionState: SessionState,
  { summaryID, summary, saysLess }: RecordedCompaction,
  note: ResumeNote,
): SessionState => {
  const { lastHandoff } = sessionState
  const { taskID } = lastHandoff?.summaryID === summaryID ? lastHandoff : note
  return { ...sessionState, lastHandoff: saysLess ? lastHandoff : { summaryID, text: summary, taskID }, note }
}

/** Marks a summary as one that needs no record. */
export const withKnown = (
  sessionState: SessionState,
  { summaryID }: Pick<RecordedCompaction, "summaryID">,
): SessionState => ({
  ...sessionState,
  recorded: [...sessionState.recorded.filter((known) => known !== summaryID), summaryID].slice(-REMEMBERED_SUMMARIES),
})

/** The state of a session whose task is undone: what was made for it no longer counts. */
export const withoutTask = ({ count, recorded, contextTokens }: SessionState): SessionState => ({
  ...EMPTY_STATE,
  count,
  recorded,
  contextTokens,
})

/** True where the newest handoff is of one of the session's own compactions. */
export const hasOwnHandoff = ({ lastHandoff, recorded }: SessionState): boolean =>
  lastHandoff !== undefined && recorded.includes(lastHandoff.summaryID)

/** The text of the newest handoff, unless it is known to be another task's. */
export const handoffText = ({ lastHandoff }: SessionState, taskID: string): string | undefined =>
  (lastHandoff?.taskID ?? taskID) === taskID ? lastHandoff?.text : undefined

/** The state for a conversation that shows no compaction. */
export const withoutOwnHandoff = (sessionState: SessionState): SessionState =>
  hasOwnHandoff(sessionState) ? { ...sessionState, lastHandoff: undefined } : sessionState

/** Marks the compaction with this summary as recorded. */
export const withRecorded = (
  sessionState: SessionState,
  compaction: RecordedCompaction,
  note: ResumeNote,
): SessionState => ({
  ...withResumeNote(withKnown(sessionState, compaction), compaction, note),
  count: sessionState.count + 1,
})

/** The specification of this task as first read in this session. */
export const originalSpecification = (
  { specification }: SessionState,
  taskID: string,
  current: string | undefined,
): SessionState["specification"] => {
  if (specification?.taskID === taskID) return specification
  return current === undefined ? undefined : { taskID, text: current }
}
