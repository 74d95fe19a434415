import type { SessionTask } from "../../.opencode/baton/task/registry.ts"
import type { TaskRecord } from "../../.opencode/baton/task/session-task.ts"
import { taskWords } from "./user-words.ts"

export const BINDING: SessionTask = {
  sessionID: "ses_1",
  taskID: "ts-b54507",
  role: "worker",
  hasRoleHeading: true,
  messageID: "msg_0",
  origin: "message",
  boundAt: "2026-01-01T00:00:00.000Z",
  said: taskWords("Mind the lexer."),
}

/** The record that gives a session this task. */
export const recordOf = ({ sessionID, said, order, ...step }: SessionTask): TaskRecord => ({
  version: 1,
  sessionID,
  steps: [step],
  words: { [step.taskID]: { words: [...said.words], leftOut: said.leftOut } },
  ...(order === undefined ? {} : { order }),
})
