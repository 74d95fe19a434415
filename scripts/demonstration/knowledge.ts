import type { ModelRequest } from "../../test/support/scripted-model.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"

/** What an agent has to know after a compaction, and whether a request tells it. */
export type Knowledge = { task: boolean; role: boolean; definitionOfDone: boolean; constraint: boolean }

export const knowledgeIn = (conversation: string, taskID: string): Knowledge => ({
  task: conversation.includes(taskID),
  role: /\brole: worker\b|^# worker\b/im.test(conversation),
  definitionOfDone: conversation.includes(TASK.definitionOfDone),
  constraint: conversation.includes(CONSTRAINT),
})

export const isComplete = (knowledge: Knowledge): boolean => Object.values(knowledge).every(Boolean)

/**
 * What the first request for a turn after each compaction tells: all that the model can know at that moment.
 */
export const turnsAfterCompactions = (
  requests: readonly Pick<ModelRequest, "kind" | "conversation">[],
  taskID: string,
): Knowledge[] =>
  requests.flatMap((request, at) => {
    if (request.kind !== "compaction") return []
    const next = requests.slice(at + 1).find(({ kind }) => kind === "turn")
    return next ? [knowledgeIn(next.conversation, taskID)] : []
  })
