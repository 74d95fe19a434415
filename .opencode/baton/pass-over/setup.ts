import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import { loadZod } from "../host/schema.ts"
import { registerAgents } from "./agents.ts"
import { findSkillAgents } from "./skill-agents.ts"
import { createTools, type ToolDeps } from "./tools.ts"

/**
 * What OpenCode needs to know of the feature at its start, in a project that asks for it.
 *
 * @returns the tools
 * @throws when zod cannot be loaded
 */
export const setUp = async (
  config: Config,
  { projectRoot, log, load }: { projectRoot: string; log: Log } & ToolDeps,
): Promise<Record<string, ToolDefinition>> => {
  const [z, skills] = await Promise.all([loadZod(), findSkillAgents(projectRoot, log)])
  registerAgents(config, skills, log)
  return createTools(z, { load })
}
