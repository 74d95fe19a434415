/** The events that say something about the published state; all others, a token delta above all, end at this set. */
export const OBSERVED_EVENTS: ReadonlySet<string> = new Set([
  "session.created",
  "session.deleted",
  "session.idle",
  "session.status",
  "session.compacted",
  "command.executed",
  "message.updated",
  "permission.asked",
  // Other versions' name for the same.
  "permission.updated",
  "permission.replied",
  "question.asked",
  "question.replied",
  "question.rejected",
])
