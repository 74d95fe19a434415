import { randomBytes } from "node:crypto"
import { createLruMap } from "../host/async.ts"
import { localMinute } from "../host/cli.ts"
import { findProjectFolder, projectNameOf } from "../host/git.ts"
import type { Log } from "../host/log.ts"
import { oneLine, quoted } from "../host/quoted.ts"
import { redactKeys } from "../host/secrets.ts"
import type { Sessions } from "../host/sessions.ts"
import type { Settings } from "../host/settings.ts"
import type { Notices } from "../host/tui.ts"
import { readWorkNote } from "../host/work-note.ts"
import { CONVERSATION_LABEL } from "../ledger/labels.ts"
import type { Ledger } from "../ledger/ledger.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { fenced, parseTask, parseTaskID, unquoteArgument } from "../task/parse.ts"
import type { SessionTask, TaskRegistry, Undone } from "../task/registry.ts"
import { shortTitle, TITLE_CHARACTERS, titleFrom } from "../task/title.ts"
import { createTaskList, type TaskListDeps } from "./task-list.ts"

type TaskCommandDeps = {
  sessions: Pick<Sessions, "messages">
  outbox: Pick<Outbox, "add">
  ledger: TaskListDeps["ledger"] & Pick<Ledger, "addTask" | "finishTask" | "setStatus" | "setLabel" | "rewriteTask">
  tasks: Pick<TaskRegistry, "find" | "bindTo" | "unbind" | "othersOn">
  isIdleOn: TaskListDeps["isIdleOn"]
  settings: () => Promise<Settings>
  /** Ends the session's claim on its task. */
  releaseClaim: (sessionID: string) => Promise<void>
  notices: Notices
  /** The folder that holds `.opencode`. */
  projectRoot: string
  log: Log
  now: () => Date
}

/** OpenCode waits 3 s for the command. */
const LEDGER_DEADLINE_MS = 2_500
const SHOWN_LOG_LINES = 3
const READ_LOG_LINES = 20
const LOG_LINE_CHARACTERS = 240
const READ_LINE_CHARACTERS = 2_000
const BEGIN = "Begin the work on it."

const USAGE = [
  "- `/task`: this session's task, and what there is to do",
  "- `/task WORD…`: looks for a task by its title or id",
  "- `/task ts-… [instructions]`: begins the work on a task here",
  "- `/task new TITLE`: makes a task and begins the work on it here",
  "- `/task queue`: puts this session's task among those that workers take",
  "- `/task done`: sets this session's task to done",
  "- `/task off`: this session works on no task any more",
].join("\n")

const BEFORE_ANSWER = "/task\n\n"
const AFTER_ANSWER = "\n\n(Baton's answer to the user, who sees it here. Do nothing and answer with one word.)"

/** An answer to the user: OpenCode shows it as the command's message, and the model gets it, too. */
const answer = (text: string): string => `${BEFORE_ANSWER}${text}${AFTER_ANSWER}`

/** The answer alone; undefined for a message that begins work. */
const answerIn = (text: string): string | undefined =>
  text.endsWith(AFTER_ANSWER) ? text.slice(BEFORE_ANSWER.length, -AFTER_ANSWER.length) : undefined

export const createTaskCommand = (deps: TaskCommandDeps) => {
  const { sessions, outbox, ledger, tasks, settings, releaseClaim, notices, projectRoot, log } = deps
  const options = { deadlineMs: LEDGER_DEADLINE_MS }
  const list = createTaskList(deps)

  const findProject = async (): Promise<string> =>
    (await settings()).learning.project ?? projectNameOf(await findProjectFolder(projectRoot))

  const describeOwn = async (binding: SessionTask | undefined): Promise<string> => {
    if (!binding) return "This session has no task."
    const { taskID } = binding
    const read = await ledger.readTask(taskID, options)
    if (read.kind !== "found") {
      const why = read.kind === "unknown" ? "does not know it" : "does not answer"
      return `This session's task is ${taskID}; the ledger ${why}.`
    }
    const { title, status, logs } = read.task
    const lines = logs.slice(-SHOWN_LOG_LINES).map(({ message }) => `  - ${oneLine(message, LOG_LINE_CHARACTERS)}`)
    return [`This session's task: ${taskID}, ${oneLine(title)} (${oneLine(status)})`, ...lines].join("\n")
  }

  const reportLine = (): string[] => {
    const note = readWorkNote(projectRoot)
    return note
      ? [`\`baton work\` has ended (begun ${localMinute(note.since)}): \`baton report\` says what became of the tasks.`]
      : []
  }

  const showState = async (sessionID: string): Promise<string> => {
    const [project, binding] = await Promise.all([findProject(), tasks.find(sessionID)])
    const shown = [describeOwn(binding), list.overview(project, binding?.taskID, LEDGER_DEADLINE_MS)]
    return answer([...reportLine(), ...(await Promise.all(shown)), USAGE].join("\n\n"))
  }

  /** Finds the task whose id a word is. One without prog's prefix counts if the ledger knows it. */
  const findNamed = async (word: string): Promise<string | undefined> => {
    const taskID = parseTaskID(`Task: ${word}`)
    if (taskID === undefined || parseTask(`Task: ${word}`)) return taskID
    return (await ledger.readTask(taskID, options)).kind === "found" ? taskID : undefined
  }

  const search = async (words: string): Promise<string> => {
    const project = await findProject()
    const found = await list.search(project, words, LEDGER_DEADLINE_MS)
    const none = `No task of ${project} that is not closed has “${oneLine(words)}” in its title or id.\n\n${USAGE}`
    return answer(found ?? none)
  }

  const add = async (task: { title: string; description: string; label?: string }) => {
    const added = await ledger.addTask({ ...task, project: await findProject() }, options)
    if (added.kind === "failed") log.warn("a task was not made", { reason: added.reason })
    return added
  }

  const finish = async (sessionID: string): Promise<string> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return answer("This session has no task that could be done.")
    const { taskID } = binding
    const written = await ledger.finishTask(taskID, options)
    // The program may still be at it.
    if (written.kind === "unavailable")
      return answer(`Whether task ${taskID} is done is not known: ${written.reason}. \`prog show ${taskID}\` tells.`)
    if (written.kind !== "written") {
      const reason = written.kind === "unknown" ? "the ledger does not know it" : written.reason
      return answer(`Task ${taskID} was not set to done: ${reason}.`)
    }
    await releaseClaim(sessionID)
    notices({ title: `task ${taskID} is done`, message: "" })
    return answer(`Task ${taskID} is done. \`prog open ${taskID}\` reopens it.`)
  }

  const queue = async (sessionID: string): Promise<string> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return answer("This session has no task that could be queued.")
    const { taskID } = binding
    const read = await ledger.readTask(taskID, options)
    const isThere = read.kind === "found" && !read.task.labels.includes(CONVERSATION_LABEL)
    const written = isThere
      ? ({ kind: "written" } as const)
      : await ledger.setLabel(taskID, CONVERSATION_LABEL, "unlabel", options)
    if (written.kind === "written")
      return answer(
        `Task ${taskID} is in the queue: while it is open and free, \`prog ready\` and \`prog claim --next\` give it. \`prog open ${taskID}\` opens it once this session is through with it.`,
      )
    const reason = written.kind === "unknown" ? "the ledger does not know it" : written.reason
    return answer(`Task ${taskID} was not put into the queue: ${reason}.`)
  }

  const leave = async (sessionID: string): Promise<string> => {
    const binding = await tasks.unbind(sessionID)
    if (!binding) return answer("This session has no task.")
    await releaseClaim(sessionID)
    return answer(`This session works on no task any more; it was ${binding.taskID}.`)
  }

  /** Tasks that were canceled by an undo, as they were before, for its redo. */
  const canceled = createLruMap<{ status: string; isConversation: boolean }>()
  const OPEN: ReadonlySet<string> = new Set(["open", "in_progress"])

  const cancel = async (taskID: string, sessionID: string): Promise<void> => {
    const read = await ledger.readTask(taskID, options)
    const [status, labels] = read.kind === "found" ? [read.task.status.untrusted, read.task.labels] : ["", []]
    const others = await tasks.othersOn(taskID, sessionID)
    if (!OPEN.has(status) || others.length > 0) {
      log.info("the task of an undone message is left as it is", { sessionID, taskID, status, others: others.length })
      return
    }
    canceled.set(taskID, { status, isConversation: labels.includes(CONVERSATION_LABEL) })
    const written = await ledger.setStatus(taskID, "cancel", options)
    log.info("the task of an undone message is canceled", { sessionID, taskID, result: written.kind })
    notices({ title: `task ${taskID} is canceled`, message: "Its message was undone." })
  }

  const restore = async (taskID: string): Promise<void> => {
    const before = canceled.get(taskID)
    if (before === undefined) return
    canceled.delete(taskID)
    await ledger.setStatus(taskID, "open", options)
    if (before.status === "in_progress") await ledger.setStatus(taskID, "start", options)
    // `prog start` has taken the label off.
    if (before.status === "in_progress" && before.isConversation)
      await ledger.setLabel(taskID, CONVERSATION_LABEL, "label", options)
    notices({ title: `task ${taskID}`, message: "Its message is back, and so is the task." })
  }

  /** @returns whether the task now is that of the message */
  const retitle = async (taskID: string, sessionID: string, title: string, description: string): Promise<boolean> => {
    if ((await tasks.othersOn(taskID, sessionID)).length > 0) return false
    const written = await ledger.rewriteTask(taskID, { title, description }, options)
    if (written.kind !== "written") return false
    await restore(taskID)
    log.info("the task of an undone message has the title of the next", { sessionID, taskID })
    return true
  }

  return {
    /** Does what `/task ARGUMENTS` asks for. @returns the text of the message that the command sends */
    expand: async (sessionID: string, given: string): Promise<string> => {
      const text = unquoteArgument(given).trim()
      const [word = ""] = text.split(/\s/, 1)
      const rest = text.slice(word.length).trim()
      const taskID = await findNamed(word)
      if (taskID !== undefined) return `Task: ${taskID}\n\n${rest || BEGIN}`
      switch (word) {
        case "":
          return showState(sessionID)
        case "new": {
          if (rest === "") return answer("A task needs a title: `/task new TITLE`")
          const kept = redactKeys(rest)
          const added = await add({ title: shortTitle(kept), description: kept.length > TITLE_CHARACTERS ? kept : "" })
          if (added.kind === "failed") return answer(`The task was not made: ${added.reason}.`)
          return `Task: ${added.id}\n\n${rest}`
        }
        case "done":
          return finish(sessionID)
        case "off":
          return leave(sessionID)
        case "queue":
          return queue(sessionID)
        default:
          return search(text)
      }
    },
    /**
     * Makes a task of a root session's first message and gives it to the session, where `autoTask` is on.
     *
     * @param undone the task that was made of a message in its place, which is undone
     */
    begin: async (
      sessionID: string,
      { messageID, text }: { messageID: string; text: string },
      undone?: string,
    ): Promise<boolean> => {
      const kept = redactKeys(text)
      const title = titleFrom(kept)
      if (title === undefined || !(await settings()).autoTask) return false
      const earlier = await sessions.messages(sessionID, 1)
      // A fork begins with its original's messages.
      if (earlier.kind === "failed" || earlier.value.messages.length > 0) return false
      const description = unquoteArgument(kept).trim()
      if (undone !== undefined && (await retitle(undone, sessionID, title, description))) {
        await tasks.bindTo(sessionID, undone, messageID)
        return true
      }
      const added = await add({ title, description, label: CONVERSATION_LABEL })
      if (added.kind === "failed")
        notices({ title: "no task was made of the message", message: added.reason, isProblem: true })
      else await tasks.bindTo(sessionID, added.id, messageID)
      return added.kind === "added"
    },
    /** Cancels a task that Baton made of a message that the user undid, and takes that back at a redo. */
    followUndo: async (sessionID: string, { undone, redone }: Undone): Promise<void> => {
      for (const { taskID, isMade } of undone) if (isMade) await cancel(taskID, sessionID)
      for (const { taskID, isMade } of redone) if (isMade) await restore(taskID)
    },
    answerIn,
    show: async (sessionID: string): Promise<string> => {
      const binding = await tasks.find(sessionID)
      if (!binding) return "This session has no task."
      const read = await ledger.readTask(binding.taskID)
      if (read.kind === "unknown") return `The ledger has no task ${binding.taskID}.`
      if (read.kind === "unavailable") return `The ledger does not answer: ${read.reason}.`
      const { id, title, status, definitionOfDone, description, logs } = read.task
      const lines = logs
        .slice(-READ_LOG_LINES)
        .map(({ message, createdAt }) => `- ${quoted(createdAt)}: ${quoted(message, READ_LINE_CHARACTERS)}`)
      return [
        `${id}: ${quoted(title)} (${quoted(status)})`,
        ...(definitionOfDone === undefined ? [] : [`## Definition of done\n${fenced(definitionOfDone.untrusted)}`]),
        ...(description.untrusted === "" ? [] : [`## Description\n${fenced(description.untrusted)}`]),
        ...(lines.length === 0 ? [] : [["## Log", ...lines].join("\n")]),
      ].join("\n\n")
    },
    log: async (sessionID: string, message: string): Promise<string> => {
      const binding = await tasks.find(sessionID)
      if (!binding) return "This session has no task: nothing was logged."
      // The id names the record: an agent may log the same words again.
      await outbox.add({
        kind: "log",
        taskID: binding.taskID,
        message: `${message} [${randomBytes(4).toString("hex")}]`,
      })
      return `Logged to ${binding.taskID}`
    },
  }
}
