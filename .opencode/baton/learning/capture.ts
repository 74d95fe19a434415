import { isDeepStrictEqual } from "node:util"
import { withDeadline } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { collectUserText } from "../host/messages.ts"
import { findSecret, holdsPrivateKey } from "../host/secrets.ts"
import { messagePages, type Sessions, type StoredMessage } from "../host/sessions.ts"
import type { ShownMessages } from "../host/shown-messages.ts"
import { foldText, onOneLine, shorten } from "../host/text.ts"
import type { Notices } from "../host/tui.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { activityOf, stepsOf } from "../task/activity.ts"
import { detect } from "./detect.ts"
import { type KnownLearning, type LearningIndex, lookUpBy, toEntry } from "./known.ts"
import {
  type LearningProject,
  MAX_LEARNINGS,
  type SessionRecord,
  type SessionRecords,
  type Statement,
  withObjection,
  withStatements,
  withUndo,
} from "./records.ts"
import { ABOUT_TASK } from "./signals.ts"
import { contradicts, learningKey } from "./words.ts"

/** Work done before and after a user's message. */
type Surroundings = {
  /** The agent's work before the message, in a few words; `""` when there is none to report. */
  readonly answered: string
  /** Files changed before and after it, up to the user's next message, newest first; relative to the worktree. */
  readonly files: readonly string[]
  /** The agent then changed files, and the user's next message does not object. */
  readonly confirmed: boolean
}

const SHOWN_FILES = 5
const SHOWN_CHARACTERS = 160
const COMMAND_CHARACTERS = 60

/** A project's first snapshots contain the bundle's own records while its .gitignore lacks them. */
const STATE_FOLDER = ".opencode/state/"

const isUsers = ({ info, parts }: StoredMessage): boolean =>
  info.role === "user" && collectUserText(parts).trim() !== ""

const oneLine = (text: string, length: number): string => shorten(onOneLine(text), length)

const changedFiles = (messages: readonly StoredMessage[], root: string): string[] =>
  activityOf(messages.flatMap(stepsOf), root)
    .files.filter(({ path, changes }) => changes > 0 && !path.startsWith(STATE_FOLDER))
    .map(({ path }) => path)
    .toReversed()

const commandsRun = (messages: readonly StoredMessage[]): string[] =>
  messages
    .flatMap(({ parts }) => parts)
    .flatMap((part) => {
      const command = part.type === "tool" && part.tool === "bash" ? part.state.input.command : undefined
      return typeof command === "string" && findSecret(command) === undefined
        ? [oneLine(command, COMMAND_CHARACTERS)]
        : []
    })

const describeWork = (messages: readonly StoredMessage[], root: string): string => {
  const files = changedFiles(messages, root).slice(0, SHOWN_FILES)
  const command = commandsRun(messages).at(-1)
  const done = [
    ...(files.length > 0 ? [`changed ${files.join(", ")}`] : []),
    ...(command === undefined ? [] : [`ran ${command}`]),
  ]
  if (done.length > 0) return oneLine(done.join("; "), SHOWN_CHARACTERS)
  const said = messages.flatMap(({ parts }) => parts).findLast((part) => part.type === "text")
  const text = said?.type === "text" ? oneLine(said.text, SHOWN_CHARACTERS) : ""
  return text === "" || findSecret(text) !== undefined ? "" : `said ${JSON.stringify(text)}`
}

/**
 * Collects the work around one message of a session. Pure.
 *
 * @param messages oldest first
 * @param root the worktree's folder
 * @returns undefined when the message is not among them
 */
export const workAround = (
  messages: readonly StoredMessage[],
  messageID: string,
  root: string,
): Surroundings | undefined => {
  const at = messages.findIndex(({ info }) => info.id === messageID)
  if (at < 0) return undefined
  const start = messages.slice(0, at).findLastIndex(isUsers) + 1
  const next = messages.findIndex((message, index) => index > at && isUsers(message))
  const before = messages.slice(start, at)
  const after = messages.slice(at + 1, next < 0 ? undefined : next)
  const changed = changedFiles(after, root)
  const reply = next < 0 ? undefined : messages[next]
  const objects = reply !== undefined && detect(collectUserText(reply.parts)).objects
  const files = [...new Set([...changed, ...changedFiles(before, root)])].filter((path) => !findSecret(path))
  return {
    answered: describeWork(before, root),
    files: files.slice(0, SHOWN_FILES),
    confirmed: changed.length > 0 && !objects,
  }
}

type CaptureDeps = {
  readonly records: SessionRecords
  readonly known: LearningIndex
  readonly outbox: Pick<Outbox, "add">
  readonly sessions: Pick<Sessions, "messages" | "info">
  readonly findShown: ShownMessages
  readonly project: LearningProject
  readonly findTask: (sessionID: string) => Promise<string | undefined>
  readonly notices: Notices
  readonly root: string
  readonly log: Log
}

/** A user's message before it is stored in the session. */
type Message = {
  readonly sessionID: string
  readonly messageID: string
  readonly at: Date
  readonly text: string
  /** It is not known yet whether the session is the user's or a child. */
  readonly isUnverified?: boolean
}

const staysWithTask = ({ sentence }: Statement): boolean => ABOUT_TASK.test(foldText(sentence))

const readsAs = (text: string, sentence: string): boolean =>
  detect(text).learnings.some((one) => one.sentence === sentence)

type Filter = (statement: Statement) => boolean
const isAny: Filter = () => true

/** Enough messages to hold a turn and the one before it. */
const NEWEST_MESSAGES = 100
const KNOWN_DEADLINE_MS = 2_500

const contradictedBy = (statement: Statement, known: readonly KnownLearning[]): KnownLearning[] =>
  known.filter(
    (one) =>
      one.status === "active" &&
      one.key !== statement.key &&
      Date.parse(one.at) < Date.parse(statement.at) &&
      contradicts(statement.sentence, one.sentence),
  )

export const createCapture = (deps: CaptureDeps) => {
  const { records, known, outbox, sessions, findShown, project, findTask, notices, root, log } = deps

  const readStatements = (
    { sessionID, messageID, at, text }: Message,
    detected: ReturnType<typeof detect>,
  ): Statement[] =>
    detected.learnings.flatMap(({ type, sentence }): Statement[] => {
      const rule = findSecret(sentence) ?? (holdsPrivateKey(text) ? "private-key" : undefined)
      if (rule !== undefined) log.warn("not learned: the sentence may hold a secret", { sessionID, messageID, rule })
      const statement = { key: learningKey(sentence), type, sentence, messageID, at: at.toISOString() }
      return rule === undefined ? [{ ...statement, state: "waiting", files: [], confirmed: false }] : []
    })

  const storeStatement = async (
    record: SessionRecord,
    statement: Statement,
    knownLearnings: readonly KnownLearning[],
  ): Promise<void> => {
    const { sessionID } = record
    const about = { sessionID, messageID: statement.messageID, key: statement.key, type: statement.type }
    if (knownLearnings.some(({ key, status }) => key === statement.key && status === "forgotten")) {
      log.info("not learned: it was forgotten before", about)
      return
    }
    await outbox.add(toEntry(record, statement, project, knownLearnings))
    const isSame = ({ key, at, status }: KnownLearning) =>
      key === statement.key && at !== statement.at && status === "active"
    const isNew = !knownLearnings.some(isSame)
    if (isNew && lookUpBy(statement.sentence, statement.type).reach === "moment") {
      log.info("learned; not recalled until the user says it again", about)
      return
    }
    log.info("learned", about)
    notices({ key: `learned ${statement.key}`, title: "learned", message: `“${statement.sentence}”` })
    for (const { key, id, folder } of contradictedBy(statement, knownLearnings)) {
      const reason = `${statement.at.slice(0, 10)}: ${statement.sentence}`
      const by = statement.messageID
      await outbox.add({ kind: "retire", project: project.name, folder, key, as: "superseded", reason, by })
      log.info("a learning is stale: a newer one contradicts it", { ...about, stale: id ?? key })
    }
  }

  return {
    /** Stores what the message teaches on disk, before the model is asked. Each message once. */
    capture: async (message: Message): Promise<void> => {
      const detected = detect(message.text)
      if (!detected.objects && detected.learnings.length === 0) return
      const { sessionID, messageID, isUnverified = false } = message
      const before = await records.read(sessionID)
      if (before.sayings.some((statement) => statement.messageID === messageID)) return
      const said = readStatements(message, detected)
      const isOfTask = said.some(staysWithTask) && (await findTask(sessionID)) !== undefined
      const sayings = isOfTask ? said.filter((statement) => !staysWithTask(statement)) : said
      if (isOfTask) log.info("not learned: it stays with the session's task", { sessionID, messageID })
      const opposed = detected.objects && before.sayings.some(({ confirmed }) => confirmed)
      if (sayings.length === 0 && !opposed) return
      let displaced: readonly Statement[] = []
      await records.update(sessionID, (record) => {
        const current = detected.objects ? withObjection(record) : record
        const { record: after, leftOut, ...made } = withStatements(current, sayings)
        displaced = made.displaced
        if (leftOut > 0) log.info("not learned: learning limit reached", { sessionID, leftOut, most: MAX_LEARNINGS })
        return isUnverified ? { ...after, isUnverified } : after
      })
      for (const { key, messageID: from } of displaced) {
        await outbox.add({ kind: "withdraw", project: project.name, folder: project.folder, key, messageID: from })
        log.info("a learning makes way for a more important one", { sessionID, messageID: from, key })
      }
      log.debug("a message teaches something", { sessionID, messageID, sentences: sayings.length })
    },

    /**
     * Drops statements that an earlier process left, unless OpenCode has their message and it says so.
     *
     * @returns false while OpenCode does not tell
     */
    confirm: async (sessionID: string, messageIDs: readonly string[]): Promise<boolean> => {
      const texts = new Map<string, string>()
      const shouldStop = (): boolean => messageIDs.every((id) => texts.has(id))
      for await (const page of messagePages(sessions, sessionID, { size: NEWEST_MESSAGES, shouldStop })) {
        if (page.kind === "failed" && !page.missing) {
          log.warn("what an earlier process left is not confirmed", { sessionID, reason: page.reason })
          return false
        }
        for (const message of page.kind === "ok" ? page.value.messages : [])
          if (isUsers(message)) texts.set(message.info.id, collectUserText(message.parts))
      }
      const isSaid = ({ messageID, sentence }: Statement): boolean => {
        const text = texts.get(messageID) ?? ""
        return onOneLine(text).includes(onOneLine(sentence)) || readsAs(text, sentence)
      }
      await records.update(sessionID, (record) => {
        const isAsked = ({ messageID, state }: Statement): boolean =>
          state === "waiting" && messageIDs.includes(messageID)
        const kept = record.sayings.filter((statement) => !isAsked(statement) || isSaid(statement))
        if (kept.length === record.sayings.length) return record
        const count = record.sayings.length - kept.length
        log.warn("not learned: OpenCode has no message of the user's that says so", { sessionID, count })
        return { ...record, sayings: kept }
      })
      return true
    },

    /**
     * Takes back what messages taught that OpenCode does not show any more, and puts back what those taught that it shows again.
     *
     * @param filter default: all statements
     * @returns false while OpenCode does not tell
     */
    followUndo: async (sessionID: string, filter: Filter = isAny): Promise<boolean> => {
      const sayings = (await records.read(sessionID)).sayings.filter(filter)
      if (sayings.length === 0) return true
      const shown = await findShown(sessionID, [...new Set(sayings.map(({ messageID }) => messageID))])
      if (!shown) {
        log.warn("whether a message was undone is unknown", { sessionID })
        return false
      }
      const undone = sayings.filter(({ state, messageID }) => state !== "undone" && !shown.has(messageID))
      const shownAgain = sayings.filter(({ state, messageID }) => state === "undone" && shown.has(messageID))
      // What was undone in a session that is gone stays undone.
      const redone = shownAgain.length > 0 && (await sessions.info(sessionID)).kind === "ok" ? shownAgain : []
      for (const { key, messageID } of undone)
        await outbox.add({ kind: "withdraw", project: project.name, folder: project.folder, key, messageID })
      if (undone.length + redone.length === 0) return true
      log.info("messages were undone or redone", { sessionID, undone: undone.length, redone: redone.length })
      const idsOf = (some: readonly Statement[]) => new Set(some.map(({ messageID }) => messageID))
      await records.update(sessionID, (record) => withUndo(record, { undone: idsOf(undone), redone: idsOf(redone) }))
      return true
    },

    /** Adds the work around the statements. Calls OpenCode. @param filter default: all waiting ones */
    addContext: async (sessionID: string, filter: Filter = isAny): Promise<void> => {
      const isWanted = (statement: Statement): boolean => statement.state === "waiting" && filter(statement)
      const { sayings } = await records.read(sessionID)
      if (!sayings.some(isWanted)) return
      const page = await sessions.messages(sessionID, NEWEST_MESSAGES)
      if (page.kind === "failed") {
        log.warn("what was done around a learning is unknown", { sessionID, reason: page.reason })
        return
      }
      const taskID = await findTask(sessionID)
      await records.update(sessionID, (record) => {
        // The statement may have been removed meanwhile.
        if (!record.sayings.some(isWanted)) return record
        const sayings = record.sayings.map((statement): Statement => {
          const around = isWanted(statement) && workAround(page.value.messages, statement.messageID, root)
          return around ? { ...statement, ...around, taskID } : statement
        })
        return { ...record, sayings }
      })
    },

    /** Puts the stored statements into the outbox. Reads only the ledger. @param filter default: all waiting ones */
    enqueue: async (sessionID: string, filter: Filter = isAny): Promise<void> => {
      const record = await records.read(sessionID)
      const waiting = record.sayings.filter((statement) => statement.state === "waiting" && filter(statement))
      if (waiting.length === 0) return
      const read = await withDeadline(known.read(), KNOWN_DEADLINE_MS)
      const knownLearnings = read.kind === "done" ? read.value : []
      if (read.kind !== "done") log.warn("no contradiction is looked for: the learnings are not known", { sessionID })
      for (const statement of waiting) await storeStatement(record, statement, knownLearnings)
      await records.update(sessionID, (current) => ({
        ...current,
        // One that changed meanwhile is sent again.
        sayings: current.sayings.map((statement) =>
          waiting.some((one) => isDeepStrictEqual(one, statement)) ? { ...statement, state: "stored" } : statement,
        ),
      }))
    },
  }
}
