import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { RefusedPass } from "../../../.opencode/baton/pass-over/audit/log.ts"
import { type ActivePass, type Prepared, startingState } from "../../../.opencode/baton/pass-over/child/active-pass.ts"
import type {
  FileModification,
  PassOverRequest,
  WorkContext,
  WorkOutput,
} from "../../../.opencode/baton/pass-over/contract.ts"
import { type ResolvedPolicy, resolvePolicy } from "../../../.opencode/baton/pass-over/policy/resolve.ts"
import { type PassRecord, type PassState, SENT } from "../../../.opencode/baton/pass-over/store/record.ts"

/** Valid values of the contract, for tests of one part of them. */

export const PASS_ID = "pass_20260101102030000_abcd"

export const passMetadata = (change: Partial<PassOverRequest["metadata"]> = {}): PassOverRequest["metadata"] => ({
  chain_depth: 1,
  origination_chain: [{ agent: "build", session_id: "ses_root" }],
  root_session_id: "ses_root",
  created_at: "2026-01-01T10:20:30.000Z",
  completed_at: null,
  policy_name: "built-in",
  attempts: 0,
  cached_from: null,
  ...change,
})

export const workContext = (change: Partial<WorkContext> = {}): WorkContext => ({
  objective: "Review the change",
  files: [],
  messages: [],
  tool_results: [],
  todos: [],
  task: null,
  left_out: [],
  ...change,
})

export const passRequest = (change: Partial<PassOverRequest> = {}): PassOverRequest => ({
  pass_over_id: PASS_ID,
  originating_agent_id: "build",
  originating_session_id: "ses_root",
  subagent_id: "audit",
  reason: "code_review",
  work_context: workContext(),
  return_required: true,
  async: false,
  metadata: passMetadata(),
  ...change,
})

export const workOutput = (change: Partial<WorkOutput> = {}): WorkOutput => ({
  pass_over_id: PASS_ID,
  return_to: "build",
  status: "completed",
  child_session_id: "ses_child",
  source: "return",
  summary: { text: "All is well.", decision: "approved", findings: [], recommendations: [] },
  artifacts: [],
  reading: { files: 2, searches: 0, commands: 0, sent: 0 },
  refused: [],
  left_out: [],
  error: null,
  metadata: passMetadata({ completed_at: "2026-01-01T10:21:00.000Z", attempts: 1 }),
  ...change,
})

export const fileModification = (change: Partial<FileModification> = {}): FileModification => ({
  type: "file_modification",
  path: "a.ts",
  change: "added",
  old_content: null,
  new_content: "x",
  is_binary: false,
  is_large: false,
  old_hash: null,
  new_hash: "1",
  old_mode: null,
  new_mode: "100644",
  by: "tool",
  ...change,
})

export const builtInPolicy = (change: Partial<ResolvedPolicy["values"]> = {}): ResolvedPolicy => {
  const file = { defaults: {}, pairs: {}, subagents: {} }
  const resolution = resolvePolicy({ file, originator: "build", subagent: "audit" })
  if (resolution.kind === "refused") throw new Error(resolution.error.message)
  return { ...resolution.policy, values: { ...resolution.policy.values, ...change } }
}

/** The state of a pass that is back, without files to decide on. */
export const returnedState = (change: Partial<Extract<PassState, { is_late: boolean }>> = {}): PassState => ({
  state: "returned",
  is_late: false,
  undecided: [],
  applied: [],
  rejected: [],
  ...change,
})

/** A pass that was just sent. */
export const passRecord = (change: Partial<PassRecord> = {}): PassRecord => ({
  version: 1,
  request: passRequest(),
  policy: builtInPolicy(),
  state: SENT,
  history: [{ at: "2026-01-01T10:20:30.000Z", state: "sent" }],
  attempts: 0,
  child_session_id: null,
  output: null,
  announced_at: null,
  released_at: null,
  released_by: null,
  can_change: true,
  cache_key: null,
  is_audited: true,
  ...change,
})

/** A checked request, with everything that its pass needs. */
export const preparedPass = (values: Partial<ResolvedPolicy["values"]> = {}, request = passRequest()): Prepared => ({
  request,
  policy: builtInPolicy(values),
  subagent: { name: "audit", description: "", prompt: "", mode: "subagent", isHidden: false, permission: [] },
  originatorRules: [],
  model: undefined,
  cacheKey: null,
  audit: { enabled: true, retention_days: 1 },
  parentPass: undefined,
  note: undefined,
  canChange: true,
})

/** A pass whose child is at work. */
export const activePass = (change: Partial<ActivePass> = {}): ActivePass => ({
  id: PASS_ID,
  prepared: preparedPass(),
  sandbox: undefined,
  boundary: undefined,
  skipped: [],
  limits: { can_modify_files: true, can_run_tools: true },
  attemptMs: undefined,
  stopping: new AbortController(),
  workDone: createDeferred(),
  finished: createDeferred(),
  state: startingState(Promise.resolve(undefined)),
  ...change,
})

/** The known fields of a refused pass. */
export const refusedPass = (): RefusedPass => ({
  pass_over_id: PASS_ID,
  root_session_id: "ses_root",
  originating_session_id: "ses_root",
  originating_agent: "build",
  subagent: "audit",
  reason: "code_review",
  chain_depth: 1,
})
