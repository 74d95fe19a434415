import type { AgentInfo, ChildSessions } from "../host/child-sessions.ts"
import { evaluate } from "../host/permissions.ts"
import type { AgentAndModel, Sessions } from "../host/sessions.ts"
import { rulesForPasses } from "./agents.ts"
import type { RefusedPass } from "./audit/log.ts"
import type { ActivePass, Prepared } from "./child/active-pass.ts"
import type { CollectedContext } from "./child/context.ts"
import { isReader } from "./child/permissions.ts"
import type { PassOverArguments, PassOverRequest } from "./contract.ts"
import { type PassOverError, passOverError } from "./errors.ts"
import { checkChain, readChain, unreadableChain } from "./policy/chain.ts"
import type { readPolicy } from "./policy/policy.ts"
import { resolvePolicy } from "./policy/resolve.ts"
import { cacheKeyOf, type Question } from "./store/passes.ts"

export type PassCall = {
  readonly sessionID: string
  readonly messageID: string
  readonly agent: string
  readonly args: PassOverArguments
}

type Ready = { readonly kind: "ready"; readonly prepared: Prepared }
type Refused = { readonly kind: "refused"; readonly error: PassOverError }

export type Preparation = Ready | (Refused & { readonly refusal: RefusedPass; readonly isAudited: boolean })

type PrepareDeps = {
  readonly sessions: Pick<Sessions, "parent" | "messages">
  readonly childSessions: Pick<ChildSessions, "agents" | "parentAndPermissions">
  readonly readPolicy: () => ReturnType<typeof readPolicy>
  readonly gather: (call: PassCall) => Promise<CollectedContext>
  /** Returns the pass that the caller itself works on, and its limits. */
  readonly passOf: (sessionID: string) => Pick<ActivePass, "id" | "limits" | "state" | "boundary"> | undefined
  /** Returns the model of a session whose newest message names none. */
  readonly findModel: (sessionID: string) => Promise<AgentAndModel["model"] | undefined>
  readonly now: () => Date
  readonly createID: (at: Date) => string
}

const refused = (error: PassOverError): Refused => ({ kind: "refused", error })

const timedOutError = (passID: string): PassOverError =>
  passOverError("E010", {
    message: "The pass that you work on has timed out: nothing is passed on from it",
    cause: `timeout_ms of ${passID} is over, and its originator has gone on`,
    nextStep: "Do the rest yourself, and return with pass_over_return.",
  })

const canReceive = ({ mode, isHidden }: AgentInfo): boolean => mode !== "primary" && !isHidden

const definitionOf = ({ name, description, prompt, permission, model }: AgentInfo): Question["definition"] =>
  JSON.stringify({ name, description, prompt, permission, model })

/** Reads what every call needs anew. */
const readInputs = async ({ readPolicy, childSessions, sessions }: PrepareDeps, { sessionID, agent }: PassCall) => {
  const [policyRead, agents, own, chain] = await Promise.all([
    readPolicy(),
    childSessions.agents(),
    childSessions.parentAndPermissions(sessionID),
    readChain(sessions, { agent, session_id: sessionID }),
  ])
  return { policyRead, agents, own, chain }
}

type Inputs = Awaited<ReturnType<typeof readInputs>>

/** Checks everything before anything is created: policy, subagent, chain, permissions. */
export const preparePass = async (deps: PrepareDeps, call: PassCall): Promise<Preparation> => {
  // Most calls are allowed, so the context is read in parallel with the checks.
  const gathering = deps.gather(call)
  gathering.catch(() => {})
  const around = await readInputs(deps, call)
  const judged = await checkRequest(deps, call, around, gathering)
  if (judged.kind === "ready") return judged
  const { policyRead, chain } = around
  const stack = chain.kind === "unreadable" ? [] : chain.stack
  const refusal: RefusedPass = {
    pass_over_id: deps.createID(deps.now()),
    root_session_id: stack[0]?.session_id ?? call.sessionID,
    originating_session_id: call.sessionID,
    originating_agent: call.agent,
    subagent: call.args.subagent,
    reason: call.args.reason,
    chain_depth: stack.length,
  }
  // An unreadable policy does not switch the audit off.
  return { ...judged, refusal, isAudited: policyRead.kind === "unusable" || policyRead.file.audit_log.enabled }
}

const checkRequest = async (
  deps: PrepareDeps,
  call: PassCall,
  around: Inputs,
  gathering: Promise<CollectedContext>,
): Promise<Ready | Refused> => {
  const { args, sessionID, agent } = call
  const { policyRead, agents, own, chain } = around
  const above = deps.passOf(sessionID)
  if (policyRead.kind === "unusable") return refused(policyRead.error)
  if (chain.kind === "unreadable") return refused(unreadableChain(chain.cause))
  if (agents.kind === "failed") return refused(unreadableChain(agents.reason))
  if (own.kind === "failed") return refused(unreadableChain(own.reason))
  const resolution = resolvePolicy({
    file: policyRead.file,
    originator: agent,
    subagent: args.subagent,
    override: args.override,
    inherited: above && { ...above.limits, sandbox: above.boundary ? "os" : "copy" },
  })
  if (resolution.kind === "refused") return resolution
  const { policy, note } = resolution
  const known = agents.value.filter(canReceive)
  const broken = checkChain({
    stack: chain.stack,
    subagent: args.subagent,
    knownAgents: known.map(({ name }) => name),
    canReceivePasses: policy.values.can_receive_passes,
    maxDepth: policy.values.max_chain_depth,
  })
  if (broken) return refused(broken)
  const subagent = known.find(({ name }) => name === args.subagent)
  const caller = agents.value.find(({ name }) => name === agent)
  if (!subagent || !caller) return refused(unreadableChain(`OpenCode does not list the agent ${agent}`))
  // The user's rules for OpenCode's own subagents apply here too. A session of a pass is denied those, yet may pass work on.
  const originatorRules = [...caller.permission, ...own.value.permission]
  const taskRules = above ? caller.permission : originatorRules
  if (evaluate(rulesForPasses(taskRules, subagent), "task", subagent.name) === "deny") {
    const cause = `The permission "task" denies ${subagent.name} to ${agent}`
    return refused(passOverError("E001", { message: `${agent} may not pass work to ${subagent.name}`, cause }))
  }
  if (above?.state.originator === "timed_out") return refused(timedOutError(above.id))
  const gathered = await gathering
  const context = gathered.fitToBudget(policy.values.max_context_tokens)
  const model = subagent.model ?? gathered.model ?? (await deps.findModel(sessionID))
  const at = deps.now()
  const request: PassOverRequest = {
    pass_over_id: deps.createID(at),
    originating_agent_id: agent,
    originating_session_id: sessionID,
    subagent_id: args.subagent,
    reason: args.reason,
    work_context: context,
    return_required: args.return_required ?? true,
    async: args.async ?? false,
    ...(args.override ? { override: args.override } : {}),
    metadata: {
      chain_depth: chain.stack.length,
      origination_chain: chain.stack,
      root_session_id: chain.stack[0]?.session_id ?? sessionID,
      created_at: at.toISOString(),
      completed_at: null,
      policy_name: policy.name,
      attempts: 0,
      cached_from: null,
    },
  }
  const question: Question = { subagent: subagent.name, definition: definitionOf(subagent), context }
  return {
    kind: "ready",
    prepared: {
      request,
      policy,
      subagent,
      originatorRules,
      model,
      cacheKey: policy.values.cache ? cacheKeyOf(question) : null,
      audit: policyRead.file.audit_log,
      canChange: policy.values.can_modify_files && policy.values.can_run_tools && !isReader(subagent.permission),
      parentPass: above?.id,
      note,
    },
  }
}
