import type { Part, UserMessage } from "@opencode-ai/sdk"
import type { Core, Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { createKeyedQueue, createLruMap, withDeadline } from "../host/async.ts"
import { findProjectFolder, projectNameOf } from "../host/git.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import { collectUserText, disableTools } from "../host/messages.ts"
import { isAlive } from "../host/process-identity.ts"
import type { SessionInfo, StoredMessage } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"
import { createShownMessages } from "../host/shown-messages.ts"
import { readSigner } from "../host/state-mark.ts"
import { cutText, onOneLine } from "../host/text.ts"
import { splitHandoffs } from "../ledger/description.ts"
import type { RetireEntry } from "../ledger/learnings.ts"
import { asksForLearnings, LEARNING_TOOLS } from "./asks.ts"
import { createCapture } from "./capture.ts"
import { searchLearnings } from "./fitting.ts"
import { createLearningIndex, type KnownLearning } from "./known.ts"
import { createRecall, type Material, renderLearning } from "./recall.ts"
import { createSessionRecords, type LearningProject, type SessionRecord, type Statement } from "./records.ts"

/** @param named the user's own name for the project, from the settings */
export const findLearningProject = async (projectRoot: string, named: string | undefined): Promise<LearningProject> => {
  const folder = await findProjectFolder(projectRoot)
  return { name: named ?? projectNameOf(folder), folder, onlyFolder: named === undefined ? folder : undefined }
}

const REASON_CHARACTERS = 200

const findByID = (known: readonly KnownLearning[], id: string): KnownLearning | undefined =>
  known.find((learning) => learning.id === id.trim() || learning.key === id.trim())

/** Makes the outbox entry that ends a learning. @param by the one who ended it, in a few words */
export const retireEntry = (
  { key, folder }: KnownLearning,
  { name }: LearningProject,
  { reason, by, at }: { reason: string; by: string; at: Date },
): RetireEntry => ({
  kind: "retire",
  project: name,
  folder,
  key,
  as: "forgotten",
  reason: `${at.toISOString().slice(0, 10)} by ${by}: ${cutText(onOneLine(reason), REASON_CHARACTERS)}`,
})

const CAPTURE_DELAY_MS = 2_000
/** `opencode run` waits for dispose on newer versions; it may end at most 1 s later than without. */
const STORE_DEADLINE_MS = 350
/** A running process stores its own records sooner. An older record is from an earlier process with the same pid. */
const OWNED_MS = 10 * 60_000
const LISTED = 30
/** As long as the task's own note waits for it, which shares the read. */
const TASK_DEADLINE_MS = 5_000

const isOwnedByLiveProcess = ({ pid, sayings }: SessionRecord, now: number): boolean =>
  pid !== process.pid && isAlive(pid) && now - Date.parse(sayings.at(-1)?.at ?? "") < OWNED_MS

const messagesOf = ({ sayings }: SessionRecord): string[] => sayings.map(({ messageID }) => messageID)

export type LearningFeature = NonNullable<Awaited<ReturnType<typeof createLearningFeature>>>

/** Creates the feature for one directory. @returns undefined when the user switched it off */
export const createLearningFeature = async (
  { projectRoot, root, parents }: Instance & Pick<Core, "parents">,
  { state, sessions, ledger, outbox, tasks, notices }: Services,
  log: Log,
) => {
  const { learning } = await settingsOrDefaults(projectRoot, log, notices)
  if (!learning.enabled) {
    log.debug("learning is switched off")
    return undefined
  }
  const now = () => new Date()
  const records = createSessionRecords({ state, log, pid: process.pid })
  const project = await findLearningProject(projectRoot, learning.project)
  const findShown = createShownMessages(sessions)
  /** Keeps the statements of messages that OpenCode shows; none while it does not tell. */
  const withShown = async (record: SessionRecord): Promise<SessionRecord> => {
    const shown = await findShown(record.sessionID, messagesOf(record))
    return { ...record, sayings: record.sayings.filter(({ messageID }) => shown?.has(messageID)) }
  }
  const known = createLearningIndex({
    project,
    ledger,
    outbox,
    waitingRecords: async () => {
      const confirmedLeft = await confirmed
      const isUsers = ({ sessionID, isUnverified }: SessionRecord): boolean =>
        !isUnverified && (touched.has(sessionID) || confirmedLeft.has(sessionID))
      return Promise.all((await records.waiting()).filter(isUsers).map(withShown))
    },
    state,
    readSigner,
    log,
  })
  const findTask = async (sessionID: string) => (await tasks.find(sessionID))?.taskID
  const capture = createCapture({
    ...{ records, known, outbox, sessions, findShown },
    ...{ project, findTask, notices, root, log },
  })

  const roots = createLruMap<boolean>()
  const knownIsRoot = (sessionID: string): boolean | undefined =>
    parents.get(sessionID) === undefined ? roots.get(sessionID) : parents.get(sessionID) === null
  /** @returns undefined when OpenCode does not answer */
  const findIsRoot = async (sessionID: string): Promise<boolean | undefined> => {
    const seen = knownIsRoot(sessionID)
    if (seen !== undefined) return seen
    const parent = await sessions.parent(sessionID)
    if (parent.kind === "failed") {
      log.warn("whether the session is a child is unknown", { sessionID, reason: parent.reason })
      return undefined
    }
    roots.set(sessionID, parent.value === undefined)
    return parent.value === undefined
  }
  const isRoot = async (sessionID: string): Promise<boolean> => (await findIsRoot(sessionID)) ?? false
  const readTask = async (taskID: string): Promise<string> => {
    const read = await ledger.readTask(taskID, { deadlineMs: TASK_DEADLINE_MS })
    if (read.kind !== "found") return ""
    const { title, description, definitionOfDone } = read.task
    const { specification } = splitHandoffs(description.untrusted)
    return [title.untrusted, specification, definitionOfDone?.untrusted ?? ""].join("\n")
  }
  const readMaterial = async (sessionID: string): Promise<Material> => {
    const taskID = await findTask(sessionID)
    const [read, task] = await Promise.all([
      known.read(taskID !== undefined),
      taskID === undefined ? undefined : readTask(taskID),
    ])
    return { known: read, task }
  }
  /** By session: reads for its first request, beside OpenCode's own preparation of it. */
  const prepared = createLruMap<Promise<Material>>()
  const read = (sessionID: string): Promise<Material> => {
    const material = prepared.get(sessionID) ?? readMaterial(sessionID)
    prepared.delete(sessionID)
    return material
  }
  const recall = createRecall({ read, records, isRoot, project: project.name, log, now })

  const inBackground = async (sessionID: string, work: Promise<unknown>): Promise<void> => {
    await work.catch((error: unknown) =>
      log.error("background work failed", { sessionID, error: describeError(error) }),
    )
  }
  const timers = new Map<string, NodeJS.Timeout>()
  const addingContext = new Map<string, Promise<void>>()
  const storing = createKeyedQueue()
  /** Work that does not begin with the end of a turn. */
  const unfinished = new Set<Promise<void>>()
  const touched = new Set<string>()
  /** By session: messages of its turn, which OpenCode may not have stored yet. */
  const arriving = createLruMap<readonly string[]>()
  /** By session: what OpenCode last said the user undid; "" for nothing. */
  const reverts = createLruMap<string>()
  const asked = createLruMap<true>()

  const addContext = (sessionID: string): Promise<void> => {
    const work = inBackground(sessionID, capture.addContext(sessionID))
    addingContext.set(sessionID, work)
    return work
  }
  /** Drops the statements of a child session, whose author is a model. @returns whether it is known to be the user's session */
  const verify = async (sessionID: string): Promise<boolean> => {
    const { isUnverified } = await records.read(sessionID)
    if (!isUnverified && touched.has(sessionID)) return true
    const isUsers = await findIsRoot(sessionID)
    if (isUsers && isUnverified) await records.update(sessionID, (record) => ({ ...record, isUnverified: undefined }))
    if (isUsers === false) await records.forget(sessionID)
    return isUsers === true
  }
  type Filter = (statement: Statement) => boolean
  const followUndo = (sessionID: string, filter: Filter = () => true): Promise<boolean> => {
    const isArriving = ({ messageID }: Statement) => arriving.get(sessionID)?.includes(messageID) ?? false
    return capture.followUndo(sessionID, (statement) => filter(statement) && !isArriving(statement))
  }
  /** Runs one at a time: each finds what the one before has stored. */
  const store = (sessionID: string, filter?: Filter): Promise<void> =>
    storing.add(sessionID, async () => {
      if ((await verify(sessionID)) && (await followUndo(sessionID, filter))) await capture.enqueue(sessionID, filter)
    })
  /** Does not ask OpenCode, which is ending, or does not have the message. */
  const storeUnasked = (sessionID: string): Promise<void> =>
    storing.add(sessionID, async () => {
      if (await verify(sessionID)) await capture.enqueue(sessionID)
    })
  const finish = async (sessionID: string, work: Promise<void>): Promise<void> => {
    const finished = inBackground(sessionID, work)
    unfinished.add(finished)
    await finished
    unfinished.delete(finished)
  }
  const busy = (sessionID: string): void => {
    clearTimeout(timers.get(sessionID))
    timers.delete(sessionID)
  }

  /** Records left by earlier processes, read before a message of this process adds to them. */
  const left = records.waiting()
  /**
   * Stores the statements left in a session. When it continues in this process, new statements wait for the end of their turn.
   */
  const replayMessages = async (sessionID: string, messageIDs: readonly string[]): Promise<void> => {
    const isLeft = ({ messageID }: Statement): boolean => messageIDs.includes(messageID)
    await capture.addContext(sessionID, isLeft)
    await store(sessionID, isLeft)
  }
  /** @returns the sessions whose statements left by an earlier process are the user's */
  const confirmLeft = async (): Promise<ReadonlySet<string>> => {
    const said = new Set<string>()
    for (const record of await left) {
      const { sessionID } = record
      if (isOwnedByLiveProcess(record, now().getTime())) continue
      if ((await capture.confirm(sessionID, messagesOf(record))) && (await isRoot(sessionID))) said.add(sessionID)
    }
    return said
  }
  const confirmed = confirmLeft()
  const replay = async (): Promise<void> => {
    const said = await confirmed
    for (const record of await left) {
      const { sessionID, isUnverified } = record
      if (!said.has(sessionID) && !isUnverified) continue
      log.info("pending statements from an earlier process", { sessionID })
      await replayMessages(sessionID, messagesOf(record))
    }
  }
  const replayed = inBackground("", replay())

  /** Learns again what was redone; this process may not have seen who said it. */
  const reviseStored = async (sessionID: string): Promise<void> => {
    const { sayings } = await records.read(sessionID)
    if (sayings.length === 0) return
    await replayed
    const undone = sayings.filter(({ state: how }) => how === "undone").map(({ messageID }) => messageID)
    await storing.add(sessionID, async () => {
      if (!(await verify(sessionID)) || !(await followUndo(sessionID)) || undone.length === 0) return
      if (!touched.has(sessionID) && !(await capture.confirm(sessionID, undone))) return
      await capture.enqueue(sessionID, ({ messageID }) => undone.includes(messageID))
    })
  }

  /** Stores a deleted session's statements, then removes its record; the record stays when storing fails. */
  const forgetStored = async (sessionID: string): Promise<void> => {
    await Promise.all([addingContext.get(sessionID), replayed])
    await storeUnasked(sessionID)
    await records.forget(sessionID)
    for (const memory of [addingContext, touched, arriving, reverts, asked, roots, prepared]) memory.delete(sessionID)
  }

  return {
    /** Resolves when what the message teaches is on disk. */
    userMessage: async (message: UserMessage, parts: readonly Part[]): Promise<void> => {
      const { sessionID, id: messageID } = message
      busy(sessionID)
      const text = collectUserText(parts)
      if (asksForLearnings(text)) asked.set(sessionID, true)
      const isUsers = knownIsRoot(sessionID)
      if (isUsers === false) return
      const isFirst = parents.get(sessionID) === null && !touched.has(sessionID)
      if (isFirst && tasks.cached(sessionID)) prepared.set(sessionID, readMaterial(sessionID))
      touched.add(sessionID)
      arriving.set(sessionID, [...(arriving.get(sessionID) ?? []), messageID])
      await left
      // On disk before the model is asked, even while OpenCode has not told whether the session is a child.
      const isUnverified = isUsers === undefined
      await capture.capture({ sessionID, messageID, at: new Date(message.time.created), text, isUnverified })
      if (isUnverified) void inBackground(sessionID, verify(sessionID))
      // At exit there is no time to store what only memory holds, so it is stored at once, without the work that follows.
      if (records.isUnsaved(sessionID)) void inBackground(sessionID, storeUnasked(sessionID))
    },
    beforeRequest: async (messages: StoredMessage[]): Promise<Change> => {
      const sessionID = messages[0]?.info.sessionID ?? ""
      const change = await recall.inject(messages)
      return () => {
        change?.()
        if (!recall.hasInjected(sessionID) && !asked.has(sessionID)) disableTools(messages, LEARNING_TOOLS)
      }
    },
    idle: (sessionID: string): void => {
      if (!touched.has(sessionID)) return
      busy(sessionID)
      arriving.delete(sessionID)
      void addContext(sessionID)
      const timer = setTimeout(() => {
        timers.delete(sessionID)
        void inBackground(sessionID, store(sessionID))
      }, CAPTURE_DELAY_MS)
      timer.unref()
      timers.set(sessionID, timer)
    },
    busy,
    compacting: (sessionID: string): void => {
      recall.summaryExpected(sessionID)
      if (!touched.has(sessionID)) return
      void addContext(sessionID).then(() => inBackground(sessionID, store(sessionID)))
    },
    /** The answer of the tool that lists learnings. */
    list: async (query = ""): Promise<string> => {
      const found = searchLearnings(await known.read(true), query, { now: now().getTime(), limit: LISTED })
      return found.length === 0 ? "Nothing learned fits." : found.map(renderLearning).join("\n")
    },
    forgetLearning: async (id: string, reason: string, sessionID: string): Promise<string> => {
      const learning = findByID(await known.read(true), id)
      if (learning?.status !== "active") return `There is no learning ${id}; the tool learned lists them.`
      await outbox.add(retireEntry(learning, project, { reason, by: `the agent in ${sessionID}`, at: now() }))
      log.info("a learning is forgotten", { sessionID, id, key: learning.key })
      return `Forgotten: ${renderLearning(learning)}`
    },
    forget: async (sessionID: string): Promise<void> => {
      busy(sessionID)
      recall.forget(sessionID)
      await finish(sessionID, forgetStored(sessionID))
    },
    /** Looks whether the user undid or redid messages, perhaps of an earlier process. */
    updated: async ({ id, revert }: Pick<SessionInfo, "id" | "revert">): Promise<void> => {
      const undone = revert ? `${revert.messageID} ${revert.partID ?? ""}` : ""
      if (reverts.get(id) === undone) return
      reverts.set(id, undone)
      await finish(id, reviseStored(id))
    },
    stop: async (): Promise<void> => {
      for (const sessionID of [...timers.keys()]) busy(sessionID)
      const storeAll = async (): Promise<void> => {
        await Promise.all(addingContext.values())
        await Promise.all([...[...touched].map((sessionID) => storeUnasked(sessionID)), ...unfinished])
      }
      const stored = await withDeadline(storeAll(), STORE_DEADLINE_MS)
      if (stored.kind !== "done") log.info("what is to be learned is kept for the next start", { how: stored.kind })
    },
  }
}
