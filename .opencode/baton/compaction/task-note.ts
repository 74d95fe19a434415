import type { GitState } from "../host/git.ts"
import { oneLine, quoted } from "../host/quoted.ts"
import { counted } from "../host/text.ts"
import type { Notice } from "../host/tui.ts"
import type { HandoffTitle } from "../ledger/description.ts"
import type { TaskSummary } from "../ledger/ledger.ts"
import { fenced } from "../task/parse.ts"
import { type Budget, fitSections, type Section } from "./budget.ts"
import type { KnownTask } from "./context.ts"
import {
  logSection,
  type OtherClaim,
  type OtherHandoff,
  otherHandoffSection,
  showCommand,
  shownTime,
  sourceOf,
  type TaskIdentity,
  taskInLedger,
  taskSections,
} from "./texts.ts"

/** The last handoff of the task, by another session. */
export type EarlierHandoff = {
  title: HandoffTitle
  /** The handoff without its title. */
  text: string
  /** It was seen at work now. */
  isAtWork: boolean
  /** Handoffs of further sessions, the newest first. */
  others: readonly OtherHandoff[]
  git?: GitSince | undefined
}

type GitSince = {
  /** `head` has 12 digits. */
  then: GitState
  now: GitState
  /** Undefined where the commit is not in this repository. */
  commitsSince: number | undefined
}

/** `identity.said` holds what the user said in earlier sessions: the own messages stand beside it. */
export type TaskNoteInput = Omit<KnownTask, "handoffs"> & {
  message: {
    /** It is the one that gave the session its task. */
    isAbove: boolean
    text: string
    /** It names the task; otherwise Baton made the task of it. */
    namesTask: boolean
    /** It begins with a draft of `/handoff`, which is newer than the last handoff. */
    hasDraft: boolean
  }
  /** Ids in the ledger that are most like an unknown one; absent when they could not be listed. */
  nearest?: readonly TaskSummary[] | undefined
  earlier?: EarlierHandoff | undefined
  budget: Budget
}

/** A notice for the user before the agent starts; shown once for each `key`. */
type TaskNotice = Notice & { readonly key: string }

const CLOSED: ReadonlySet<string> = new Set(["done", "canceled"])
const TITLE_CHARACTERS = 80

const shownTask = ({ id, title, status }: TaskSummary): string =>
  `${quoted(id)} (${quoted(title, TITLE_CHARACTERS)}, ${quoted(status)})`

const nearestText = (nearest: readonly TaskSummary[] | undefined): string => {
  if (!nearest) return ""
  return nearest.length === 0 ? " It has no tasks at all." : ` Nearest there: ${nearest.map(shownTask).join("; ")}.`
}

/** Offers a new ledger last, since the tasks are in the old one. */
const RESTORE = "Restore a backup of it, or set PROG_DB to where it is; `prog init` makes a new, empty one."

/** The notice for the user that another works on the task. */
export const claimNotice = (taskID: string, summary: string): TaskNotice => ({
  key: `claimed by ${summary}`,
  title: `task ${taskID} is claimed`,
  message: `By ${oneLine(summary)}.`,
  isProblem: true,
})

const claimText = (taskID: string, { summary, isExclusive }: OtherClaim): string =>
  [
    `When this message came, the task was claimed by ${quoted(summary)}: tell the user so, and look at what was changed there before you change the same files.`,
    ...(isExclusive
      ? [
          `While that claim lasts, your tools that change files are refused; \`prog release ${taskID}\` ends it, if the user wants that.`,
        ]
      : []),
  ].join(" ")

/** Says which task the session has, or what is wrong with it; undefined without an answer from the ledger. */
export const taskNotice = ({ identity, nearest, missingDatabase, earlier }: TaskNoteInput): TaskNotice | undefined => {
  const { taskID, ledger, claim } = identity
  if (missingDatabase !== undefined)
    return {
      key: "missing",
      title: "the ledger's database is missing",
      message: `There is no ledger at ${missingDatabase}. ${RESTORE}`,
      isProblem: true,
    }
  if (ledger === "unknown")
    return {
      key: "unknown",
      title: `no task ${taskID}`,
      message: `The ledger does not have it.${nearestText(nearest)}`,
      isProblem: true,
    }
  if (ledger === undefined) return undefined
  const [title, status] = [oneLine(ledger.title), oneLine(ledger.status)]
  if (CLOSED.has(status)) return { key: status, title: `task ${taskID} is ${status}`, message: title, isProblem: true }
  if (claim) return claimNotice(taskID, claim.summary.untrusted)
  const from = earlier ? `\nGoes on from session ${earlier.title.sessionID} (${shownTime(earlier.title.at)})` : ""
  return { key: "bound", title: `task ${taskID}`, message: `${title} · ${status}${from}` }
}

const childLead = ({ taskID }: TaskIdentity): string =>
  `[Baton] The session that started you works on task ${taskID}. The task is context for you: your order is the message that started this session, and all that is asked of you.`

const leadText = (input: TaskNoteInput): string => {
  const { identity, failure, missingDatabase, nearest, earlier, message } = input
  const { taskID, ledger, order, claim, hasShell } = identity
  if (order !== undefined) return childLead(identity)
  const about = message.isAbove
    ? `[Baton] The message above ${message.namesTask ? "names" : "is"} task ${taskID}.`
    : `[Baton] This session works on task ${taskID}.`
  if (ledger === "unknown")
    return [
      `${about} The ledger has no such task: there is no specification to work by.${nearestText(nearest)}`,
      "Tell the user so first and ask which task is meant. Do not guess one.",
    ].join("\n")
  if (missingDatabase !== undefined)
    return [
      `${about} The ledger's database is missing: there is no ledger at ${quoted(missingDatabase)}. So the task is unknown, and there is no specification to work by.`,
      `Tell the user so first, and what to do: ${RESTORE} Do none of it yourself. Then go on only as far as the user's messages say what to do; what is recorded meanwhile waits for the ledger.`,
    ].join("\n")
  if (ledger === undefined)
    return `${about} The ledger did not answer (${failure ?? "no reason known"}). Ask it with ${showCommand(identity)} before you begin; if it still does not answer, go on with what the user's messages say.`
  const tool = hasShell
    ? "the program `prog` in your shell reads and writes it"
    : "`task_show` reads it, `task_log` adds to its log"
  const known = `${about} This is the task as the ledger has it; ${tool}.`
  const status = quoted(ledger.status)
  if (CLOSED.has(status)) {
    const reopens = hasShell ? ` \`prog open ${taskID}\` reopens it.` : ""
    return `${known}\nThe task is ${status} already: do not begin it again. Unless the user asks for more work on it, say so and stop.${reopens}`
  }
  const binding = "What the user's messages demand or forbid binds you like the specification."
  const goesOn =
    earlier || message.hasDraft ? " Another session has worked on it: go on where it stands, do not start over." : ""
  const lead = `${known}${goesOn} ${binding}`
  return claim ? `${lead}\n${claimText(taskID, claim)}` : lead
}

const handoffText = ({ title, text, isAtWork }: EarlierHandoff): string =>
  [
    "## The last handoff",
    `Written ${shownTime(title.at)} by session ${title.sessionID}${isAtWork ? ", which works on the task now: its work is not yours" : ""}. \`read_session\` with that id shows what was said and done there.`,
    "",
    fenced(text),
  ].join("\n")

const gitText = ({ git }: EarlierHandoff): string => {
  if (!git) return ""
  const { then, now, commitsSince } = git
  const place = ({ branch, head }: GitState): string => `branch ${branch} at ${head.slice(0, 12)}`
  const since =
    commitsSince === undefined ? "that commit is not in this repository" : `${counted(commitsSince, "commit")} since`
  return `## Where the work stood\n- At the handoff: ${place(then)}\n- Now: ${place(now)}, ${since}`
}

const earlierSections = ({ identity, earlier, logs, message }: TaskNoteInput): Section[] => {
  const source = sourceOf(identity)
  const log = logSection(logs, source)
  if (!earlier) return [log]
  return [
    {
      name: "last handoff",
      text: message.hasDraft ? "" : handoffText(earlier),
      priority: 3.2,
      maxShare: 0.35,
      isFenced: true,
      source,
    },
    { name: "git", text: gitText(earlier), priority: 2.5, maxShare: 0.05, source: "git log" },
    ...earlier.others.map((other) => otherHandoffSection(other, source)),
    log,
  ]
}

/** Renders the text beside the message that names the task, for each request until the first compaction. */
export const renderTaskNote = (input: TaskNoteInput): string => {
  const { identity, budget } = input
  const lead: Section = { name: "notice", text: leadText(input), priority: -1, maxShare: 1, source: "the ledger" }
  if (taskInLedger(identity) === undefined) return fitSections([lead], budget)
  // The order of a subagent stands above, and words of the user's are none of its.
  const { order, ...rest } = identity
  const sections = [
    lead,
    ...taskSections(order === undefined ? identity : { ...rest, order: "" }, input.message.text),
    ...(order === undefined ? earlierSections(input) : []),
  ]
  return fitSections(sections, budget)
}
