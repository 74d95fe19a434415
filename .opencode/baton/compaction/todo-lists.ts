import type { Todo } from "@opencode-ai/sdk"
import { createRecentMap } from "../host/recent-map.ts"
import type { Answer, Sessions } from "../host/sessions.ts"

/** The sessions' todos: asked for once, then kept by OpenCode's own events, so that a compaction need not ask. */
export type TodoLists = {
  /** The event todo.updated. */
  updated(sessionID: string, todos: readonly Todo[]): void
  find(sessionID: string): Promise<Answer<readonly Todo[]>>
  forget(sessionID: string): void
}

export const createTodoLists = (sessions: Pick<Sessions, "todos">): TodoLists => {
  const known = createRecentMap<readonly Todo[]>()
  return {
    updated: (sessionID, todos) => {
      known.set(sessionID, todos)
    },
    find: async (sessionID) => {
      const kept = known.get(sessionID)
      if (kept) return { kind: "answer", value: kept }
      const answer = await sessions.todos(sessionID)
      // An event that came meanwhile is newer than the answer.
      if (answer.kind === "answer" && !known.has(sessionID)) known.set(sessionID, answer.value)
      return answer
    },
    forget: (sessionID) => {
      known.delete(sessionID)
    },
  }
}
