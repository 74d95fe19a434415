import { randomBytes } from "node:crypto"
import { realpath } from "node:fs/promises"
import { isMainThread } from "node:worker_threads"
import type { Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { type ChildSessions, createChildSessions } from "../host/child-sessions.ts"
import { readGitState } from "../host/git.ts"
import type { Log } from "../host/log.ts"
import { splitLines } from "../host/messages.ts"
import { redactedLine } from "../host/secrets.ts"
import { type AgentAndModel, createSessions, findAgentAndModel, readModels, type Sessions } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createTui, detectUi } from "../host/tui.ts"
import { splitHandoffs } from "../ledger/description.ts"
import { type Role, unquoteArgument } from "../task/parse.ts"
import type { SessionTask } from "../task/registry.ts"
import { NO_WORDS, type TaskWords } from "../task/user-words.ts"
import { createFileAttachment } from "./attach-files.ts"
import { createDelivery, type Delivered, type Delivery } from "./delivery.ts"
import { type HandoffFacts, renderDraft, renderHandoffFacts } from "./draft.ts"
import { type LoadedFiles, loadFiles, renderLeftOut } from "./files.ts"
import { joinWords, readHistory } from "./history.ts"
import { readUncommitted } from "./own-files.ts"
import { createReadSession } from "./read-session.ts"
import { createHandoffRecords, type HandoffRecord, type HandoffRecords, handoffID } from "./records.ts"
import { type FileReference, parseReferences, renderReference, type WrittenReference } from "./references.ts"
import { chooseTarget, type Starting, whyNotStarted } from "./start.ts"
import { asTyped, isOwnCommand } from "./tools.ts"

type HandoffRequest = {
  readonly sessionID: string
  readonly prompt: string
  /** As the model wrote them: paths, some with an `@` or a line range. */
  readonly files: readonly string[]
  /** The text the user typed after /handoff; empty for none. */
  readonly goal: string
  /** The new session is to begin at once. */
  readonly start?: boolean | undefined
  readonly agent?: string | undefined
  /** provider/model */
  readonly model?: string | undefined
}

type HandoffSessionDeps = {
  gatherFacts: (sessionID: string) => Promise<HandoffFacts>
  findTask: (sessionID: string) => Promise<SessionTask | undefined>
  loadFiles: (references: readonly WrittenReference[]) => Promise<LoadedFiles>
  whyNotStarted: (session: Starting, requester: "user" | "model") => Promise<string | undefined>
  chooseTarget: (
    wanted: Pick<HandoffRequest, "agent" | "model">,
    current: AgentAndModel | undefined,
  ) => Promise<Partial<AgentAndModel> | undefined>
  deliver: Delivery
  /** Ends the session's claim on its task. */
  releaseClaim: (sessionID: string) => Promise<void>
  childSessions: Pick<ChildSessions, "parentAndPermissions">
  sessions: Pick<Sessions, "messages">
  records: HandoffRecords
  log: Log
  now: () => Date
  random: () => string
}

const GOAL_CHARACTERS = 200
const HEADINGS: Readonly<Record<Role, string>> = { worker: "# Worker", planner: "# Planner" }

const RANGE = /(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)$/

/** Parses a path as the model gave it: with or without the `@` and the line range of a reference. */
const toReference = (given: string): FileReference => {
  const path = given.trim()
  if (path.startsWith("@")) return parseReferences(path)[0] ?? { path }
  const range = RANGE.exec(path)?.[0] ?? ""
  const [parsed] = parseReferences(`${renderReference({ path: path.slice(0, path.length - range.length) })}${range}`)
  return parsed ?? { path }
}

/** The user's own order to have the new session begin at once: it stands before the goal. */
const START_FLAG = /^--start(?=\s|$)/

const firstLine = (text: string): string =>
  splitLines(text)
    .map((line) => line.replace(/^[\s#>*-]+/, "").trim())
    .find((line) => line !== "") ?? "go on"

/** @param isKept whether the record is on disk @throws Error for a draft that was not delivered, saying where it is kept */
const describeDelivery = (
  delivered: Delivered,
  record: HandoffRecord,
  { isKept, notStarted }: { isKept: boolean; notStarted: string | undefined },
): string => {
  const why = notStarted === undefined ? [] : [`Not started: ${notStarted}.`]
  switch (delivered.kind) {
    case "draft":
      return [
        "Handoff ready: the draft is in the prompt of a new session. The user reviews, edits and sends it.",
        ...why,
        "Do nothing more in this session.",
      ].join("\n")
    case "started":
      return [
        `Handoff started: the new session ${delivered.sessionID} (“${delivered.title}”) works on it now.`,
        "Tell the user its id. Do nothing more in this session.",
      ].join("\n")
    case "stored":
      return [
        `Handoff stored in the new session ${delivered.sessionID} (“${delivered.title}”). Nothing runs in it yet.`,
        ...why,
        `Continue it with: opencode run --session ${delivered.sessionID} "Go on."`,
        "or open it in the TUI's session list. Do nothing more in this session.",
        "",
        "The draft:",
        "",
        record.draft,
      ].join("\n")
    case "failed":
      throw new Error(
        [
          `The handoff was not delivered: ${delivered.reason}.`,
          ...(delivered.sessionID === undefined
            ? []
            : [`The session ${delivered.sessionID} was created and may be empty.`]),
          isKept
            ? `The draft is kept in .opencode/state/handoffs/ (${record.id}).`
            : "The draft could not be kept on disk either.",
          "Tell the user this; the draft can be pasted into a new session as it is.",
          ...(isKept ? [] : [`The draft:\n\n${record.draft}`]),
        ].join(" "),
      )
  }
}

/** The tool handoff_session: makes the draft, delivers it to a new session and keeps a record of it. */
export const createHandoffSession = (deps: HandoffSessionDeps) => {
  const { gatherFacts, findTask, loadFiles, whyNotStarted, chooseTarget, deliver, releaseClaim } = deps
  const { sessions, childSessions, records, log, now, random } = deps

  /** @throws Error for an empty prompt, an unknown agent or model, or a failed delivery; it says what to do next */
  return async ({ sessionID, prompt, files, goal: typed, start, agent, model }: HandoffRequest): Promise<string> => {
    if (prompt.trim() === "")
      throw new Error("`prompt` is empty: write what the next session has to know, and call again")
    const unquoted = unquoteArgument(typed).trim()
    const goal = unquoted.replace(START_FLAG, "").trim()
    const requester = START_FLAG.test(unquoted) ? "user" : start === true ? "model" : undefined
    const current = await findAgentAndModel(sessions, sessionID)
    const target = await chooseTarget({ agent, model }, current)
    const own = await childSessions.parentAndPermissions(sessionID)
    const [facts, binding, loaded, obstacle] = await Promise.all([
      gatherFacts(sessionID),
      findTask(sessionID),
      loadFiles(files.filter((file) => file.trim() !== "").map(toReference)),
      requester && own.kind === "ok"
        ? whyNotStarted({ sessionID, ...own.value, agent: current?.agent, targetAgent: target?.agent }, requester)
        : undefined,
    ])
    const draft = renderDraft({
      sessionID,
      files: loaded.references,
      goal,
      prompt,
      task: binding && { taskID: binding.taskID, heading: binding.hasRoleHeading ? HEADINGS[binding.role] : "" },
      facts: renderHandoffFacts(facts),
    })
    const at = now()
    const record: HandoffRecord = {
      version: 1,
      id: handoffID(at, random()),
      createdAt: at.toISOString(),
      from: sessionID,
      goal: redactedLine(goal || firstLine(prompt), GOAL_CHARACTERS),
      draft,
      files: loaded.references.map(({ path }) => path),
      leftOut: loaded.leftOut,
      taskID: binding?.taskID,
      said: facts.said ?? NO_WORDS,
      arrivals: [],
    }
    const isKept = await records.write(record)
    let notStarted = obstacle
    const begin = async (started: string): Promise<string | undefined> => {
      // Without it, nothing would count the sessions that start one another.
      if (!(await records.write({ ...record, started }))) notStarted = "the handoff could not be recorded"
      return notStarted
    }
    // The next session claims the task.
    if (binding && own.kind === "ok") await releaseClaim(sessionID)
    const isWanted = requester !== undefined && obstacle === undefined
    const delivered: Delivered =
      own.kind === "ok"
        ? await deliver({
            text: draft,
            goal: record.goal,
            target,
            permission: own.value.permission,
            begin: isWanted ? begin : undefined,
          })
        : { kind: "failed", reason: `this session's permission rules are not known: ${own.reason}` }
    const result = { delivered: delivered.kind, ...(notStarted === undefined ? {} : { notStarted }) }
    log.info("handoff made", { sessionID, handoff: record.id, ...result, files: record.files.length })
    const answer = describeDelivery(delivered, record, { isKept, notStarted })
    if (loaded.leftOut.length === 0) return answer
    return `${answer}\n\nLeft out of the files:\n${renderLeftOut(loaded.leftOut)}`
  }
}

/** The user waits for the tool, and a page of a long session may take a while. */
const CALL_DEADLINE_MS = 10_000
const HISTORY_DEADLINE_MS = 10_000
const LEDGER_DEADLINE_MS = 2_000

export type HandoffFeature = ReturnType<typeof createHandoffFeature>

/** Puts the feature together for one directory. */
export const createHandoffFeature = (
  { input: { client, directory }, projectRoot, root }: Instance,
  { state, run, tasks, prompts, ledger, outbox, notices }: Services,
  log: Log,
) => {
  const now = () => new Date()
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
  const startDeadline = () => {
    const over = performance.now() + HISTORY_DEADLINE_MS
    return () => performance.now() > over
  }
  const sessions = createSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const records = createHandoffRecords({ state, log })
  const tui = createTui(client)
  const load = async (references: readonly WrittenReference[]) => {
    const [realRoot, base, { handoff }] = await Promise.all([
      realpath(root),
      realpath(directory),
      settingsOrDefaults(projectRoot, log),
    ])
    const budget = { maxFiles: handoff.maxFiles, maxBytes: handoff.maxKilobytes * 1024 }
    return loadFiles({ root: realRoot, base }, references, { budget })
  }

  const attachment = createFileAttachment({ sessions, records, loadFiles: load, outbox, log, now })

  const isSameTask = async (sessionID: string, other: string): Promise<boolean> => {
    const [own, others] = await Promise.all([tasks.find(sessionID), tasks.find(other)])
    return own !== undefined && own.taskID === others?.taskID
  }

  const readTask = async (sessionID: string): Promise<HandoffFacts["task"]> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return undefined
    const { taskID } = binding
    const read = await ledger.readTask(taskID, { deadlineMs: LEDGER_DEADLINE_MS })
    if (read.kind !== "found") {
      log.warn("the draft lacks the task's specification", { sessionID, taskID, ledger: read.kind })
      return undefined
    }
    const { description, definitionOfDone } = read.task
    const { specification } = splitHandoffs(description.untrusted)
    return { taskID, specification, definitionOfDone: definitionOfDone?.untrusted }
  }

  /** The user's words up to the handoff that began this session. */
  const saidBefore = async (sessionID: string): Promise<TaskWords> => {
    const record = (await records.list()).findLast(
      ({ arrivals, started }) => started === sessionID || arrivals.some((arrival) => arrival.sessionID === sessionID),
    )
    return record?.said ?? NO_WORDS
  }

  const gatherFacts = async (sessionID: string): Promise<HandoffFacts> => {
    const [history, before, binding, task, todos, git, dirtyFiles] = await Promise.all([
      readHistory(sessions, sessionID, { root, shouldStop: startDeadline() }),
      saidBefore(sessionID),
      tasks.find(sessionID),
      readTask(sessionID),
      sessions.todos(sessionID),
      readGitState(root),
      readUncommitted({ run, prompts, root, projectRoot }),
    ])
    if (todos.kind === "failed") log.warn("todos unknown", { sessionID, reason: todos.reason })
    if (!git) log.debug("git state unknown", { sessionID })
    const { incomplete, activity, compactions, words } = history
    if (incomplete !== undefined)
      log.warn("the session's history was not read to its beginning", { sessionID, reason: incomplete })
    const said = joinWords(words, [before, binding?.said ?? NO_WORDS], isOwnCommand(prompts))
    const known = todos.kind === "ok" ? todos.value : []
    return { compactions, activity, todos: known, task, said, git, dirtyFiles }
  }

  const messagesAsTyped: Sessions["messages"] = async (...asked) => {
    const answer = await sessions.messages(...asked)
    if (answer.kind !== "ok") return answer
    const messages = answer.value.messages.map((message) => asTyped(message, prompts))
    return { ...answer, value: { ...answer.value, messages } }
  }

  const userInterface = detectUi({ argv: process.argv, isMainThread })
  const childSessions = createChildSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const starting = { sessions, childSessions, records: records.list, userInterface, startDeadline }
  const choosing = { childSessions, models: () => readModels(client) }

  return {
    handOver: createHandoffSession({
      gatherFacts,
      findTask: tasks.find,
      loadFiles: load,
      whyNotStarted: (session, requester) => whyNotStarted(starting, session, requester),
      chooseTarget: (wanted, current) => chooseTarget(choosing, wanted, current),
      deliver: createDelivery({ sessions, tui, notices, userInterface, log, pause }),
      releaseClaim: (sessionID) => ledger.releaseClaims([sessionID]),
      childSessions,
      sessions,
      records,
      log,
      now,
      random: () => randomBytes(3).toString("hex"),
    }),
    readSession: createReadSession({
      sessions: { info: sessions.info, messages: messagesAsTyped },
      records: records.list,
      isSameTask,
      run,
      log,
      startDeadline,
    }),
    ...attachment,
    /** Started with a draft. */
    cameFromHandoff: async (sessionID: string): Promise<boolean> => {
      const all = await records.list()
      return all.some(({ arrivals }) => arrivals.some((arrival) => arrival.sessionID === sessionID))
    },
  }
}
