import { FULL_TOKENS } from "../opencode/tokens-2.ts"
import { factNumber, factsIn } from "./retention.ts"
import { bash, type ModelRequest, type Script } from "./scripted-model.ts"

const lastText = ({ messages }: Pick<ModelRequest, "messages">): string => {
  const content = messages.at(-1)?.content
  return typeof content === "string" ? content : JSON.stringify(content).replaceAll("\\n", "\n")
}

/** The headings that OpenCode 2's own request for a summary wants; none where the request is Baton's. */
export const headingsWanted = (request: Pick<ModelRequest, "messages">): string[] => {
  const asked = lastText(request)
  return /<!-- baton:handoff|^# Write the handoff/m.test(asked) ? [] : (asked.match(/^## .*$/gm) ?? [])
}

/** A summary for the prompt that was sent: Baton's, or OpenCode 2's own, whose headings must all be in the answer. */
export const inForm = (request: Pick<ModelRequest, "messages">, text: string): string => {
  const wanted = headingsWanted(request)
  const headings = wanted.length > 0 ? wanted : ["## Done"]
  return [...new Set(headings)].map((heading) => `${heading}\n\n${text}`).join("\n\n")
}

export const SUMMARISERS_2 = ["faithful", "careless in form", "careless", "empty", "refusing"] as const
export type Summariser2 = (typeof SUMMARISERS_2)[number]

const CARELESS = "Some work was done and it went fine."
const SUMMARIES: Record<Summariser2, (request: ModelRequest) => string> = {
  faithful: (request) => {
    const ids = new Set(request.conversation.match(/\bts-[0-9a-f]{6}\b/g) ?? [])
    return inForm(request, [...factsIn(request.conversation), ...ids].map((fact) => `- ${fact}`).join("\n"))
  },
  "careless in form": (request) => inForm(request, CARELESS),
  careless: () => CARELESS,
  empty: () => "",
  refusing: () => "I'm sorry, but I can't assist with that request.",
}

/** An agent that reads one new fact a step and is compacted after each; then it reports. */
export const retentionScript2 = (compactions: number, summariser: Summariser2): Script => {
  let step = 0
  return (request) => {
    if (request.kind === "compaction") return { text: SUMMARIES[summariser](request) }
    const index = step++
    if (index >= compactions) return { text: "Finished." }
    return bash(`echo ${factNumber(index)}`, FULL_TOKENS)
  }
}

/** Counts what the model was sent: turns after a compaction, those of them that name the task, facts in the last turn's request. */
export const measureRetention2 = (requests: readonly ModelRequest[], taskID: string) => {
  const turns = requests.filter(({ kind }) => kind === "turn")
  const later = turns.slice(1)
  return {
    lived: later.length,
    named: later.filter(({ conversation }) => conversation.includes(taskID)).length,
    facts: factsIn(turns.at(-1)?.conversation ?? "").length,
  }
}
