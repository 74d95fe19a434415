import type { ToolContext, ToolDefinition } from "@opencode-ai/plugin"
import type { ZodObject, ZodType } from "zod"
import { withCheckedArguments, type Zod } from "../host/schema.ts"
import { contractSchemas } from "./contract.ts"
import type { PassOverFeature } from "./feature.ts"
import { toolArguments } from "./tool-arguments.ts"
import { APPLY_TOOL, PASS_TOOL, REJECT_TOOL, RETURN_TOOL, STATUS_TOOL } from "./tool-names.ts"

const PASS_DESCRIPTION = `Passes work over to another agent, which works in a session of its own and returns a structured result: decision, findings with their place, and the files it changed. Its changes are held back until you apply or reject them, unless the user's policy says otherwise.

Use it for a review, an exploration, or a piece of work that stands by itself. Say everything the agent has to know in objective and background, and name the files it needs. Do not pass on what you can do in a few steps.`

const RETURN_DESCRIPTION =
  "Returns the result of the work that was passed over to you. Call it once, when you are done, and end your turn after it. Files that you changed are seen by program."

const APPLY_DESCRIPTION =
  "Puts the files that a pass changed and that are held back into the worktree. A file that changed meanwhile is refused; nothing is overwritten."

const REJECT_DESCRIPTION = "Gives up the files that a pass changed and that are held back. The worktree stays as it is."

const STATUS_DESCRIPTION = "Tells what became of the passes of this session, or of one of them in full."

export type ToolDeps = { readonly load: () => Promise<PassOverFeature> }

/** The tools as OpenCode wants them. */
export const createTools = (z: Zod, { load }: ToolDeps): Record<string, ToolDefinition> => {
  const schemas = toolArguments(z)
  const define = <Arguments>(
    description: string,
    schema: ZodType<Arguments> & Pick<ZodObject, "shape">,
    run: (feature: PassOverFeature, args: Arguments, context: ToolContext) => Promise<string>,
  ): ToolDefinition => ({
    description,
    args: schema.shape,
    execute: withCheckedArguments(
      () => schema,
      async (args, context) => run(await load(), args, context),
    ),
  })
  return {
    [PASS_TOOL]: define(PASS_DESCRIPTION, schemas.pass_over, (feature, args, context) => feature.pass(args, context)),
    [RETURN_TOOL]: {
      description: RETURN_DESCRIPTION,
      args: contractSchemas(z).returnArguments.shape,
      // An invalid return is counted, so that it is checked where the pass is known.
      execute: async (args, context) => (await load()).return(args, context),
    },
    [APPLY_TOOL]: define(APPLY_DESCRIPTION, schemas.pass_over_apply, (feature, args, context) =>
      feature.apply(args, context),
    ),
    [REJECT_TOOL]: define(REJECT_DESCRIPTION, schemas.pass_over_reject, (feature, args, context) =>
      feature.reject(args, context),
    ),
    [STATUS_TOOL]: define(STATUS_DESCRIPTION, schemas.pass_over_status, (feature, args, context) =>
      feature.status(args, context),
    ),
  }
}
