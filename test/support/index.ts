/** The common import of end-to-end tests: OpenCode, the scripted model, the ledger, and waiting for events. */

export { snapshotTree } from "./files/folder-tree.ts"
export {
  COMPACTING_PROMPT_TOKENS,
  COMPACTING_STEP,
  measureRetention,
  retentionScript,
  type Summariser,
} from "./model/retention.ts"
export {
  bash,
  isCompacted,
  type ModelReply,
  type ModelRequest,
  newestOrder,
  newestWords,
  occurrences,
  type Script,
  type ScriptedModel,
  startScriptedModel,
} from "./model/scripted-model.ts"
export { deadline } from "./opencode/deadline.ts"
export {
  casesOf,
  endsOf,
  IS_NIGHT,
  linesOf,
  NEWEST_LINES,
  NEWEST_OR_ALL,
  OLDEST_OR_ALL,
  offers,
  testsOn,
  testsOnce,
} from "./opencode/ends.ts"
export {
  ALL_LINES,
  BOTH_ENDS,
  canToolsAsk,
  NEWEST,
  type OpenCodeBinary,
  REPOSITORY,
} from "./opencode/opencode-binary.ts"
export { killOpenCode, type RunResult, runOpenCode } from "./opencode/opencode-run.ts"
export { eventually, startServer, type TestServer } from "./opencode/opencode-server.ts"
export {
  BRIEF,
  closeTaskProjects,
  LEDGER_WAIT_MS,
  MODEL,
  newestSessionID,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  TASK,
  type TaskProject,
} from "./opencode/task-project.ts"
