import type { Role } from "../task/parse.ts"
import type { Piece } from "./budget.ts"

type TaskInLedger = { title: string; status: string; definitionOfDone?: string; specification: string }

/** What the task block is made of. `ledger` is absent when prog could not be asked, "unknown" when it has no such task. */
export type TaskIdentity = {
  taskID: string
  role: Role
  brief: string
  /** Empty where no role was stated. */
  protocol: string
  /** The session works for another one, whose task this is. */
  isChild: boolean
  ledger?: TaskInLedger | "unknown"
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
  return [`- Title: ${ledger.title}`, `- Status in prog: ${ledger.status}`]
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
    ...(ledger?.status === "open" ? [`- \`prog start ${taskID}\`: claim it, once`] : []),
    `- \`prog append ${taskID} "…"\`: add to the description; \`prog desc\` replaces all of it, so keep the specification`,
    FINISHING[role](taskID),
  ].join("\n")
}

const section = (heading: string, text: string | undefined): string =>
  text?.trim() ? `### ${heading}\n${text.trim()}` : ""

/**
 * The task block in pieces, most needed first in rank. Nothing stands in it twice: a specification or protocol that the
 * brief already holds is left to the brief.
 *
 * @param options `isBriefShown`: the brief stands right beside the block already
 */
export const taskPieces = (identity: TaskIdentity, { isBriefShown = false } = {}): Piece[] => {
  const { taskID, role } = identity
  const ledger = taskInLedger(identity)
  const brief = identity.brief.trim()
  const specification = ledger?.specification.trim() ?? ""
  const protocol = identity.protocol.trim()
  const inProg = `prog show ${taskID}`
  const once = (text: string): string => (text !== "" && brief.includes(text) ? "" : text)
  const shownBrief =
    brief.length > SHOWN_BRIEF_CHARACTERS
      ? `${brief.slice(0, SHOWN_BRIEF_CHARACTERS)}\n[brief cut to ${SHOWN_BRIEF_CHARACTERS} of ${brief.length} characters]`
      : brief
  return [
    { name: "identity", text: identityText(identity), rank: 0, share: 0.3, source: inProg },
    {
      name: "definition of done",
      text: section("Definition of done", ledger?.definitionOfDone),
      rank: 1,
      share: 0.2,
      source: inProg,
    },
    { name: "key commands", text: commandsText(identity), rank: 2, share: 0.2, source: `prompts/${role}.md` },
    {
      name: "brief",
      text: isBriefShown ? "" : section("Brief, in the user's own words", shownBrief),
      rank: 3,
      share: 0.35,
      source: "the session's first message",
    },
    {
      name: "specification",
      text: section("Specification", once(specification)),
      rank: 4,
      share: 0.25,
      source: inProg,
    },
    {
      name: "protocol",
      text: section("How to work", once(protocol)),
      rank: 5,
      share: 0.12,
      source: `prompts/${role}.md`,
    },
  ]
}
