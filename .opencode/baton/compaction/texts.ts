import type { CompletedCompaction } from "../host/messages.ts"
import { quoted, type Untrusted } from "../host/quoted.ts"
import { type HandoffTitle, parseHandoffTitle } from "../ledger/description.ts"
import type { LedgerTask } from "../ledger/ledger.ts"
import { type Facts, renderFacts, renderTodos } from "../task/activity.ts"
import { fenced, type Role } from "../task/parse.ts"
import { renderUserWords, type TaskWords, WORDS_HEADING } from "../task/user-words.ts"
import { type Budget, fitSections, type Section } from "./budget.ts"
import type { SummaryVerdict } from "./summary.ts"

type TaskInLedger = {
  title: Untrusted
  status: Untrusted
  definitionOfDone?: Untrusted | undefined
  specification: Untrusted
}

/** Another session's claim on the task. `summary`: who, where and since when. */
export type OtherClaim = { summary: Untrusted; session: string; isExclusive: boolean }

/** Content of the task block. `ledger` is absent when prog could not be asked, "unknown" when it has no such task. */
export type TaskIdentity = {
  taskID: string
  role: Role
  said: TaskWords
  /** Empty where no role was stated. */
  protocol: string
  /** The first message of a session that works for another one, whose task this is; undefined in the user's own sessions. */
  order?: string | undefined
  /** The agent may use the shell, and so `prog`. */
  hasShell: boolean
  ledger?: TaskInLedger | "unknown"
  claim?: OtherClaim | undefined
}

/** The task as the ledger has it. */
export const taskInLedger = ({ ledger }: TaskIdentity): TaskInLedger | undefined =>
  ledger === "unknown" ? undefined : ledger

/** The command or tool that shows the task. */
export const showCommand = ({ taskID, hasShell }: Pick<TaskIdentity, "taskID" | "hasShell">): string =>
  hasShell ? `\`prog show ${taskID}\`` : "`task_show`"

/** The place of the whole task, for a notice about a cut. */
export const sourceOf = ({ taskID, hasShell }: Pick<TaskIdentity, "taskID" | "hasShell">): string =>
  hasShell ? `prog show ${taskID}` : "task_show"

const logCommand = ({ taskID, hasShell }: Pick<TaskIdentity, "taskID" | "hasShell">): string =>
  hasShell ? `\`prog log ${taskID} "…"\`` : "`task_log`"

const FINISHING: Record<Role, (id: string) => string> = {
  worker: (id) =>
    `- \`prog review ${id}\` once it is finished; \`prog done ${id}\` once it has landed, or the user says so`,
  planner: (id) => `- \`prog add "TITLE" -p PROJECT --parent ${id} --dod "…"\` for each task (an epic's id as parent)`,
}

const ledgerLines = ({ taskID, ledger }: TaskIdentity): string[] => {
  if (ledger === undefined) return ["- prog could not be asked for the title"]
  if (ledger === "unknown") return [`- The ledger has no task ${taskID}`]
  return [`- Title: ${quoted(ledger.title)}`, `- Status in prog: ${quoted(ledger.status)}`]
}

const identityText = (identity: TaskIdentity): string => {
  const { taskID, role } = identity
  return [`## Task ${taskID}`, `- Task: ${taskID}`, `- Role: ${role}`, ...ledgerLines(identity)].join("\n")
}

const commandsText = (identity: TaskIdentity): string => {
  const { taskID, role, ledger, order, hasShell } = identity
  if (ledger === "unknown") return ""
  const common = [
    "### Key commands",
    `- ${showCommand(identity)}: the task, its log and its handoff`,
    `- ${logCommand(identity)}: record each step, decision and dead end as it happens`,
  ]
  if (order !== undefined)
    return [...common, "- Its status and description are for the session that started you"].join("\n")
  if (!hasShell) return common.join("\n")
  return [
    ...common,
    `- \`prog append ${taskID} "…"\`: add to the description (\`prog desc\` replaces all of it, handoff and specification)`,
    FINISHING[role](taskID),
  ].join("\n")
}

const section = (heading: string, text: string | undefined): string =>
  text?.trim() ? `### ${heading}\n${text.trim()}` : ""

/** Stands beside what is fenced, so that none of it is taken for Baton's or the user's own. */
export const FROM_AGENTS = "from prog, where agents write, too"

const fencedSection = (heading: string, text = ""): string =>
  text.trim() === "" ? "" : `### ${heading} (${FROM_AGENTS})\n${fenced(text)}`

const wordsSection = (said: TaskWords): Section => {
  const heading = `### ${WORDS_HEADING}`
  return {
    name: "user's words",
    text: renderUserWords(said, { heading }),
    priority: 0.5,
    maxShare: 0.5,
    shrink: (fits) => renderUserWords(said, { heading, fits }),
    source: "the session's messages",
  }
}

/**
 * The sections of the task block. A specification or protocol is left out where the user's first or newest words hold it.
 *
 * @param beside the text of the message that the block stands beside
 */
export const taskSections = (identity: TaskIdentity, beside = ""): Section[] => {
  const { role, said, order } = identity
  const ledger = taskInLedger(identity)
  const shown = [beside, said.words[0]?.text, said.words.at(-1)?.text]
  const inProg = sourceOf(identity)
  const once = (text: string): string => (text !== "" && shown.some((other) => other?.includes(text)) ? "" : text)
  return [
    { name: "identity", text: identityText(identity), priority: 0, maxShare: 0.3, source: inProg },
    {
      name: "order",
      text: order?.trim() ? `### Your order, from the agent that started you\n${fenced(order)}` : "",
      priority: 0.5,
      maxShare: 0.35,
      isFenced: true,
      source: "the session's first message",
    },
    wordsSection(said),
    {
      name: "definition of done",
      text: fencedSection("Definition of done", ledger?.definitionOfDone?.untrusted),
      priority: 1,
      maxShare: 0.2,
      isFenced: true,
      source: inProg,
    },
    { name: "key commands", text: commandsText(identity), priority: 2, maxShare: 0.2, source: `prompts/${role}.md` },
    {
      name: "specification",
      text: fencedSection("Specification", once(ledger?.specification.untrusted.trim() ?? "")),
      priority: 4,
      maxShare: 0.25,
      isFenced: true,
      source: inProg,
    },
    {
      name: "protocol",
      text: section("How to work", once(identity.protocol.trim())),
      priority: 5,
      maxShare: 0.12,
      source: `prompts/${role}.md`,
    },
  ]
}

/** The facts come last in priority: git and prog can give most of them again. */
const factsSections = (facts: Facts): Section[] => [
  {
    name: "facts",
    text: renderFacts(facts),
    priority: 6,
    maxShare: 0.25,
    source: "git and the session's own messages",
  },
  {
    name: "todos",
    text: renderTodos(facts.todos),
    priority: 6.5,
    maxShare: 0.25,
    shrink: (fits) => renderTodos(facts.todos, fits),
    source: "the session's todo list",
  },
]

/** Date and time to the minute, with the zone. */
export const shownTime = (time: string): string =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(time) ? `${time.slice(0, 16).replace("T", " ")} UTC` : "unknown time"

const SHOWN_LOG_LINES = 5
const LOG_LINE_CHARACTERS = 240

/** A compaction's own line in the log, which the handoff tells better. */
const COMPACTION_LINE = /^Compaction \d+: [\s\S]*\(session \w+\)$/

/** The newest lines of the task's log. */
export const logSection = (logs: LedgerTask["logs"], source: string): Section => {
  const lines = logs
    .filter(({ message }) => !COMPACTION_LINE.test(message.untrusted))
    .slice(-SHOWN_LOG_LINES)
    .map(({ message, createdAt }) => `- ${shownTime(createdAt)}: ${quoted(message, LOG_LINE_CHARACTERS)}`)
  const text = lines.length === 0 ? "" : [`## Last lines of the log (${FROM_AGENTS})`, ...lines].join("\n")
  return { name: "log", text, priority: 3.6, maxShare: 0.12, source }
}

/** Of what the user said in a section of the ledger, which has a limit of its own. */
const LEDGER_WORDS_CHARACTERS = 16_000

const WORDS_IN_LEDGER = `## ${WORDS_HEADING}`

export const wordsInLedger = (said: TaskWords): string[] => {
  const fits = (text: string): boolean => text.length <= LEDGER_WORDS_CHARACTERS
  return [renderUserWords(said, { heading: WORDS_IN_LEDGER, fits })].filter((text) => text !== "")
}

export const factsInLedger = (facts: Facts): string =>
  [renderFacts(facts), renderTodos(facts.todos)].filter((text) => text !== "").join("\n")

type HandoffInput = {
  at: Date
  compaction: Pick<CompletedCompaction, "summaryID" | "summary">
  verdict: SummaryVerdict
  said: TaskWords
  facts: Facts
  /** The newest handoff that has a text, for a summary that says less. */
  earlier: string | undefined
}

/** Renders the section that `prog show` shows of a compaction. */
export const renderHandoffSection = (
  { number, sessionID }: Pick<HandoffTitle, "number" | "sessionID">,
  { at, compaction: { summaryID, summary }, verdict, said, facts, earlier }: HandoffInput,
): string => {
  const title = `# Handoff after compaction ${number} (session ${sessionID}, summary ${summaryID}, ${at.toISOString()})`
  const last = [factsInLedger(facts), ...wordsInLedger(said)]
  const { saysLess, remark } = verdict
  const remarks = remark === undefined ? [] : [`${remark}.`]
  const own = summary === "" ? [] : [saysLess ? fenced(summary) : summary]
  const before = earlier ? `The handoff before it:\n\n${earlier}` : "There is no earlier handoff."
  return [title, ...remarks, ...own, ...(saysLess ? [before] : []), ...last].join("\n\n")
}

/** Renders the section of a session without a compaction on the task; where it has a handoff there, the facts alone count. */
export const renderProgressSection = (
  sessionID: string,
  { at, said, facts, lastAnswer }: { at: Date; said: TaskWords; facts: Facts; lastAnswer: string },
): string =>
  [
    `# Work in progress (session ${sessionID}, ${at.toISOString()})`,
    "The session has not been compacted on this task so far.",
    ...(lastAnswer === "" ? [] : [`## The end of the agent's last answer\n${fenced(lastAnswer)}`]),
    factsInLedger(facts),
    // Behind the facts, with which they are brought up to date.
    ...wordsInLedger(said),
  ].join("\n\n")

/** A handoff without its title. */
export const handoffBody = (section: string): string => section.slice(section.indexOf("\n") + 1).trim()

/** A handoff without the user's words, where they are shown beside it. */
export const withoutWords = (handoff: string): string => {
  const start = handoff.lastIndexOf(`\n${WORDS_IN_LEDGER}\n`)
  return start < 0 ? handoff : handoff.slice(0, start).trimEnd()
}

/** The handoff of another session on the task; "at work": it was seen to work now. */
export type OtherHandoff = { readonly section: string; readonly kind: "earlier" | "at work" | "subagent" }

const OTHER_LEADS: Record<OtherHandoff["kind"], readonly [string, string]> = {
  earlier: ["an earlier session on this task", "Its files are this task's files. What is newer counts."],
  "at work": [
    "another agent that works on this task now",
    "Its work is not yours: keep of it what yours depends on, as another agent's.",
  ],
  subagent: ["a subagent on this task", "It had its order from an agent, not from the user."],
}

export const otherHandoffSection = ({ section, kind }: OtherHandoff, source: string): Section => {
  const title = parseHandoffTitle(section)
  const writer = title ? `session ${title.sessionID}, ${shownTime(title.at)}` : "its title is lost"
  const [of, about] = OTHER_LEADS[kind]
  return {
    name: `handoff of ${writer}`,
    text: `### Handoff of ${of} (${writer})\n${about}\n\n${fenced(withoutWords(handoffBody(section)))}`,
    priority: 5.5,
    maxShare: 0.15,
    isFenced: true,
    source,
  }
}

type CompactionPromptInput = {
  /** prompts/handoff.md or the built-in text. */
  instructions: string
  identity: TaskIdentity
  facts: Facts
  /** Handoffs that other sessions wrote while this one worked on the task. */
  otherHandoffs: readonly OtherHandoff[]
  /** The summary to carry over, unless the conversation still shows it. */
  previousSummary?: string | undefined
  /** Additions of other plugins in output.context, which a replaced prompt would drop. */
  otherContext: readonly string[]
  budget: Budget
}

/**
 * The whole text that replaces OpenCode's compaction prompt, and the block in it that goes to output.context, too: the task, other
 * sessions' handoffs and the facts within the budget.
 *
 * The previous summary is carried in full, outside the budget: OpenCode's own prompt carries it too, and without it agents
 * forget.
 */
export const renderCompactionPrompt = (input: CompactionPromptInput): { prompt: string; block: string } => {
  const { identity, facts } = input
  const source = sourceOf(identity)
  const others = input.otherHandoffs.map((other) => otherHandoffSection(other, source))
  const block = fitSections([...taskSections(identity), ...others, ...factsSections(facts)], input.budget)
  const previous = input.previousSummary?.trim()
  const parts = [
    input.instructions.trim(),
    "# What is known for certain\nWritten by program, not by a model. Keep every id, path and number exactly as it stands here.",
    block,
    ...(previous
      ? [
          `# The earlier handoff\nIt is discarded after this: whatever is still true must stand in the new one.\n\n<earlier-handoff>\n${previous}\n</earlier-handoff>`,
        ]
      : []),
    ...input.otherContext.map((text) => text.trim()).filter((text) => text !== ""),
  ]
  return { prompt: parts.join("\n\n"), block }
}

type ResumeNoteInput = {
  identity: TaskIdentity
  facts: Facts
  logs: LedgerTask["logs"]
  /** Number of the compaction in this session, from 1; 0 for one made before the session was forked. */
  number: number
  /** The summary, trimmed; empty when the summariser wrote nothing. */
  summary: string
  verdict: SummaryVerdict
  /** The newest handoff before this one that says more; stands beside a summary that says less. */
  earlierHandoff?: string | undefined
  /** Another session wrote that one: this summary is the first that could carry it on, and may not. */
  isInherited?: boolean
  budget: Budget
}

const recordText = ({ identity: { taskID, ledger }, summary, verdict }: ResumeNoteInput): string => {
  if (ledger === "unknown") return `The ledger has no task ${taskID}, so that the summary is not recorded there.`
  if (summary === "") return "Its summary came out empty and is recorded in prog as such."
  const recorded = "is recorded in prog: do not record it again."
  return verdict.saysLess
    ? `The summary below says less than the handoff before it, which stands here, too; it ${recorded}`
    : `The summary below is the task's newest handoff and ${recorded}`
}

const leadText = (input: ResumeNoteInput): string => {
  const { identity, number } = input
  const { role, taskID, claim } = identity
  const of = number === 0 ? " before this session was forked" : ` (compaction ${number} of this session)`
  return [
    `[Baton] The conversation before this point was compacted${of}. ${recordText(input)}`,
    `You are the ${role} on task ${taskID} and go on with it. Where the summary disagrees with what follows, this counts.`,
    ...(claim
      ? [
          `At the compaction the task was claimed by ${quoted(claim.summary)}: look at what was changed there before you change the same files.`,
        ]
      : []),
  ].join("\n")
}

const nextText = ({ identity }: ResumeNoteInput): string =>
  identity.ledger === "unknown"
    ? "Next: the next step of the handoff. Tell the user that the ledger has no such task."
    : `Next: ${showCommand(identity)} if anything is unclear, else the next step of the handoff.`

const earlierText = ({ summary, verdict, earlierHandoff = "", isInherited = false }: ResumeNoteInput): string => {
  const text = earlierHandoff.trim()
  if (text === "" || !(verdict.saysLess || isInherited)) return ""
  if (!verdict.saysLess) return `## The handoff before this session, older than the summary\n${fenced(text)}`
  const heading =
    summary === "" ? "The last handoff that has a text" : "The last handoff that says more than the summary"
  return `## ${heading}\n${fenced(text)}`
}

/** Renders the note beside the summary for the turns after a compaction, within the budget. */
export const renderNote = (input: ResumeNoteInput): string => {
  const { identity, facts, logs, budget } = input
  const show = sourceOf(identity)
  const sections: Section[] = [
    { name: "notice", text: leadText(input), priority: -2, maxShare: 1, source: show },
    ...taskSections(identity),
    { name: "earlier handoff", text: earlierText(input), priority: 3.5, maxShare: 0.35, isFenced: true, source: show },
    logSection(logs, show),
    ...factsSections(facts),
    { name: "next", text: nextText(input), priority: -1, maxShare: 1, source: show },
  ]
  return fitSections(sections, budget)
}
