import { COMPACTING_PROMPT_TOKENS } from "../../../test/support/retention.ts"
import type { ModelReply, ModelRequest, Script } from "../../../test/support/scripted-model.ts"
import {
  ANSWERS,
  RUN_TESTS,
  SAID,
  SCENES,
  type Scene,
  SUBAGENT_SCENES,
  SUMMARIES,
  takeParser,
  WRITE_NOTE,
} from "./story.ts"

const ORDER = /The agent \S+ passes this work over to you/
/** Compactions of the first session; each follows a run of the tests. */
const FIRST_COMPACTIONS = 3

const stepsMade = (conversation: string): number =>
  conversation.slice(conversation.lastIndexOf("[user]")).match(/^\[tool\] /gm)?.length ?? 0

const play = ({ steps, says }: Scene, conversation: string): ModelReply =>
  steps[stepsMade(conversation)] ?? { text: says }

/** What the user said last, or OpenCode in its place; a tool's answers are not in it. */
const newestMessage = (conversation: string): string =>
  conversation.slice(conversation.lastIndexOf("[user]")).split("\n\n[assistant]", 1).join()

const newestPass = (conversation: string): string => conversation.match(/\bpass_\d+_[0-9a-f]+/g)?.at(-1) ?? ""

/** What the agent says of itself comes from this request and from nowhere else. */
const withTask = (conversation: string, says: string): ModelReply => {
  const taskID = /\bts-[0-9a-f]{6}\b/.exec(conversation)?.[0]
  return { text: taskID ? `${says} That is ${taskID}.` : "I do not know what I am working on." }
}

/**
 * The agents of the tour. The one that the user speaks to fills its context as soon as it is asked to run the tests or to
 * write, so that it is compacted behind each of these steps.
 *
 * @param released what the first answer of the handed-over session waits for
 */
export const createTourAgent = (released: Promise<void>): Script => {
  let compactions = 0
  /** OpenCode 1.14 may compact twice before the next turn: that is told the same twice. */
  let isAgain = false
  const summary = (): ModelReply => {
    if (!isAgain) compactions++
    isAgain = true
    return { text: SUMMARIES[compactions - 1] ?? "" }
  }
  const afterCompaction = (conversation: string): ModelReply => {
    if (compactions < FIRST_COMPACTIONS) return { ...RUN_TESTS, promptTokens: COMPACTING_PROMPT_TOKENS }
    return withTask(conversation, compactions === FIRST_COMPACTIONS ? ANSWERS.tested : ANSWERS.written)
  }
  return async ({ kind, conversation }: ModelRequest): Promise<ModelReply> => {
    if (kind === "compaction") return summary()
    if (kind === "turn") isAgain = false
    if (ORDER.test(conversation.slice(0, 400))) {
      const order = conversation.slice(0, conversation.indexOf("# Context of the work"))
      const scene = SUBAGENT_SCENES.find(({ hears }) => order.includes(hears))
      return scene ? play(scene, conversation) : { text: "There is no such order." }
    }
    const spoken = newestMessage(conversation)
    if (spoken.includes("Continuing work from session") || spoken.includes(SAID.go)) {
      await released
      return withTask(conversation, ANSWERS.begun)
    }
    if (spoken.includes(SAID.take)) return play(takeParser(newestPass(conversation)), conversation)
    if (spoken.includes(SAID.test)) return { ...RUN_TESTS, promptTokens: COMPACTING_PROMPT_TOKENS }
    if (spoken.includes(SAID.write)) return { ...WRITE_NOTE, promptTokens: COMPACTING_PROMPT_TOKENS }
    const scene = SCENES.find(({ hears }) => spoken.includes(hears))
    return scene ? play(scene, conversation) : afterCompaction(conversation)
  }
}
