import type { GitState } from "../host/git.ts"
import { cutText } from "../host/text.ts"
import type { Notice } from "../host/tui.ts"
import type { HandoffTitle } from "../ledger/description.ts"
import type { LedgerTask, TaskSummary } from "../ledger/ledger.ts"
import { fenced, namesTask } from "../task/parse.ts"
import { type Budget, fitSections, type Section } from "./budget.ts"
import type { KnownTask } from "./context.ts"
import {
  FROM_AGENTS,
  type OtherClaim,
  otherHandoffSection,
  shownTime,
  type TaskIdentity,
  taskInLedger,
  taskSections,
} from "./texts.ts"

/** The last handoff of the task, by another session. */
export type EarlierHandoff = {
  title: HandoffTitle
  /** The handoff without its title. */
  text: string
  /** Handoffs of further sessions, the newest first. */
  others: readonly string[]
  /** The user's first message in that session, where its record is still there. */
  brief?: string | undefined
  git?: GitSince | undefined
}

type GitSince = {
  /** `head` has 12 digits. */
  then: GitState
  now: GitState
  /** Undefined where the commit is not in this repository. */
  commitsSince: number | undefined
}

/** `identity.brief` is the text of the message beside it, so that nothing is said twice. */
export type OpeningInput = Omit<KnownTask, "handoffs"> & {
  /** Ids in the ledger that are most like an unknown one; absent when they could not be listed. */
  nearest?: readonly TaskSummary[] | undefined
  earlier?: EarlierHandoff | undefined
  budget: Budget
}

/** A notice for the user before the agent starts; shown once for each `key`. */
type OpeningNotice = Notice & { readonly key: string }

const CLOSED: ReadonlySet<string> = new Set(["done", "canceled"])
const SHOWN_LOG_LINES = 5
const LOG_LINE_CHARACTERS = 240

const shownTask = ({ id, title, status }: TaskSummary): string => `${id} (${cutText(title, 80)}, ${status})`

const nearestText = (nearest: readonly TaskSummary[] | undefined): string => {
  if (!nearest) return ""
  return nearest.length === 0 ? " It has no tasks at all." : ` Nearest there: ${nearest.map(shownTask).join("; ")}.`
}

/** Offers a new ledger last, since the tasks are in the old one. */
const RESTORE = "Restore a backup of it, or set PROG_DB to where it is; `prog init` makes a new, empty one."

/** The notice for the user that another works on the task. */
export const claimNotice = (taskID: string, summary: string): OpeningNotice => ({
  key: `claimed by ${summary}`,
  title: `task ${taskID} is claimed`,
  message: `By ${summary}.`,
  isProblem: true,
})

const claimText = (taskID: string, { summary, isExclusive }: OtherClaim): string =>
  [
    `When this message came, the task was claimed by ${summary}: tell the user so, and look at what was changed there before you change the same files.`,
    ...(isExclusive
      ? [
          `While that claim lasts, your tools that change files are refused; \`prog release ${taskID}\` ends it, if the user wants that.`,
        ]
      : []),
  ].join(" ")

/** Says which task the session has, or what is wrong with it; undefined without an answer from the ledger. */
export const openingNotice = ({
  identity,
  nearest,
  missingDatabase,
  earlier,
}: OpeningInput): OpeningNotice | undefined => {
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
  if (CLOSED.has(ledger.status))
    return { key: ledger.status, title: `task ${taskID} is ${ledger.status}`, message: ledger.title, isProblem: true }
  if (claim) return claimNotice(taskID, claim.summary)
  const from = earlier ? `\nGoes on from session ${earlier.title.sessionID} (${shownTime(earlier.title.at)})` : ""
  return { key: "bound", title: `task ${taskID}`, message: `${ledger.title} · ${ledger.status}${from}` }
}

const childLead = ({ taskID }: TaskIdentity): string =>
  `[Baton] The session that started you works on task ${taskID}. The task is context for you: the message above is your brief, and all that is asked of you.`

const leadText = (input: OpeningInput): string => {
  const { identity, failure, missingDatabase, nearest, earlier } = input
  const { taskID, ledger, isChild, claim } = identity
  if (isChild) return childLead(identity)
  if (ledger === "unknown")
    return [
      `[Baton] The message above names task ${taskID}, and the ledger has no such task: there is no specification to work by.${nearestText(nearest)}`,
      "Tell the user so first and ask which task is meant. Do not guess one.",
    ].join("\n")
  if (missingDatabase !== undefined)
    return [
      `[Baton] The message above names task ${taskID}. The ledger's database is missing: there is no ledger at ${missingDatabase}. So the task is unknown, and there is no specification to work by.`,
      `Tell the user so first, and what to do: ${RESTORE} Do none of it yourself. Then go on only as far as the message itself says what to do; what is recorded meanwhile waits for the ledger.`,
    ].join("\n")
  if (ledger === undefined)
    return `[Baton] The message above names task ${taskID}. The ledger did not answer (${failure ?? "no reason known"}), so go on with what the message says; \`prog show ${taskID}\` in the shell may work later.`
  const isNamed = namesTask(identity.brief, taskID)
  const about = `[Baton] The message above ${isNamed ? "names" : "is"} task ${taskID}. This is the task as the ledger has it; the program \`prog\` in your shell reads and writes it.`
  if (CLOSED.has(ledger.status))
    return `${about}\nThe task is ${ledger.status} already: do not begin it again. Unless the message asks for more work on it, say so and stop. \`prog open ${taskID}\` reopens it.`
  const binding = "What the message demands or forbids binds you like the specification."
  const lead = earlier
    ? `${about} Another session has worked on it: go on where it stands, do not start over. ${binding}`
    : `${about} ${binding}`
  return claim ? `${lead}\n${claimText(taskID, claim)}` : lead
}

const handoffText = ({ title, text }: EarlierHandoff): string =>
  [
    "## The last handoff",
    `Written ${shownTime(title.at)} by session ${title.sessionID}. \`read_session\` with that id shows what was said and done there.`,
    "",
    fenced(text),
  ].join("\n")

const gitText = ({ git }: EarlierHandoff): string => {
  if (!git) return ""
  const { then, now, commitsSince } = git
  const place = ({ branch, head }: GitState): string => `branch ${branch} at ${head.slice(0, 12)}`
  const since =
    commitsSince === undefined
      ? "that commit is not in this repository"
      : `${commitsSince} ${commitsSince === 1 ? "commit" : "commits"} since`
  return `## Where the work stood\n- At the handoff: ${place(then)}\n- Now: ${place(now)}, ${since}`
}

const logText = (logs: LedgerTask["logs"]): string => {
  const lines = logs.slice(-SHOWN_LOG_LINES).map(({ message, createdAt }) => {
    const [line = ""] = message.trim().split("\n")
    const shown = line.length > LOG_LINE_CHARACTERS ? `${cutText(line, LOG_LINE_CHARACTERS - 1)}…` : line
    return `- ${shownTime(createdAt)}: ${shown}`
  })
  return lines.length === 0 ? "" : ["## Last lines of the log", `(${FROM_AGENTS})`, ...lines].join("\n")
}

const earlierSections = ({ identity, earlier, logs }: OpeningInput): Section[] => {
  const source = `prog show ${identity.taskID}`
  const log: Section = { name: "log", text: logText(logs), priority: 3.6, maxShare: 0.12, source }
  if (!earlier) return [log]
  const { brief = "" } = earlier
  const isNews = brief.trim() !== "" && !identity.brief.includes(brief.trim())
  return [
    { name: "last handoff", text: handoffText(earlier), priority: 3.2, maxShare: 0.35, isFenced: true, source },
    { name: "git", text: gitText(earlier), priority: 2.5, maxShare: 0.05, source: "git log" },
    {
      name: "earlier brief",
      text: isNews ? `## What the user asked that session for, word for word\n${brief.trim()}` : "",
      priority: 3.1,
      maxShare: 0.2,
      source: `session ${earlier.title.sessionID}`,
    },
    ...earlier.others.map((section) => otherHandoffSection(section, identity.taskID)),
    log,
  ]
}

/** Renders the text beside the message that names the task, for each request until the first compaction. */
export const renderOpening = (input: OpeningInput): string => {
  const { identity, budget } = input
  const lead: Section = { name: "notice", text: leadText(input), priority: -1, maxShare: 1, source: "the ledger" }
  if (taskInLedger(identity) === undefined) return fitSections([lead], budget)
  const sections = [
    lead,
    ...taskSections(identity, { isBriefShown: true }),
    ...(identity.isChild ? [] : earlierSections(input)),
  ]
  return fitSections(sections, budget)
}
