import type { Config, ToolContext, ToolDefinition } from "@opencode-ai/plugin"
import type { infer as Infer, ZodObject, ZodType } from "zod"
import type { Log } from "../host/log.ts"
import { disableTools } from "../host/messages.ts"
import { loadZod, validated, type Zod } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { findSkillAgents, registerAgents } from "./agents.ts"
import { APPLY_TOOL, contractSchemas, PASS_TOOL, REJECT_TOOL, RETURN_TOOL, STATUS_TOOL } from "./contract.ts"
import type { PassOverFeature } from "./feature.ts"
import { policyPartSchema } from "./policy/policy.ts"

/** Schemas of the tools' arguments; those of pass_over_return are in the contract. */
const toolArguments = (z: Zod) => {
  const text = z.string().trim().min(1)
  return {
    pass_over: z.strictObject({
      subagent: text,
      objective: text,
      reason: text.max(2_000),
      files: z.array(text).max(100).optional(),
      messages: z.number().int().min(0).max(50).optional(),
      background: z.string().optional(),
      expected: z.string().optional(),
      return_required: z.boolean().optional(),
      async: z.boolean().optional(),
      override: policyPartSchema(z).optional(),
    }),
    pass_over_apply: z.strictObject({
      pass_over_id: text,
      artifacts: z.array(text).min(1).optional().describe("Only these files, by path"),
      merge: z.boolean().optional().describe("Merge files that changed meanwhile, where that is clean"),
      all_or_nothing: z.boolean().optional().describe("false: apply what can be applied (default true)"),
    }),
    pass_over_reject: z.strictObject({
      pass_over_id: text,
      artifacts: z.array(text).min(1).optional().describe("Only these files, by path"),
      reason: z.string().optional(),
    }),
    pass_over_status: z.strictObject({
      pass_over_id: text.optional().describe("One pass in full; without it, the passes of this session"),
    }),
  }
}

type Arguments = ReturnType<typeof toolArguments>

export type PassOverArguments = Infer<Arguments["pass_over"]>
export type ApplyArguments = Infer<Arguments["pass_over_apply"]>
export type RejectArguments = Infer<Arguments["pass_over_reject"]>
export type StatusArguments = Infer<Arguments["pass_over_status"]>

/**
 * The arguments of pass_over as every request of every session has them: `toolArguments` checks them, and says what is wrong. At most
 * 1,600 characters with the description, on each version of OpenCode.
 */
const offeredArguments = (z: Zod) => {
  const text = (about: string) => z.string().describe(about)
  return {
    subagent: text("Agent that gets the work"),
    objective: text("What is to be done, complete in itself"),
    reason: text("Why, in a few words, such as code_review"),
    files: z.array(z.string()).optional().describe("Paths to send along"),
    messages: z.number().optional().describe("How many of the newest messages go along, default 4"),
    background: text("What led here").optional(),
    expected: text("What you want back").optional(),
    return_required: z.boolean().optional().describe("false: keep the result, do not tell me"),
    async: z.boolean().optional().describe("true: go on at once, be told later"),
    override: z.looseObject({}).optional().describe("Policy for this pass, narrower only, such as timeout_ms"),
  }
}

const PASS_DESCRIPTION = `Passes work over to another agent in a session of its own: audit reviews, scout explores, or any subagent. Returns its decision, findings with their place, and the files it changed, which are pending until you apply or reject them.

Use it for a review, an exploration, or a piece of work that stands by itself, not for a few steps. The agent knows only what this call says.`

const RETURN_DESCRIPTION =
  "Returns the result of the work that was passed over to you. Call it once, when you are done, and end your turn after it. Files that you changed are seen by program."

const APPLY_DESCRIPTION =
  "Applies the pending files of a pass to the worktree. A file that changed meanwhile is refused; nothing is overwritten."

const REJECT_DESCRIPTION = "Rejects the pending files of a pass. The worktree stays as it is."

const STATUS_DESCRIPTION = "Tells what became of the passes of this session, or of one of them in full."

type ToolDeps = { readonly load: () => Promise<PassOverFeature> }

const createTools = (z: Zod, { load }: ToolDeps): Record<string, ToolDefinition> => {
  const schemas = toolArguments(z)
  const define = <Arguments>(
    description: string,
    schema: ZodType<Arguments> & Pick<ZodObject, "shape">,
    toolOf: (feature: PassOverFeature) => (args: Arguments, context: ToolContext) => Promise<string>,
  ): ToolDefinition => ({
    description,
    args: schema.shape,
    execute: validated(
      () => schema,
      async (args, context) => toolOf(await load())(args, context),
    ),
  })
  return {
    [PASS_TOOL]: {
      ...define(PASS_DESCRIPTION, schemas.pass_over, ({ pass }) => pass),
      args: offeredArguments(z),
    },
    [RETURN_TOOL]: {
      description: RETURN_DESCRIPTION,
      args: contractSchemas(z).returnArguments.shape,
      // The pass counts invalid returns, so arguments are checked there.
      execute: async (args, context) => (await load()).return(args, context),
    },
    [APPLY_TOOL]: define(APPLY_DESCRIPTION, schemas.pass_over_apply, ({ apply }) => apply),
    [REJECT_TOOL]: define(REJECT_DESCRIPTION, schemas.pass_over_reject, ({ reject }) => reject),
    [STATUS_TOOL]: define(STATUS_DESCRIPTION, schemas.pass_over_status, ({ status }) => status),
  }
}

/** The tools that a session without a pass cannot use. */
const UNUSED = [RETURN_TOOL, APPLY_TOOL, REJECT_TOOL, STATUS_TOOL]

/** Leaves a session that neither makes nor works on a pass its one tool. */
export const offerPassAlone = (messages: readonly StoredMessage[]): void => disableTools(messages, UNUSED)

/**
 * Registers the feature at OpenCode's start, in a project that enables it.
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
