import { bash, type ModelReply, type ModelRequest, type Script } from "./scripted-model.ts"

export type Summariser = "faithful" | "careless" | "empty" | "foreign"

const FACT = /FACT-\d+-[0-9a-f]{6}/g
const TASK_ID = /\b(?:ts|ep)-[0-9a-f]{6}\b/gi

export const factsIn = (text: string): string[] => [...new Set(text.match(FACT) ?? [])]

/** A fact that no summariser can guess. The same index gives the same fact. */
export const factNumber = (index: number): string =>
  `FACT-${index}-${(((index + 1) * 2_654_435_761) % 0xffffff).toString(16).padStart(6, "0")}`

const SUMMARIES: Record<Exclude<Summariser, "faithful">, string> = {
  careless: "Some work was done and it went fine.",
  empty: "",
  foreign: "作業は進んでいます。問題はありません。",
}

/** A faithful summariser repeats all facts and ids in its request, and nothing else. */
const summarise = (summariser: Summariser, request: ModelRequest): string => {
  if (summariser !== "faithful") return SUMMARIES[summariser]
  const ids = new Set(request.conversation.match(TASK_ID) ?? [])
  return ["## Done", ...factsIn(request.conversation), ...ids].join("\n- ")
}

export type WordSummariser = "faithful" | "careless" | "empty" | "refusing"

const WORD = /WORD-\d+-[0-9a-f]{6}/g

/** A further instruction of the user's that no summariser can guess. */
export const laterWord = (index: number): string =>
  `${factNumber(index).replace("FACT", "WORD")} must hold from now on.`

/** An agent that notes what the user says, and a summariser of one kind. */
export const wordsScript =
  (summariser: WordSummariser): Script =>
  ({ kind, conversation }) => {
    if (kind !== "compaction") return { text: "Noted." }
    const words = [...new Set(conversation.match(WORD) ?? [])]
    const texts: Record<WordSummariser, string> = {
      faithful: [
        "## Done",
        "- none",
        "## Constraints and decisions that must persist",
        ...words.map((word) => `- ${word}`),
      ].join("\n"),
      careless: SUMMARIES.careless,
      empty: "",
      refusing: "I'm sorry, but I can't assist with that request.",
    }
    return { text: texts[summariser] }
  }

const NEWEST = 5

/** Counts the user's later instructions in the last turn's request. */
export const measureWords = (requests: readonly ModelRequest[], said: number) => {
  const last = requests.findLast(({ kind }) => kind === "turn")?.conversation ?? ""
  const shown = Array.from({ length: said }, (_, index) => last.includes(laterWord(index).split(" ")[0] ?? ""))
  const count = (all: readonly boolean[]): number => all.filter(Boolean).length
  return { kept: count(shown), newest: count(shown.slice(-NEWEST)) }
}

/** Usage just under a context of 20,000 tokens with 2,000 of output: OpenCode compacts after this reply. */
export const COMPACTING_PROMPT_TOKENS = 19_700

/** A step after which OpenCode compacts. */
export const COMPACTING_STEP: ModelReply = bash("true", COMPACTING_PROMPT_TOKENS)

/**
 * An agent that reads one new fact per step and is compacted after each of the first `compactions` steps; then it reports and
 * stops.
 *
 * @param promptTokens of a step that fills the context
 */
export const retentionScript = (
  compactions: number,
  summariser: Summariser,
  promptTokens = COMPACTING_PROMPT_TOKENS,
): Script => {
  let step = 0
  return (request): ModelReply => {
    if (request.kind === "compaction") return { text: summarise(summariser, request) }
    const index = step++
    if (index >= compactions) return { text: "Finished." }
    return bash(`echo ${factNumber(index)}`, promptTokens)
  }
}

/** Computes the outcome from the model's requests. */
export const measureRetention = (requests: readonly ModelRequest[], taskID: string) => {
  const turns = requests.filter((request) => request.kind === "turn")
  const afterCompaction = turns.slice(1)
  return {
    compactions: requests.filter((request) => request.kind === "compaction").length,
    /** Facts that the last turn's request still shows. */
    factsKept: factsIn(turns.at(-1)?.conversation ?? "").length,
    /** Turns right after a compaction whose request names the task. */
    turnsKnowingTask: afterCompaction.filter((turn) => turn.conversation.includes(taskID)).length,
  }
}
