import type { CompletedCompaction } from "../host/messages.ts"
import { cutText } from "../host/text.ts"
import { type HandoffTitle, parseHandoffTitle } from "../ledger/description.ts"
import { type Facts, renderFacts } from "../task/activity.ts"
import { fenced, type Role } from "../task/parse.ts"
import { type Budget, fitSections, type Section } from "./budget.ts"

type TaskInLedger = { title: string; status: string; definitionOfDone?: string | undefined; specification: string }

/** Another session's claim on the task. `summary`: who, where and since when. */
export type OtherClaim = { summary: string; isExclusive: boolean }

/** Content of the task block. `ledger` is absent when prog could not be asked, "unknown" when it has no such task. */
export type TaskIdentity = {
  taskID: string
  role: Role
  brief: string
  /** Empty where no role was stated. */
  protocol: string
  /** The session works for another one, whose task this is. */
  isChild: boolean
  ledger?: TaskInLedger | "unknown"
  claim?: OtherClaim | undefined
}

/** The task as the ledger has it. */
export const taskInLedger = ({ ledger }: TaskIdentity): TaskInLedger | undefined =>
  ledger === "unknown" ? undefined : ledger

/** The user's brief is quoted verbatim up to this many characters. */
export const SHOWN_BRIEF_CHARACTERS = 6_000

const FINISHING: Record<Role, (id: string) => string> = {
  worker: (id) => `- \`prog review ${id}\`, then \`prog done ${id}\` once it has landed`,
  planner: (id) => `- \`prog add "TITLE" -p PROJECT --parent ${id} --dod "…"\` for each task (an epic's id as parent)`,
}

const ledgerLines = ({ taskID, ledger }: TaskIdentity): string[] => {
  if (ledger === undefined) return ["- prog could not be asked for the title"]
  if (ledger === "unknown") return [`- The ledger has no task ${taskID}`]
  return [`- Title: ${ledger.title.replaceAll(/\s+/g, " ")}`, `- Status in prog: ${ledger.status}`]
}

const identityText = (identity: TaskIdentity): string => {
  const { taskID, role } = identity
  return [`## Task ${taskID}`, `- Task: ${taskID}`, `- Role: ${role}`, ...ledgerLines(identity)].join("\n")
}

const commandsText = ({ taskID, role, ledger, isChild }: TaskIdentity): string => {
  if (ledger === "unknown") return ""
  const common = [
    "### Key commands",
    `- \`prog show ${taskID}\`: the task, its log and its handoff`,
    `- \`prog log ${taskID} "…"\`: record each step, decision and dead end as it happens`,
  ]
  if (isChild) return [...common, "- Its status and description are for the session that started you"].join("\n")
  return [
    ...common,
    ...(ledger?.status === "open" ? [`- \`prog start ${taskID}\`: begin it, once`] : []),
    `- \`prog append ${taskID} "…"\`: add to the description; \`prog desc\` replaces all of it, so keep the specification`,
    FINISHING[role](taskID),
  ].join("\n")
}

const section = (heading: string, text: string | undefined): string =>
  text?.trim() ? `### ${heading}\n${text.trim()}` : ""

/** Stands beside what is fenced, so that none of it is taken for Baton's or the user's own. */
export const FROM_AGENTS = "from prog, where agents write, too"

const fencedSection = (heading: string, text: string | undefined): string =>
  text?.trim() ? `### ${heading} (${FROM_AGENTS})\n${fenced(text)}` : ""

/**
 * The sections of the task block. A specification or protocol that the brief already holds is left out.
 *
 * @param options `isBriefShown`: the brief stands beside the block
 */
export const taskSections = (identity: TaskIdentity, { isBriefShown = false } = {}): Section[] => {
  const { taskID, role } = identity
  const ledger = taskInLedger(identity)
  const brief = identity.brief.trim()
  const specification = ledger?.specification.trim() ?? ""
  const protocol = identity.protocol.trim()
  const inProg = `prog show ${taskID}`
  const once = (text: string): string => (text !== "" && brief.includes(text) ? "" : text)
  const shownBrief =
    brief.length > SHOWN_BRIEF_CHARACTERS
      ? `${cutText(brief, SHOWN_BRIEF_CHARACTERS)}\n[brief cut to ${SHOWN_BRIEF_CHARACTERS} of ${brief.length} characters]`
      : brief
  return [
    { name: "identity", text: identityText(identity), priority: 0, maxShare: 0.3, source: inProg },
    {
      name: "definition of done",
      text: fencedSection("Definition of done", ledger?.definitionOfDone),
      priority: 1,
      maxShare: 0.2,
      isFenced: true,
      source: inProg,
    },
    { name: "key commands", text: commandsText(identity), priority: 2, maxShare: 0.2, source: `prompts/${role}.md` },
    {
      name: "brief",
      text: isBriefShown ? "" : section("Brief, in the user's own words", shownBrief),
      priority: 3,
      maxShare: 0.35,
      source: "the session's first message",
    },
    {
      name: "specification",
      text: fencedSection("Specification", once(specification)),
      priority: 4,
      maxShare: 0.25,
      isFenced: true,
      source: inProg,
    },
    {
      name: "protocol",
      text: section("How to work", once(protocol)),
      priority: 5,
      maxShare: 0.12,
      source: `prompts/${role}.md`,
    },
  ]
}

/**
 * Renders the section that `prog show` shows of a compaction.
 *
 * @param earlier the newest handoff that has a text, for a summary that has none
 */
export const renderHandoffSection = (
  { number, sessionID }: Pick<HandoffTitle, "number" | "sessionID">,
  at: Date,
  { summaryID, summary }: Pick<CompletedCompaction, "summaryID" | "summary">,
  facts: Facts,
  earlier: string | undefined,
): string => {
  const title = `# Handoff after compaction ${number} (session ${sessionID}, summary ${summaryID}, ${at.toISOString()})`
  if (summary !== "") return [title, summary, renderFacts(facts)].join("\n\n")
  const stands = earlier ? `The handoff before it:\n\n${earlier}` : "There is no earlier handoff."
  return [title, "The summary of this compaction was empty.", stands, renderFacts(facts)].join("\n\n")
}

/** Renders the section of a session without a compaction on the task; where it has a handoff there, the facts alone count. */
export const renderProgressSection = (sessionID: string, at: Date, facts: Facts): string =>
  [
    `# Work in progress (session ${sessionID}, ${at.toISOString()})`,
    "The session has not been compacted on this task so far.",
    renderFacts(facts),
  ].join("\n\n")

type CompactionPromptInput = {
  /** prompts/handoff.md or the built-in text. */
  instructions: string
  identity: TaskIdentity
  facts: Facts
  /** Handoffs that other sessions wrote while this one worked on the task. */
  otherHandoffs: readonly string[]
  /** The summary to carry over, unless the conversation still shows it. */
  previousSummary?: string | undefined
  /** Additions of other plugins in output.context, which a replaced prompt would drop. */
  otherContext: readonly string[]
  budget: Budget
}

/** The facts come last in priority: git and prog can give most of them again. */
const factsSection = (facts: Facts): Section => ({
  name: "facts",
  text: renderFacts(facts),
  priority: 6,
  maxShare: 0.25,
  source: "git and the session's own messages",
})

/** Date and time to the minute, with the zone. */
export const shownTime = (time: string): string => `${time.slice(0, 16).replace("T", " ")} UTC`

/** A handoff without its title. */
export const handoffBody = (section: string): string => section.slice(section.indexOf("\n") + 1).trim()

/** The handoff of another session that works on the task at the same time. */
export const otherHandoffSection = (section: string, taskID: string): Section => {
  const title = parseHandoffTitle(section)
  const writer = title ? `session ${title.sessionID}, ${shownTime(title.at)}` : "another session"
  const text = `### Another agent's handoff (${writer})\nThat agent works on the same task. Its work is not yours: keep of it what yours depends on, as another agent's.\n\n${fenced(handoffBody(section))}`
  return {
    name: `handoff of ${writer}`,
    text,
    priority: 5.5,
    maxShare: 0.15,
    isFenced: true,
    source: `prog show ${taskID}`,
  }
}

/**
 * The whole text that replaces OpenCode's compaction prompt, and the block in it that goes to output.context, too: the task, other
 * agents' handoffs and the facts within the budget.
 *
 * The previous summary is carried in full, outside the budget: OpenCode's own prompt carries it too, and without it agents
 * forget.
 */
export const renderCompactionPrompt = (input: CompactionPromptInput): { prompt: string; block: string } => {
  const { identity, facts } = input
  const others = input.otherHandoffs.map((section) => otherHandoffSection(section, identity.taskID))
  const block = fitSections([...taskSections(identity), ...others, factsSection(facts)], input.budget)
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
  /** Number of the compaction in this session, from 1; 0 for one made before the session was forked. */
  number: number
  /** The summary, trimmed; empty when the summariser wrote nothing. */
  summary: string
  /** The newest handoff with a text before this one; stands in for an empty summary. */
  earlierHandoff?: string | undefined
  /** Another session wrote that one: this summary is the first that could carry it on, and may not. */
  isInherited?: boolean
  budget: Budget
}

const recordText = ({ identity: { taskID, ledger }, summary }: ResumeNoteInput): string => {
  if (ledger === "unknown") return `The ledger has no task ${taskID}, so that the summary is not recorded there.`
  return summary === ""
    ? "Its summary came out empty and is recorded in prog as such."
    : "The summary below is the handoff and is already recorded in prog: do not record it again."
}

const leadText = (input: ResumeNoteInput): string => {
  const { identity, number } = input
  const { role, taskID, claim } = identity
  const of = number === 0 ? " before this session was forked" : ` (compaction ${number} of this session)`
  return [
    `[Baton] The conversation before this point was compacted${of}. ${recordText(input)}`,
    `You are the ${role} on task ${taskID} and go on with it. What follows comes from the user and from prog; where the summary disagrees, this counts. Only the brief is the user's own: what is fenced is from prog, where agents write, too.`,
    ...(claim
      ? [
          `At the compaction the task was claimed by ${claim.summary}: look at what was changed there before you change the same files.`,
        ]
      : []),
  ].join("\n")
}

const nextText = ({ identity: { taskID, ledger } }: ResumeNoteInput): string =>
  ledger === "unknown"
    ? "Next: the next step of the handoff. Tell the user that the ledger has no such task."
    : `Next command: \`prog show ${taskID}\` if anything is unclear, else the next step of the handoff. Go on recording as you work: \`prog log ${taskID} "…"\` for each step, \`prog desc\` for the handoff section only.`

const earlierText = ({ summary, earlierHandoff = "", isInherited = false }: ResumeNoteInput): string => {
  const text = earlierHandoff.trim()
  if (text === "" || (summary !== "" && !isInherited)) return ""
  const heading =
    summary === "" ? "The last handoff that has a text" : "The handoff before this session, older than the summary"
  return `## ${heading}\n${fenced(text)}`
}

/** Renders the note beside the summary for the turns after a compaction, within the budget. */
export const renderNote = (input: ResumeNoteInput): string => {
  const { identity, facts, budget } = input
  const show = `prog show ${identity.taskID}`
  const sections: Section[] = [
    { name: "notice", text: leadText(input), priority: -2, maxShare: 1, source: show },
    ...taskSections(identity),
    { name: "earlier handoff", text: earlierText(input), priority: 3.5, maxShare: 0.35, isFenced: true, source: show },
    factsSection(facts),
    { name: "next", text: nextText(input), priority: -1, maxShare: 1, source: show },
  ]
  return fitSections(sections, budget)
}
