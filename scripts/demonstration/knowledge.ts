import type { ModelRequest } from "../../test/support/scripted-model.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"

/** What an agent has to know before it can work, and whether a request tells it. */
export type Knowledge = Record<"task" | "role" | "specification" | "definitionOfDone" | "constraint", boolean>

export const knowledgeIn = (conversation: string, taskID: string): Knowledge => ({
  task: conversation.includes(taskID),
  role: /\brole: worker\b|^# worker\b/im.test(conversation),
  specification: conversation.includes(TASK.specification),
  definitionOfDone: conversation.includes(TASK.definitionOfDone),
  constraint: conversation.includes(CONSTRAINT),
})

export const isComplete = (knowledge: Knowledge): boolean => Object.values(knowledge).every(Boolean)

/** A request that is all the model can know at that moment: nothing of the conversation comes before it. */
export type FirstRequest = { after: "nothing" | "compaction"; conversation: string; knowledge: Knowledge }

/** The first request for a turn of each session, and the one after each compaction, in order. */
export const firstRequests = (
  requests: readonly Pick<ModelRequest, "kind" | "conversation" | "messages">[],
  taskID: string,
): FirstRequest[] =>
  requests
    .filter(({ kind }) => kind !== "title")
    .flatMap(({ kind, conversation, messages }, at, all) => {
      if (kind !== "turn") return []
      const isCompacted = all[at - 1]?.kind === "compaction"
      if (!isCompacted && messages.some(({ role }) => role === "assistant")) return []
      const after = isCompacted ? "compaction" : "nothing"
      return [{ after, conversation, knowledge: knowledgeIn(conversation, taskID) }]
    })
