import { readGitState } from "../host/git.ts"
import { collectUserText } from "../host/messages.ts"
import type { Conversation, SummaryPlan } from "../host/port.ts"
import { cutText, cutTextStart } from "../host/text.ts"
import { activityOf, type Facts, renderFacts, stepsOf } from "../task/activity.ts"
import { fenced } from "../task/parse.ts"
import { NO_WORDS, type TaskWords, toUserWords, withWords } from "../task/user-words.ts"
import { isRefusal, judgeSummary, summaryPart } from "./summary.ts"
import { factsInLedger, wordsInLedger } from "./texts.ts"

const leadText = (answer: string): string =>
  answer === ""
    ? "The model wrote no summary at this compaction."
    : "The model's summary of this compaction says too little."

const answerText = (answer: string): string[] => (answer === "" ? [] : [`The model's summary:\n${fenced(answer)}`])

type RescueInput = {
  /** The model's summary, if it says too little; empty where it wrote none. */
  readonly answer: string
  readonly said: TaskWords
  readonly facts: Facts
  /** The newest handoff that has a text. */
  readonly earlier: string | undefined
}

/** Renders the text that stands in for the summary of a session with a task. Pure. */
export const renderRescue = ({ answer, said, facts, earlier }: RescueInput): string => {
  // Its facts and the user's words are older than those below.
  const before = earlier ? `The handoff before it:\n\n${summaryPart(earlier)}` : "There is no earlier handoff."
  return [leadText(answer), before, ...answerText(answer), factsInLedger(facts), ...wordsInLedger(said)].join("\n\n")
}

/** For a session without a task. The headings are those of OpenCode 2's own summaries. */
const PROMPT = `# Write the handoff

The conversation is about to be dropped. Another agent goes on with the same work and knows only what you write now. You have no
tools: answer with the handoff alone. Carry over all of an earlier checkpoint that is still true. Keep paths, commands, error
messages and numbers exactly, and the user's demands in the user's words. Terse bullets under these headings; an empty one says
"(none)".

## Objective
## Requirements
## Decisions
## Work State
### Completed
### Active
### Blocked
## Next Move
## Relevant Files
## Important Context`

/** Kept of the beginning and of the end of the summary before: each rescue quotes the one before it. */
const END_CHARACTERS = 8_000
const ORDER_CHARACTERS = 8_000

const shortened = (text: string): string =>
  text.length <= 2 * END_CHARACTERS
    ? text
    : `${cutText(text, END_CHARACTERS)}\n[cut from ${text.length} characters]\n${cutTextStart(text, END_CHARACTERS)}`

type Given = { readonly sessionID: string; readonly id: string; readonly at: number; readonly text: string }

const givenIn = ({ messages }: Conversation): Given[] =>
  messages.flatMap(({ info, parts }) => {
    const text = info.role === "user" ? collectUserText(parts).trim() : ""
    return text === "" ? [] : [{ sessionID: info.sessionID, id: info.id, at: info.time.created, text }]
  })

/** The messages to an agent: a person's words, or the orders of the agent that started it. */
const givenText = (conversation: Conversation): string[] => {
  const given = givenIn(conversation)
  if (!conversation.isUsers) {
    const orders = given.map(({ text }) => fenced(cutText(text, ORDER_CHARACTERS)))
    return orders.length === 0 ? [] : [["## Orders of this session, newest last", ...orders.slice(-2)].join("\n\n")]
  }
  const words = given.flatMap(
    ({ sessionID, id, at, text }) => toUserWords({ sessionID, messageID: id, createdAt: at, text }) ?? [],
  )
  return wordsInLedger(withWords(NO_WORDS, words))
}

/**
 * Plans the summary of a session without a task, or of one whose task was not read in time.
 *
 * @param root folder that paths are relative to
 */
export const planWithoutTask = async (root: string, conversation: Conversation): Promise<SummaryPlan> => {
  const git = await readGitState(root)
  const activity = activityOf(conversation.messages.flatMap(stepsOf), root)
  const earlier = conversation.summary.trim()
  return {
    prompt: PROMPT,
    rescue: (answer) => {
      const isRefused = isRefusal(answer, PROMPT)
      // Without a note beside it, the summary is all that later requests have.
      if (!isRefused && judgeSummary(answer, earlier, PROMPT).remark === undefined) return undefined
      const kept = isRefused ? "" : answer
      return [
        leadText(kept),
        ...answerText(kept),
        renderFacts({ activity, git }),
        ...givenText(conversation),
        ...(earlier === "" ? [] : [`## The summary before it\n\n${shortened(earlier)}`]),
      ].join("\n\n")
    },
  }
}
