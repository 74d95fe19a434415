import type { Config } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import type { SkillAgent } from "./skill-agents.ts"
import { RETURN_TOOL } from "./tool-names.ts"

/** Asked before a result goes back, where the policy says so. */
export const RESULT_PERMISSION = "pass_over_result"

type Action = "allow" | "ask" | "deny"
type Rules = Record<string, Action | Record<string, Action>>

/** OpenCode reads far more permissions than the SDK's types name. */
type Agent = { mode: "subagent"; description: string; prompt: string; permission: Rules }

const READING: Rules = {
  "*": "deny",
  read: { "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow" },
  glob: "allow",
  grep: "allow",
  list: "allow",
  lsp: "allow",
  external_directory: "deny",
  [RETURN_TOOL]: "allow",
}

const AUDIT: Agent = {
  mode: "subagent",
  description: "Reviews code and plans that are passed over to it. Reads, changes nothing, and returns a decision.",
  prompt: `You review work that another agent passes over to you. You can read, not change.

Look at what you were given and at what it touches. Look for what is wrong before what is unusual: behaviour that differs
from the objective, cases not handled, errors swallowed, data lost, security. Check every claim against the code.

Return with pass_over_return: decision "approved" or "changes_requested", one finding for each fault with severity, path and
line, and a fix where you know one. Report nothing that you did not verify, and no matters of taste.`,
  permission: READING,
}

const SCOUT: Agent = {
  mode: "subagent",
  description:
    "Explores the project for whoever passes a question over to it. Reads, changes nothing, and returns what it found.",
  prompt: `You find things out for another agent. You can read, not change.

Search widely, then read what matters. Stop when the question is answered.

Return with pass_over_return: the answer as summary, one finding of severity "info" for each place that matters with path and
line, and what you looked for and did not find.`,
  permission: READING,
}

const READY_MADE: Readonly<Record<string, Agent>> = { audit: AUDIT, scout: SCOUT }

const withReturn = (permission: unknown): unknown =>
  typeof permission === "object" && permission !== null && "*" in permission && !(RETURN_TOOL in permission)
    ? { ...permission, [RETURN_TOOL]: "allow" }
    : permission

/**
 * Adds the skills that ask to be subagents and the ready-made agents to OpenCode's configuration; a name that the user has
 * keeps what the user has. An agent that is denied everything by `"*": "deny"` may still return.
 */
export const registerAgents = (
  config: Config,
  skills: readonly SkillAgent[],
  log: Pick<Log, "info" | "warn">,
): void => {
  const agents: Record<string, unknown> = { ...config.agent }
  for (const { name, permission, ...skill } of skills) {
    if (agents[name] !== undefined) log.warn("an agent of this name is there already: the skill is left out", { name })
    else agents[name] = { mode: "subagent", ...skill, ...(permission === undefined ? {} : { permission }) }
  }
  for (const [name, agent] of Object.entries(READY_MADE)) {
    if (agents[name] === undefined) agents[name] = agent
    else log.info("the user has an agent of this name: the ready-made one is left out", { name })
  }
  for (const agent of Object.values(agents)) {
    if (typeof agent === "object" && agent !== null && "permission" in agent)
      agent.permission = withReturn(agent.permission)
  }
  const settings: { agent?: unknown; permission?: unknown } = config
  settings.agent = agents
  settings.permission = permissionWithResult(settings.permission)
}

/** The user's own rules, with those that the feature needs where the user has none. */
const permissionWithResult = (given: unknown): Record<string, unknown> => {
  const own =
    typeof given === "string" ? { "*": given } : typeof given === "object" && given !== null ? { ...given } : {}
  // Who allows everything by a rule of their own wants no dialogs.
  const asks = RESULT_PERMISSION in own || "*" in own ? {} : { [RESULT_PERMISSION]: "ask" }
  return { ...own, ...asks, ...(RETURN_TOOL in own ? {} : { [RETURN_TOOL]: "allow" }) }
}
