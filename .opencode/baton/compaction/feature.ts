import { isMainThread } from "node:worker_threads"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import type { Core, Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { createKeyedQueue, lazy } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import { collectUserText } from "../host/messages.ts"
import { isRecord } from "../host/schema.ts"
import { createModelContext, readAgents, type StoredMessage } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createJsonStore } from "../host/state.ts"
import { cutText, onOneLine } from "../host/text.ts"
import { detectUi } from "../host/tui.ts"
import { runGitSync } from "../host/untrusted.ts"
import type { RunEnd } from "../ledger/ledger.ts"
import type { SessionTask } from "../task/registry.ts"
import type { TypedMessage } from "../task/user-words.ts"
import { createIsAtWork, createProgress } from "./progress.ts"
import { createRunFacts, judgeEnd } from "./run-facts.ts"
import { createSessionStates, sessionStateSchema, withoutTask } from "./session-state.ts"
import { createSessionTracker } from "./session-tracker.ts"
import { createTaskNotes, LEDGER_DEADLINE_MS } from "./task-notes.ts"

/** Of an agent's rules for all uses of a tool, the last one counts in OpenCode. */
const maySeeShell = (agents: readonly unknown[], name: string): boolean => {
  const agent = agents.find((each) => isRecord(each) && each.name === name)
  const rules = isRecord(agent) && Array.isArray(agent.permission) ? agent.permission.filter(isRecord) : []
  const last = rules.findLast(
    ({ permission, pattern }) => pattern === "*" && (permission === "*" || permission === "bash"),
  )
  return last?.action !== "deny"
}

const TITLE_CHARACTERS = 80

export type CompactionFeature = ReturnType<typeof createCompactionFeature>

/** Puts the feature together for one directory. */
export const createCompactionFeature = (
  { input: { client }, root, projectRoot, parents }: Instance & Pick<Core, "parents">,
  services: Services,
  log: Log,
) => {
  const { state, tasks } = services
  const settings = () => settingsOrDefaults(projectRoot, log)
  const claimsMode = async () => (await settings()).claims
  const isAtWork = createIsAtWork({ state, log })
  const rootOf = (sessionID: string): string => {
    const parentID = parents.get(sessionID)
    return typeof parentID === "string" ? rootOf(parentID) : sessionID
  }
  const facts = createRunFacts(rootOf)
  const isUnattended = detectUi({ argv: process.argv, isMainThread }) === "run"
  const endsOf = (bindings: readonly Pick<SessionTask, "sessionID" | "taskID">[]): RunEnd[] => {
    const branch = runGitSync(["branch", "--show-current"], root)?.trim() ?? ""
    return bindings.map(({ sessionID: session, taskID: task }) => {
      const seen = facts.of(session)
      facts.begin(session)
      return { session, task, ...judgeEnd(seen), tools: seen.tools, tokens: seen.tokens, cost: seen.cost, branch }
    })
  }
  const shared = {
    ...services,
    sessionStates: createSessionStates(
      createJsonStore({ state, folder: "compactions", schema: sessionStateSchema, log }),
    ),
    claimsMode,
    isAtWork,
    /** True for a session of this project that has the task and is not at work. @param sessionID "" for a claim by hand */
    isIdleOn: async (taskID: string, sessionID: string): Promise<boolean> =>
      sessionID !== "" && (await tasks.readStored(sessionID))?.taskID === taskID && !(await isAtWork(sessionID)),
    facts,
    endsOf,
    isUnattended,
    root,
    log,
    now: () => new Date(),
  }
  const queue = createKeyedQueue()
  const progress = createProgress({ ...shared, queue })
  const taskNotes = createTaskNotes({
    ...shared,
    modelContext: createModelContext(client),
    recover: progress.recover,
    recordOthers: progress.recordOthers,
    recordedOn: progress.recordedOn,
  })
  const { userArrived, prepareNote, ...turns } = createSessionTracker({
    ...shared,
    taskNotes,
    progress,
    queue,
    loadCompaction: async (memos) => {
      const { createCompaction } = await import("./compaction.ts")
      const summaryWriter = async () => (await settings()).compaction
      return createCompaction({ ...shared, memos, summaryWriter })
    },
    loadClaims: async () => {
      const { createTaskClaims } = await import("./claims.ts")
      return createTaskClaims({ ...shared, mode: claimsMode, tell: taskNotes.claimed })
    },
  })
  const agents = lazy(async () => {
    const answer = await readAgents(client)
    if (answer.kind === "ok") return answer.value
    throw new Error(answer.reason)
  })
  /** An unknown agent counts as one that may. */
  const mayUseShell = async ({ agent, tools }: UserMessage): Promise<boolean> => {
    if (tools?.bash === false) return false
    try {
      return maySeeShell(await agents(), agent)
    } catch (error) {
      log.warn("whether an agent may use bash is not known", { agent, error: describeError(error) })
      return true
    }
  }

  const taskCommand = lazy(async () => {
    const { createTaskCommand } = await import("./task-command.ts")
    return createTaskCommand({ ...shared, settings, releaseClaim: turns.releaseClaim, projectRoot })
  })
  /** Tells the user once how to take up a task that a message mentions, if the ledger knows it. */
  const tellMentioned = async (sessionID: string, taskID: string): Promise<void> => {
    if ((await shared.ledger.readTask(taskID)).kind !== "found") return
    const key = `${sessionID} mentions ${taskID}`
    shared.notices({ key, title: `${taskID} is mentioned`, message: `/task ${taskID} takes it up` })
  }
  return {
    ...turns,
    prepareNote: (messages: StoredMessage[]) => prepareNote(messages, mayUseShell),
    /** `answer`: what the user is told, if no work begins. */
    runTaskCommand: async (sessionID: string, given: string) => {
      const command = await taskCommand()
      const text = await command.expand(sessionID, given)
      return { text, answer: command.answerIn(text) }
    },
    /** Makes a task of a session's first message, where the user wants that. */
    beginTask: async ({ sessionID, id }: UserMessage, parts: readonly Part[]) =>
      (await taskCommand()).begin(sessionID, { messageID: id, text: collectUserText(parts) }),
    showTask: async (sessionID: string) => (await taskCommand()).show(sessionID),
    logToTask: async (sessionID: string, message: string) => (await taskCommand()).log(sessionID, message),
    /** True where the newest message's agent works on a task and may not use bash. */
    needsTaskTools: async (messages: readonly StoredMessage[]): Promise<boolean> => {
      const user = messages.findLast(({ info }) => info.role === "user")?.info
      const binding = user && tasks.cached(user.sessionID)
      if (user?.role !== "user" || !binding || binding.origin === "parent") return false
      return !(await mayUseShell(user))
    },
    /** The user undid or redid something: what was made of these messages follows. */
    undoChanged: async (sessionID: string): Promise<void> => {
      const before = tasks.cached(sessionID)
      const change = await tasks.followUndo(sessionID)
      const after = tasks.cached(sessionID)
      if ([...change.undone, ...change.redone].some(({ isMade }) => isMade))
        await (await taskCommand()).followUndo(sessionID, change)
      if (before && after?.taskID !== before.taskID) await turns.releaseClaim(sessionID)
      // After a restart the undone task was not in memory.
      const tasksOf = [before, after, ...change.undone, ...change.redone].flatMap((task) => task?.taskID ?? [])
      for (const taskID of new Set(tasksOf)) await progress.undone({ sessionID, taskID })
    },
    /**
     * @param command the command whose template the message is
     * @param mayBegin it is a session's first: where it names no task, one is made of it if the user wants that
     */
    userMessage: async (
      message: UserMessage,
      parts: readonly Part[],
      { command, mayBegin }: { command: TypedMessage["command"]; mayBegin: boolean },
    ): Promise<undefined> => {
      const { sessionID, id: messageID, model } = message
      const text = collectUserText(parts)
      const { undone } = await tasks.followUndo(sessionID, messageID)
      const made = undone.findLast(({ isMade }) => isMade)
      if (undone.length > 0 && !tasks.cached(sessionID)) await shared.sessionStates.update(sessionID, withoutTask)
      if (made && !tasks.cached(sessionID))
        await (await taskCommand()).begin(sessionID, { messageID, text }, made.taskID)
      const make = async () => mayBegin && (await taskCommand()).begin(sessionID, { messageID, text })
      // On disk before the request is sent.
      const said = { sessionID, messageID, createdAt: message.time.created, text, command }
      const mentioned = await tasks.userMessage(said, make)
      userArrived(sessionID, model)
      for (const taskID of mentioned) void tellMentioned(sessionID, taskID)
      // Read beside the task, for the request that follows.
      if (tasks.cached(sessionID)) agents().catch(() => {})
    },
    /** Names the task: its id, and its title in the ledger. */
    sessionTitle: async (sessionID: string): Promise<string | undefined> => {
      const binding = await tasks.find(sessionID)
      if (!binding || binding.origin === "parent") return undefined
      const { taskID } = binding
      const read = await services.ledger.readTask(taskID, { deadlineMs: LEDGER_DEADLINE_MS })
      return read.kind === "found"
        ? cutText(`${taskID} · ${onOneLine(read.task.title.untrusted)}`, TITLE_CHARACTERS)
        : undefined
    },
    /** Records open work, releases claims, and saves the sessions' states. */
    stop: async (): Promise<void> => {
      await turns.stop()
      await shared.sessionStates.saveAll()
    },
  }
}
