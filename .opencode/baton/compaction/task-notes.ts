import type { UserMessage } from "@opencode-ai/sdk"
import { createLruMap, withDeadline } from "../host/async.ts"
import { countCommitsSince, readGitState } from "../host/git.ts"
import { describeError } from "../host/log.ts"
import { DRAFT_BEGIN } from "../host/messages.ts"
import type { RunProcess } from "../host/process.ts"
import type { ModelName } from "../host/sessions.ts"
import type { Notices } from "../host/tui.ts"
import { type HandoffTitle, newestOfEach, parseHandoffTitle } from "../ledger/description.ts"
import type { Ledger, TaskSummary } from "../ledger/ledger.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { parseGitFact } from "../task/activity.ts"
import { namesTask, nearestNames } from "../task/parse.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"
import { NO_WORDS, type UserWords } from "../task/user-words.ts"
import { createBudget, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { type ContextDeps, type KnownTask, readKnownTask } from "./context.ts"
import { hasOwnHandoff, type SessionStates, type TaskNote } from "./session-state.ts"
import { claimNotice, type EarlierHandoff, renderTaskNote, type TaskNoteInput, taskNotice } from "./task-note.ts"
import { handoffBody, type OtherHandoff, withoutWords } from "./texts.ts"

type TaskNoteDeps = Pick<ContextDeps, "prompts" | "root" | "log" | "claimsMode" | "isIdleOn"> & {
  run: RunProcess
  ledger: Pick<Ledger, "readTask" | "listTasks">
  sessionStates: Pick<SessionStates, "load" | "update" | "save">
  outbox: Pick<Outbox, "pending">
  tasks: Pick<TaskRegistry, "inherit" | "readStored" | "owner" | "cached">
  modelContext: (model: ModelName) => Promise<number | undefined>
  /** Records the work of sessions whose process ended before it was recorded. */
  recover: () => Promise<void>
  /** Records what other sessions of this process left on the task. */
  recordOthers: (session: SessionTask) => Promise<void>
  /** The handoffs that this process has recorded between compactions. */
  recordedOn: (taskID: string) => readonly string[]
  isAtWork: (sessionID: string) => Promise<boolean>
  notices: Notices
  /** Lets deliveries wait for this work. */
  goesFirst: (work: Promise<unknown>) => void
}

/** A request waits this long, of the 3 s that its hook has. A later answer is in the next request. */
export const REQUEST_DEADLINE_MS = 2_500
/** Each call that may run beside a first request's has it, too: they are one call, with the deadline of the first. */
export const LEDGER_DEADLINE_MS = 5_000

type Material = {
  known: KnownTask
  nearest?: readonly TaskSummary[] | undefined
  earlier?: EarlierHandoff | undefined
  /** Words of the user's on the task in earlier sessions. */
  said?: readonly UserWords[]
}

/** The user's message that the text stands beside, and the `performance.now()` at which its request began to wait. */
type Anchor = {
  readonly info: UserMessage
  readonly text: string
  readonly hasShell: boolean
  readonly askedAt: number
}

type Reading = {
  readonly taskID: string
  readonly material: Promise<Material>
  readonly contextTokens: Promise<number>
  /** The `performance.now()` until which requests wait, from the first one's hook on, since OpenCode may come to it late. */
  waitUntil?: number
}

export type TaskNotes = ReturnType<typeof createTaskNotes>

/** Makes the text beside the message that names a session's task once, and keeps it with the session. */
export const createTaskNotes = (deps: TaskNoteDeps) => {
  const { ledger, sessionStates, outbox, tasks, modelContext, recover, recordOthers, recordedOn, isAtWork } = deps
  const { notices, run, root, log } = deps
  /** Reads in progress for the next request of a session. */
  const reading = createLruMap<Reading>()

  const findNearest = async (taskID: string): Promise<readonly TaskSummary[] | undefined> => {
    const all = await ledger.listTasks()
    if (!all) return undefined
    const ids = nearestNames(
      taskID,
      all.map(({ id }) => id),
    )
    return ids.flatMap((id) => all.find((task) => task.id === id) ?? [])
  }

  type Writer = { readonly section: string; readonly title: HandoffTitle; readonly task: SessionTask | undefined }
  const findWriter = async (section: string): Promise<Writer[]> => {
    const title = parseHandoffTitle(section)
    return title ? [{ section, title, task: await tasks.readStored(title.sessionID) }] : []
  }

  /**
   * Finds what earlier sessions left on the task.
   *
   * @param beside the handoffs that may not be in the ledger yet
   */
  const readEarlier = async (
    { sessionID, taskID }: SessionTask,
    { identity: { claim }, handoffs }: KnownTask,
    beside: readonly string[],
  ): Promise<Pick<Material, "earlier" | "said">> => {
    const writers = (await Promise.all(newestOfEach([...handoffs, ...beside]).map(findWriter))).flat()
    const owners = await Promise.all(
      writers.map(async ({ task }) => (task?.origin === "parent" ? tasks.owner(task) : task)),
    )
    const said = owners.flatMap((owner) => (owner?.taskID === taskID ? owner.said.words : []))
    const isSubagents = ({ task }: Writer): boolean => task?.origin === "parent"
    // Its originator's handoff tells more.
    const last = writers.find((writer) => !isSubagents(writer)) ?? writers[0]
    // A session's own handoff is in its conversation.
    if (!last || last.title.sessionID === sessionID) return { said }
    const kindOf = async (writer: Writer): Promise<OtherHandoff["kind"]> => {
      if (isSubagents(writer)) return "subagent"
      const { sessionID: id } = writer.title
      // A session of this project may have a claim and be idle.
      const isElsewhere = writer.task === undefined && claim?.session === id
      return isElsewhere || (await isAtWork(id)) ? "at work" : "earlier"
    }
    const others = writers.filter((writer) => writer !== last && writer.title.sessionID !== sessionID)
    const then = parseGitFact(last.section)
    const [now, commitsSince, kind, rest] = await Promise.all([
      readGitState(root),
      then && countCommitsSince(run, root, then.head),
      kindOf(last),
      Promise.all(others.map(async (writer) => ({ section: writer.section, kind: await kindOf(writer) }))),
    ])
    const isKnown = said.length > 0
    const earlier = {
      title: last.title,
      text: isKnown ? withoutWords(handoffBody(last.section)) : handoffBody(last.section),
      isAtWork: kind === "at work",
      others: rest,
      git: then && now && { then, now, commitsSince },
    }
    return { earlier, said }
  }

  const contextOf = async ({ sessionID }: SessionTask, model: ModelName): Promise<number> =>
    (await sessionStates.load(sessionID)).contextTokens ?? (await modelContext(model)) ?? UNKNOWN_CONTEXT_TOKENS

  const read = async (binding: SessionTask): Promise<Material> => {
    // Read before the ledger, so that a record delivered meanwhile is in one of the two.
    const waiting = (await outbox.pending(binding.taskID)) ?? []
    const inOutbox = waiting.flatMap((entry) => (entry.kind === "handoff" ? [entry.section] : []))
    // Side by side, since the request waits for both.
    const [known] = await Promise.all([
      readKnownTask(deps, binding, LEDGER_DEADLINE_MS),
      recover().then(() => recordOthers(binding)),
    ])
    const beside = [...inOutbox, ...recordedOn(binding.taskID)]
    const nearest = known.identity.ledger === "unknown" ? await findNearest(binding.taskID) : undefined
    if (binding.origin === "parent") return { known, nearest }
    return { known, nearest, ...(await readEarlier(binding, known, beside)) }
  }

  const begin = (binding: SessionTask, model: ModelName): Reading => {
    const { sessionID, taskID } = binding
    const contextTokens = contextOf(binding, model)
    const begun: Reading = { taskID, material: read(binding), contextTokens }
    deps.goesFirst(begun.material)
    begun.material.catch((error: unknown) =>
      log.warn("the task is not read for the request", { sessionID, taskID, error: describeError(error) }),
    )
    reading.set(sessionID, begun)
    return begun
  }

  /** The material, unless it is late. */
  const inTime = async (begun: Reading, askedAt: number): Promise<Material | undefined> => {
    begun.waitUntil ??= askedAt + REQUEST_DEADLINE_MS
    const outcome = await withDeadline(begun.material, Math.max(0, begun.waitUntil - performance.now()))
    return outcome.kind === "done" ? outcome.value : undefined
  }

  const lateMaterial = ({ taskID, role, order }: SessionTask): Material => ({
    known: {
      identity: { taskID, role, said: NO_WORDS, protocol: "", order, hasShell: true },
      handoffs: [],
      logs: [],
      failure: `not within ${REQUEST_DEADLINE_MS} ms`,
    },
  })

  const isOf = (note: TaskNote | undefined, { taskID, role }: SessionTask): note is TaskNote =>
    note?.taskID === taskID && note.role === role

  const showNotice = (input: TaskNoteInput, before: TaskNote | undefined): string | undefined => {
    const found = input.identity.order === undefined ? taskNotice(input) : undefined
    if (!found) return undefined
    const { key, ...notice } = found
    if (key !== before?.told) notices(notice)
    return key
  }

  return {
    /** Starts reading when a user's message arrives, beside OpenCode's own preparation of the request. */
    begin: async (binding: SessionTask, model: ModelName): Promise<void> => {
      const { opening: note } = await sessionStates.load(binding.sessionID)
      if (!(isOf(note, binding) && note.isComplete)) begin(binding, model)
    },
    /** Gives the text for a request: the same each time once the ledger has given the task. */
    find: async (binding: SessionTask, { info, text, hasShell, askedAt }: Anchor): Promise<TaskNote> => {
      const { sessionID, taskID, role } = binding
      const { opening: stored, count, contextTokens: used } = await sessionStates.load(sessionID)
      const before = isOf(stored, binding) && stored.hasShell === hasShell ? stored : undefined
      const begun = reading.get(sessionID)
      const isBegun = begun?.taskID === taskID
      if (before && (before.isComplete || !isBegun)) return before
      const started = isBegun ? begun : begin(binding, info.model)
      // A host may not know the model before the request.
      const [read, contextTokens] = await Promise.all([inTime(started, askedAt), used ?? started.contextTokens])
      if (read) reading.delete(sessionID)
      else if (before) return before
      const { known: task, nearest, earlier, said = [] } = read ?? lateMaterial(binding)
      await tasks.inherit(sessionID, taskID, said)
      const { words, leftOut } = tasks.cached(sessionID)?.said ?? binding.said
      const others = { words: words.filter((one) => one.sessionID !== sessionID), leftOut }
      const identity = { ...task.identity, said: others, hasShell }
      const isNamed = namesTask(text, taskID)
      const message = {
        text,
        isAbove: isNamed || info.id === binding.messageID,
        namesTask: isNamed,
        hasDraft: DRAFT_BEGIN.test(text) && (earlier?.title.at ?? "") <= new Date(info.time.created).toISOString(),
      }
      const input: TaskNoteInput = { ...task, identity, nearest, earlier, message, budget: createBudget(contextTokens) }
      const isComplete = typeof identity.ledger === "object"
      const note: TaskNote = {
        taskID,
        role,
        hasShell,
        text: renderTaskNote(input),
        isComplete,
        told: showNotice(input, stored?.taskID === taskID ? stored : undefined),
        compactions: count,
      }
      const lastHandoff = earlier && { summaryID: earlier.title.summaryID, text: earlier.text }
      await sessionStates.update(sessionID, (sessionState) => {
        const isOtherTasks = stored && stored.taskID !== taskID && !hasOwnHandoff(sessionState)
        // Kept for the first compaction, which must not lose it.
        const kept = isOtherTasks ? undefined : sessionState.lastHandoff
        return { ...sessionState, opening: note, lastHandoff: kept ?? lastHandoff }
      })
      void sessionStates.save(sessionID)
      log.info("the request begins with the task", { sessionID, taskID, characters: note.text.length, isComplete })
      return note
    },
    /** Another has the task: the user is told at once, the model with the next message. */
    claimed: async (sessionID: string, taskID: string, summary: string): Promise<void> => {
      const { key, ...notice } = claimNotice(taskID, summary)
      const { opening: note } = await sessionStates.load(sessionID)
      if (note?.taskID !== taskID || note.told === key) return
      notices(notice)
      const changed: TaskNote = { ...note, told: key, isComplete: false }
      await sessionStates.update(sessionID, (sessionState) => ({ ...sessionState, opening: changed }))
      void sessionStates.save(sessionID)
    },
    forget: (sessionID: string): void => void reading.delete(sessionID),
  }
}
