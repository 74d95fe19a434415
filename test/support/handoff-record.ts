import type { HandoffRecord } from "../../.opencode/baton/handoff/records.ts"

/** A handoff of one session to others. */
export const handoffRecord = (
  from: string,
  to: readonly string[] = [],
  change: Partial<HandoffRecord> = {},
): HandoffRecord => ({
  version: 1,
  id: from,
  createdAt: "2026-01-01T10:20:00.000Z",
  from,
  goal: "Go\non",
  draft: "",
  files: [],
  leftOut: [],
  said: { words: [], leftOut: 0 },
  arrivals: to.map((sessionID) => ({ sessionID, at: "2026-01-01T10:21:00.000Z" })),
  ...change,
})
