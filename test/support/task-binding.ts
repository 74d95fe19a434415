import type { SessionTask } from "../../.opencode/baton/task/registry.ts"

export const BINDING: SessionTask = {
  version: 1,
  sessionID: "ses_1",
  taskID: "ts-b54507",
  role: "worker",
  hasRoleHeading: true,
  brief: "Mind the lexer.",
  origin: "message",
  boundAt: "2026-01-01T00:00:00.000Z",
}
