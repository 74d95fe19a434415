/** The common import of unit tests: random values, folders, and stand-ins for OpenCode's sessions, the log and a task. */

export { openTestState, temporaryFolder } from "./files/with-test.ts"
export { forAll } from "./for-all.ts"
export { handoffRecord } from "./handoff-record.ts"
export { createMemoryStore, createSlowStore } from "./memory-store.ts"
export { createFakeSessions, type FakeSession } from "./opencode/fake-sessions.ts"
export { asksToCompact, assistantMessage, textPart, userMessage, userSays } from "./opencode/stored-messages.ts"
export { createRecordedLog, type LogLine } from "./recorded-log.ts"
export { BINDING, recordOf } from "./task-binding.ts"
export { taskWords, userWords } from "./user-words.ts"
