import { oneLine } from "../host/quoted.ts"
import { parseHandoffTitle, parseNextStep, splitHandoffs } from "../ledger/description.ts"
import { timeAgo } from "../ledger/embedded/format.ts"
import { CONVERSATION_LABEL } from "../ledger/labels.ts"
import type { Ledger, LedgerTask, TaskSummary } from "../ledger/ledger.ts"

export type TaskListDeps = {
  ledger: Pick<Ledger, "readTask" | "listTasks" | "readyTasks" | "listClaims">
  /** True for a session of this project that has the task and is not at work. */
  isIdleOn: (taskID: string, sessionID: string) => Promise<boolean>
  now: () => Date
}

/** Of each section; those in progress are read one by one. */
const MAX_SHOWN = 10
const LINE_CHARACTERS = 160
const CLOSED: ReadonlySet<string> = new Set(["done", "canceled"])

const isConversation = ({ labels }: TaskSummary): boolean => labels?.includes(CONVERSATION_LABEL) === true

const statusOf = ({ status }: TaskSummary): string => status.untrusted.replace("_", " ")

const taskLine = ({ id, title }: TaskSummary, more = ""): string => `- ${oneLine(id)}  ${oneLine(title)}${more}`

const section = (heading: string, lines: readonly string[], left = 0): string[] => {
  if (lines.length === 0) return []
  return [[heading, ...lines, ...(left > 0 ? [`- and ${left} more: \`/task WORD\` finds them`] : [])].join("\n")]
}

type LastWork = {
  /** Epoch ms of the last log line or handoff; 0 for none. */
  readonly at: number
  /** The handoff's next step, else the log line. */
  readonly said: string | undefined
}

const lastWork = ({ description, logs }: LedgerTask): LastWork => {
  const [handoff] = splitHandoffs(description.untrusted).handoffs
  const [line, next] = [logs.at(-1), handoff === undefined ? undefined : parseNextStep(handoff)]
  const times = [line?.createdAt, handoff && parseHandoffTitle(handoff)?.at]
  const at = Math.max(...times.map((time) => Date.parse(time ?? "") || 0))
  if (next !== undefined) return { at, said: `next: ${oneLine(next, LINE_CHARACTERS)}` }
  return { at, said: line && `last: ${oneLine(line.message, LINE_CHARACTERS)}` }
}

/** Lists a project's tasks for a person. */
export const createTaskList = ({ ledger, isIdleOn, now }: TaskListDeps) => {
  const readLastWork = async (task: TaskSummary, deadlineMs: number) => {
    const read = deadlineMs > 0 ? await ledger.readTask(task.id, { deadlineMs }) : undefined
    const { at, said }: LastWork = read?.kind === "found" ? lastWork(read.task) : { at: 0, said: undefined }
    const when = at === 0 ? undefined : timeAgo({ epochMs: at, offsetMinutes: 0 }, now().getTime())
    const last = [when, said].filter((part) => part !== undefined).join(", ")
    return { at, line: taskLine(task, last === "" ? "" : `\n  ${last}`) }
  }

  return {
    /**
     * Shows what is in progress and free, with when it was worked on (the last first) and what is next, then what is ready, what
     * waits, and what others are at. At most ten tasks are read.
     *
     * @param ownID the session's own task, which is shown elsewhere
     * @param deadlineMs of all calls together; a task that is not read in time is shown without its last work
     */
    overview: async (project: string, ownID: string | undefined, deadlineMs: number): Promise<string> => {
      const over = performance.now() + deadlineMs
      const options = { deadlineMs }
      const [listed, ready, claims] = await Promise.all([
        ledger.listTasks({ ...options, project }),
        ledger.readyTasks(project, options),
        ledger.listClaims(project, options),
      ])
      if (!listed || !ready) return "What there is to do is not known: the ledger does not answer."
      const tasks = listed.filter(({ id }) => id !== ownID)
      const readyIDs = new Set(ready.map(({ id }) => id))
      const withStatus = (status: string) => tasks.filter((task) => task.status.untrusted === status)
      const [open, begun] = [withStatus("open").filter((task) => !isConversation(task)), withStatus("in_progress")]
      const isReady = ({ id }: TaskSummary): boolean => readyIDs.has(id)
      const taken = await Promise.all(
        begun.map(async ({ id }) => {
          const claim = claims?.get(id)
          // An idle session here gives it to the one that the user speaks to (claims.ts).
          return claim !== undefined && !(await isIdleOn(id, claim.session))
        }),
      )
      const free = begun.filter((_, at) => !taken[at])
      // prog lists the newest of a priority last.
      const read = await Promise.all(free.slice(-MAX_SHOWN).map((task) => readLastWork(task, over - performance.now())))
      const lines = read.toSorted((a, b) => b.at - a.at).map(({ line }) => line)
      const waiting = [
        ...["blocked", "reviewing"].flatMap((status) =>
          withStatus(status).map((task) => taskLine(task, ` (${status})`)),
        ),
        ...open.filter((task) => !isReady(task)).map((task) => taskLine(task, " (waits for another task)")),
      ]
      const atWork = begun.flatMap((task, at) => {
        const claim = taken[at] ? claims?.get(task.id) : undefined
        return claim === undefined ? [] : [taskLine(task, `\n  claimed by ${oneLine(claim.summary)}`)]
      })
      const list = (heading: string, all: readonly string[]): string[] =>
        section(heading, all.slice(0, MAX_SHOWN), all.length - MAX_SHOWN)
      const freely = claims === undefined ? "In progress; whether free is not known" : "In progress and free"
      const sections = [
        ...section(`${freely}, in ${project}:`, lines, free.length - MAX_SHOWN),
        ...list(
          `Ready in ${project}:`,
          open.filter(isReady).map((task) => taskLine(task)),
        ),
        ...list("Waiting:", waiting),
        ...list("At work elsewhere:", atWork),
      ]
      return sections.length === 0 ? `Nothing else is to be done in ${project}.` : sections.join("\n\n")
    },
    /**
     * Looks for tasks that are not closed by words of their title or id, in any case.
     *
     * @returns undefined when there is none
     */
    search: async (project: string, words: string, deadlineMs: number): Promise<string | undefined> => {
      const all = await ledger.listTasks({ project, deadlineMs })
      if (!all) return "The tasks cannot be searched: the ledger does not answer."
      const wanted = words.toLowerCase().split(/\s+/)
      const found = all.filter((task) => {
        const text = `${task.id} ${task.title.untrusted}`.toLowerCase()
        return !CLOSED.has(task.status.untrusted) && wanted.every((word) => text.includes(word))
      })
      const lines = found.slice(0, MAX_SHOWN).map((task) => taskLine(task, ` (${statusOf(task)})`))
      const left = found.length - MAX_SHOWN
      const more = left > 0 ? [`- and ${left} more: another word finds fewer`] : []
      return lines.length === 0 ? undefined : [`In ${project}:`, ...lines, ...more].join("\n")
    },
  }
}
