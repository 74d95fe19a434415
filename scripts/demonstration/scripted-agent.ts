import { headingsWanted, inForm } from "../../test/support/model/retention-2.ts"
import {
  isCompacted,
  type ModelReply,
  type ModelRequest,
  type Script,
} from "../../test/support/model/scripted-model.ts"
import { LINE_1, type Line } from "./line.ts"
import { ACCENTS_EDIT, BEGIN, CONSTRAINT, LATER, SHARP_S_EDIT, TASK, testCount, WAIT } from "./slug-project.ts"

/** Far more turns than the work needs: an agent in an endless loop stops here. */
const MAX_TURNS = 60

type Step = {
  isDone: (seen: string) => boolean
  take: (taskID: string, seen: string) => ModelReply
  fillsContext?: true
}

const bash = (command: string, description: string): ModelReply => ({ tool: "bash", input: { command, description } })
const edit = (change: Record<string, string>) => (): ModelReply => ({ tool: "edit", input: change })
const runTest = (): ModelReply => bash("node --test", "Run the test")

const says = (mark: string) => (seen: string) => seen.includes(mark)

const LOOP = "Loop: node --test"
const TRIED = "Tried: normalize NFD alone"
const CHECKPOINT = "Checkpoint: node --test passes"
const VERIFIED = "Verified: the definition of done holds"
const MARKS = [LOOP, TRIED, CHECKPOINT, VERIFIED]

/** The log has this line or a later one, or the step before it is seen. */
const isPast =
  (mark: string, isSeen: Step["isDone"] = () => false) =>
  (seen: string) =>
    isSeen(seen) || MARKS.slice(MARKS.indexOf(mark)).some((reached) => seen.includes(reached))

const record = (text: string) => (id: string) => bash(`prog log ${id} '${text}'`, "Record it")

/** The work, in order. A step counts as done by the request's text alone, without a memory of earlier requests. */
const STEPS: readonly Step[] = [
  {
    isDone: says("export function slugify("),
    take: (id, seen) =>
      isCompacted({ conversation: seen })
        ? bash(`prog show ${id} && cat slugify.js`, "See where it is")
        : { tool: "read", input: { filePath: "slugify.js" } },
  },
  { isDone: isPast(LOOP, (seen) => testCount(seen, "fail") !== undefined), take: runTest },
  { isDone: isPast(LOOP), take: record(`${LOOP}, 4 of 5 fail; next: strip accents`), fillsContext: true },
  { isDone: isPast(TRIED, says(".normalize(")), take: edit(ACCENTS_EDIT) },
  { isDone: isPast(TRIED, (seen) => testCount(seen, "fail") !== undefined), take: runTest },
  { isDone: isPast(TRIED), take: record(`${TRIED}; failed: gro-e-stra-e; next: ß to ss`), fillsContext: true },
  {
    isDone: isPast(CHECKPOINT, (seen) => /replaceAll\(\\*"ß/.test(seen)),
    take: edit(SHARP_S_EDIT),
    fillsContext: true,
  },
  { isDone: isPast(CHECKPOINT, (seen) => testCount(seen, "fail") === 0), take: runTest },
  { isDone: isPast(CHECKPOINT), take: record(`${CHECKPOINT}, 5 of 5; next: verify`), fillsContext: true },
  {
    isDone: isPast(VERIFIED),
    take: (id) => bash(`node --test && prog log ${id} '${VERIFIED}'`, "Go through the definition of done"),
  },
  { isDone: says("Completed ts-"), take: (id) => bash(`prog done ${id}`, "Close the task") },
]

export const LOST = "I no longer know which task I am on. What should I go on with?"
export const UNTOLD = "I know the task's name and not what it asks. What should I do?"
const FINISHED = "Finished: slugify passes its test, and the test is as it was."

const taskIn = (seen: string): string | undefined => /\bTask: (ts-[0-9a-f]{6})\b/.exec(seen)?.[1]

/** The prog commands that the agent uses. */
const commandsOf = (taskID: string): string[] => ["show", "log", "done"].map((command) => `prog ${command} ${taskID}`)

/** A request that holds all that the work needs. */
const isAssigned = (seen: string, taskID: string): boolean =>
  [TASK.specification, TASK.definitionOfDone, ...commandsOf(taskID)].every((fact) => seen.includes(fact))

/**
 * The agent's next step, computed from the request alone: it knows nothing that it was not told or that a compaction removed.
 *
 * @param seen everything in the request but the system prompt
 */
export const answerTurn = (seen: string, { fullTokens }: Line = LINE_1): ModelReply => {
  const taskID = taskIn(seen)
  if (!taskID) return { text: LOST }
  if (!isAssigned(seen, taskID)) return { text: UNTOLD }
  if (seen.includes(WAIT) && !seen.includes(BEGIN)) return { text: "Noted. I wait for the rest." }
  const step = STEPS.find(({ isDone }) => !isDone(seen))
  if (!step) return { text: FINISHED }
  const reply = step.take(taskID, seen)
  return step.fillsContext ? { ...reply, promptTokens: fullTokens } : reply
}

const list = (items: readonly string[]): string =>
  items.length === 0 ? "- none" : items.map((item) => `- ${item}`).join("\n")

/** Repeats the facts it is shown, newest first, and nothing else. */
const summariseFaithfully = (seen: string): string => {
  const reached = MARKS.toReversed().flatMap((mark) => {
    const at = seen.lastIndexOf(mark)
    return at < 0 ? [] : [/^[^"'\\\n]+/.exec(seen.slice(at))?.[0] ?? mark]
  })
  const taskID = taskIn(seen)
  const shown = (...facts: string[]): string => list(facts.filter((fact) => seen.includes(fact)))
  return [
    `## Done\n${list(reached)}`,
    `## Constraints and decisions that must persist\n${shown(CONSTRAINT, LATER, TASK.definitionOfDone, TASK.specification)}`,
    `## Protocol state\n${taskID ? shown(`Task: ${taskID}`, "Role: worker", ...commandsOf(taskID)) : list([])}`,
  ].join("\n\n")
}

const CARELESS = "Some work was done and it went fine."
const SPANISH = "El trabajo avanza bien, sin problemas."

const REFUSAL = "I'm sorry, but I can't help with that."

export type Summary = { kind: string; shown: string; write: (seen: string) => string }

const FAITHFUL: Summary = {
  kind: "a faithful summary",
  shown: "the summary is faithful",
  write: summariseFaithfully,
}
const CARELESS_ONE: Summary = {
  kind: "a careless summary",
  shown: `the summary is careless: "${CARELESS}"`,
  write: () => CARELESS,
}
const EMPTY: Summary = { kind: "an empty summary", shown: 'the summary is empty: ""', write: () => "" }
const IN_SPANISH: Summary = {
  kind: "a careless one in Spanish",
  shown: `and in Spanish: "${SPANISH}"`,
  write: () => SPANISH,
}
const REFUSED: Summary = { kind: "a refusal", shown: `the model refuses: "${REFUSAL}"`, write: () => REFUSAL }

/** One for each compaction: a good summary, then three ways to lose everything. */
export const SUMMARIES: readonly Summary[] = [FAITHFUL, CARELESS_ONE, EMPTY, IN_SPANISH]
/** On OpenCode 2, where the last three end the session. */
const SUMMARIES_2: readonly Summary[] = [FAITHFUL, CARELESS_ONE, EMPTY, REFUSED]

export const summariesOf = ({ number }: Pick<Line, "number">): readonly Summary[] =>
  number === 1 ? SUMMARIES : SUMMARIES_2

/** The demo's model. It keeps nothing between two requests but their number. */
export const createScriptedAgent =
  (line: Line): Script =>
  (request) => {
    const { kind, index, conversation } = request
    if (kind === "compaction") {
      const text = summariesOf(line)[index]?.write(conversation) ?? ""
      // What plain OpenCode 2 takes for a summary at all.
      const isInForm = line.number === 2 && index === 0 && headingsWanted(request).length > 0
      return { text: isInForm ? inForm(request, text) : text }
    }
    return index < MAX_TURNS ? answerTurn(conversation, line) : { text: "I am going in circles and stop." }
  }

export const scriptedAgent = createScriptedAgent(LINE_1)

/** The moment of the crash: the agent, compacted once more, is about to verify its work. */
export const isCrashPoint = ({ kind, conversation }: Pick<ModelRequest, "kind" | "conversation">): boolean =>
  kind === "turn" && isCompacted({ conversation }) && conversation.includes(CHECKPOINT)
