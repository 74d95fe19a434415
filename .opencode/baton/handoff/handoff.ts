import { randomBytes } from "node:crypto"
import { realpath } from "node:fs/promises"
import { isMainThread } from "node:worker_threads"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import type { Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { readDirtyFiles, readGitState } from "../host/git.ts"
import type { Change } from "../host/guard.ts"
import { type Log, truncate } from "../host/log.ts"
import { type AgentAndModel, createSessions, findAgentAndModel, type Sessions } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createTui, detectUi, type Interface, type Tui } from "../host/tui.ts"
import { type Role, unquoteArgument } from "../task/parse.ts"
import type { SessionTask } from "../task/registry.ts"
import { type HandoffFacts, readHistory, renderDraft, renderHandoffFacts } from "./draft.ts"
import { type LoadedFiles, loadFiles, renderLeftOut } from "./files.ts"
import { createInjection } from "./injection.ts"
import { createReadSession, type ReadRequest, type ReadResult } from "./read-session.ts"
import { createHandoffRecords, type HandoffRecord, type HandoffRecords, handoffID } from "./records.ts"
import { type FileReference, parseReferences, renderReference } from "./references.ts"

/**
 * The TUI needs a moment to show the new session's prompt and does not report when it has: with 0 ms between the two calls 10 of
 * 13 drafts were lost, with 50 ms none of 30, with 150 ms none of 58, under load too.
 */
export const NEW_SESSION_SETTLE_MS = 150
const TOAST_MS = 4_000
const TITLE_CHARACTERS = 60

type Delivered =
  | { readonly kind: "draft" }
  /** The draft is the first message of a new session; no model was started. */
  | { readonly kind: "stored"; readonly sessionID: string; readonly title: string }
  | { readonly kind: "failed"; readonly reason: string; readonly sessionID?: string }

type Delivery = (draft: {
  readonly text: string
  readonly goal: string
  readonly target: AgentAndModel | undefined
}) => Promise<Delivered>

type DeliveryDeps = {
  sessions: Pick<Sessions, "create" | "store" | "messages">
  tui: Tui
  userInterface: Interface
  log: Log
  pause: (ms: number) => Promise<void>
}

const titleOf = (goal: string): string => {
  const line = goal.replaceAll(/\s+/g, " ").trim()
  return `Handoff: ${line.length > TITLE_CHARACTERS ? `${truncate(line, TITLE_CHARACTERS - 1).trimEnd()}…` : line}`
}

/** Delivers a draft to the user; docs/handoff.md says where on each interface. */
export const createDelivery = ({ sessions, tui, userInterface, log, pause }: DeliveryDeps): Delivery => {
  const deliverToPrompt = async (text: string): Promise<Delivered> => {
    const opened = await tui.openNewSession()
    if (opened.kind === "failed") return opened
    await pause(NEW_SESSION_SETTLE_MS)
    const appended = await tui.appendPrompt(text)
    if (appended.kind === "failed") return appended
    const message = "Review and edit the draft, then send"
    const shown = await tui.showToast({ title: "Handoff Ready", message, variant: "success", durationMs: TOAST_MS })
    if (shown.kind === "failed") log.debug("toast not shown", { reason: shown.reason })
    return { kind: "draft" }
  }

  /** Reads the stored message back: OpenCode may answer without an error and have stored nothing. */
  const deliverToSession: Delivery = async ({ text, goal, target }) => {
    const title = titleOf(goal)
    const created = await sessions.create(title)
    if (created.kind === "failed") return created
    const sessionID = created.value
    const stored = await sessions.store(sessionID, text, target)
    if (stored.kind === "failed") return { ...stored, sessionID }
    const read = await sessions.messages(sessionID, 1)
    if (read.kind === "failed") return { ...read, sessionID }
    const parts = read.value.messages[0]?.parts ?? []
    if (!parts.some((part) => part.type === "text" && part.text === text))
      return { kind: "failed", reason: "the new session does not hold the draft", sessionID }
    return { kind: "stored", sessionID, title }
  }

  return async (draft) => {
    if (userInterface === "tui") {
      const delivered = await deliverToPrompt(draft.text)
      if (delivered.kind !== "failed") return delivered
      log.warn("the TUI did not take the draft: it is stored in a session instead", { reason: delivered.reason })
    }
    const delivered = await deliverToSession(draft)
    if (delivered.kind === "stored" && userInterface === "server") {
      // OpenCode does not tell whether a TUI is attached.
      const message = `Stored as the session “${delivered.title}”`
      await tui.showToast({ title: "Handoff Ready", message, variant: "success", durationMs: TOAST_MS })
    }
    return delivered
  }
}

type HandoffRequest = {
  readonly sessionID: string
  readonly prompt: string
  /** As the model wrote them: paths, some with an `@` or a line range. */
  readonly files: readonly string[]
  /** The text the user typed after /handoff; empty for none. */
  readonly goal: string
}

type HandoffSessionDeps = {
  gatherFacts: (sessionID: string) => Promise<HandoffFacts>
  findTask: (sessionID: string) => Promise<SessionTask | undefined>
  loadFiles: (references: readonly FileReference[]) => Promise<LoadedFiles>
  deliver: Delivery
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

const firstLine = (text: string): string =>
  text
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/^[\s#>*-]+/, "").trim())
    .find((line) => line !== "") ?? "go on"

/** @param isKept whether the record is on disk @throws Error for a draft that was not delivered, saying where it is kept */
const describeDelivery = (delivered: Delivered, record: HandoffRecord, isKept: boolean): string => {
  switch (delivered.kind) {
    case "draft":
      return [
        "Handoff ready: the draft is in the prompt of a new session. The user reviews, edits and sends it.",
        "Do nothing more in this session.",
      ].join("\n")
    case "stored":
      return [
        `Handoff stored in the new session ${delivered.sessionID} (“${delivered.title}”). Nothing runs in it yet.`,
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
  const { gatherFacts, findTask, loadFiles, deliver, sessions, records, log, now, random } = deps

  /** @throws Error for an empty prompt or a failed delivery; it says what to do next */
  return async ({ sessionID, prompt, files, goal }: HandoffRequest): Promise<string> => {
    if (prompt.trim() === "")
      throw new Error("`prompt` is empty: write what the next session has to know, and call again")
    const [facts, binding, loaded, target] = await Promise.all([
      gatherFacts(sessionID),
      findTask(sessionID),
      loadFiles(files.filter((file) => file.trim() !== "").map(toReference)),
      findAgentAndModel(sessions, sessionID),
    ])
    const draft = renderDraft({
      sessionID,
      files: loaded.references,
      prompt,
      ...(binding ? { task: { taskID: binding.taskID, heading: HEADINGS[binding.role] } } : {}),
      facts: renderHandoffFacts(facts),
    })
    const at = now()
    const record: HandoffRecord = {
      version: 1,
      id: handoffID(at, random()),
      createdAt: at.toISOString(),
      from: sessionID,
      goal: truncate(unquoteArgument(goal).trim() || firstLine(prompt), GOAL_CHARACTERS),
      draft,
      files: loaded.references.map(({ path }) => path),
      leftOut: loaded.leftOut,
      taskID: binding?.taskID,
      arrivals: [],
    }
    const isKept = await records.write(record)
    const delivered = await deliver({ text: draft, goal: record.goal, target })
    log.info("handoff made", { sessionID, handoff: record.id, delivered: delivered.kind, files: record.files.length })
    const answer = describeDelivery(delivered, record, isKept)
    if (loaded.leftOut.length === 0) return answer
    return `${answer}\n\nLeft out of the files:\n${renderLeftOut(loaded.leftOut)}`
  }
}

/** The user waits for the tool, and a page of a long session may take a while. */
const CALL_DEADLINE_MS = 10_000
const HISTORY_DEADLINE_MS = 10_000

export type HandoffFeature = {
  handOver(request: HandoffRequest): Promise<string>
  readSession(reader: string, request: ReadRequest): Promise<ReadResult>
  userMessage(message: UserMessage, parts: Part[]): Promise<Change | undefined>
  isPending(sessionID: string): boolean
  forget(sessionID: string): void
  /** Tells whether the session was started with a draft. */
  isHandedOver(sessionID: string): Promise<boolean>
}

export const createHandoffFeature = (
  { input: { client, directory }, projectRoot, root }: Instance,
  { state, run, tasks, outbox }: Services,
  log: Log,
): HandoffFeature => {
  const now = () => new Date()
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
  const startDeadline = () => {
    const over = performance.now() + HISTORY_DEADLINE_MS
    return () => performance.now() > over
  }
  const sessions = createSessions(client, { deadlineMs: CALL_DEADLINE_MS })
  const records = createHandoffRecords({ state, log })
  const tui = createTui(client)
  const load = async (references: readonly FileReference[], isNamedByModel: boolean) => {
    const [realRoot, base, { handoff }] = await Promise.all([
      realpath(root),
      realpath(directory),
      settingsOrDefaults(projectRoot, log),
    ])
    const budget = { maxFiles: handoff.maxFiles, maxBytes: handoff.maxKilobytes * 1024 }
    return loadFiles({ root: realRoot, base }, references, { isNamedByModel, budget })
  }

  const loadReferences = (references: readonly FileReference[]) => load(references, false)
  const injection = createInjection({ sessions, records, loadFiles: loadReferences, outbox, log, now })

  const isSameTask = async (sessionID: string, other: string): Promise<boolean> => {
    const [own, others] = await Promise.all([tasks.find(sessionID), tasks.find(other)])
    return own !== undefined && own.taskID === others?.taskID
  }

  const gatherFacts = async (sessionID: string): Promise<HandoffFacts> => {
    const [history, todos, git, dirtyFiles] = await Promise.all([
      readHistory(sessions, sessionID, { root, isOver: startDeadline() }),
      sessions.todos(sessionID),
      readGitState(root),
      readDirtyFiles(run, root),
    ])
    if (todos.kind === "failed") log.warn("todos unknown", { sessionID, reason: todos.reason })
    if (!git) log.debug("git state unknown", { sessionID })
    if (history.incomplete !== undefined) {
      const reason = history.incomplete
      log.warn("the session's history was not read to its beginning", { sessionID, reason })
    }
    const { activity, compactions, firstRequest } = history
    return {
      compactions,
      activity,
      todos: todos.kind === "ok" ? todos.value : [],
      ...(firstRequest === undefined ? {} : { firstRequest }),
      ...(git ? { git } : {}),
      ...(dirtyFiles === undefined ? {} : { dirtyFiles }),
    }
  }

  return {
    handOver: createHandoffSession({
      gatherFacts,
      findTask: tasks.find,
      loadFiles: (references) => load(references, true),
      deliver: createDelivery({
        sessions,
        tui,
        userInterface: detectUi({ argv: process.argv, isMainThread }),
        log,
        pause,
      }),
      sessions,
      records,
      log,
      now,
      random: () => randomBytes(3).toString("hex"),
    }),
    readSession: createReadSession({ sessions, records: records.list, isSameTask, log, startDeadline }),
    userMessage: injection.userMessage,
    isPending: injection.isPending,
    forget: injection.forget,
    isHandedOver: async (sessionID) => {
      const all = await records.list()
      return all.some(({ arrivals }) => arrivals.some((arrival) => arrival.sessionID === sessionID))
    },
  }
}
