import type { Config, ToolContext, ToolDefinition } from "@opencode-ai/plugin"
import type { ZodType } from "zod"
import type { Log } from "../host/log.ts"
import { disableTools } from "../host/messages.ts"
import { type JSONSchema, ARGUMENT_TYPES as types, validated } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { APPLY_TOOL, findSkillAgents, REJECT_TOOL, RETURN_TOOL, registerAgents, STATUS_TOOL } from "./agents.ts"
import type { ArgumentSchemas } from "./contract.ts"
import type { PassOverFeature } from "./feature.ts"

const PASS_TOOL = "pass_over"

const text = { type: "string" } as const
const integer = { type: "integer" } as const

const objectOf = (required: Record<string, JSONSchema>, optional: Record<string, JSONSchema> = {}): JSONSchema => ({
  type: "object",
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
})

const severity = { type: "string", enum: ["critical", "error", "warning", "info"] } as const
const FINDING = { severity, message: text }
const PLACE = { path: text, line: integer, end_line: integer, fix: { ...text, description: "What would mend it" } }
const CLAIMED = [
  objectOf({ type: { type: "string", const: "decision" }, question: text, answer: text }, { reasoning: text }),
  objectOf({ type: { type: "string", const: "finding" }, ...FINDING }, PLACE),
  objectOf({ type: { type: "string", const: "message" }, text }),
]

const passID = types.string("Of the pass")
const artifacts = types.optionalStrings("Only these files, by path")

/**
 * The arguments as the model sees them; argumentSchemas and returnArguments check them, and say what is wrong. Those of pass_over
 * are in every request of every session: at most 1,600 characters with the description, on each version of OpenCode.
 */
const OFFERED = {
  [PASS_TOOL]: {
    subagent: types.string("Agent that gets the work"),
    objective: types.string("What is to be done, complete in itself"),
    reason: types.string("Why, in a few words, such as code_review"),
    files: types.optionalStrings("Paths to send along"),
    messages: types.optional(integer, "How many of the newest messages go along, default 4"),
    background: types.optionalString("What led here"),
    expected: types.optionalString("What you want back"),
    return_required: types.optionalBoolean("false: keep the result, do not tell me"),
    async: types.optionalBoolean("true: go on at once, be told later"),
    override: types.optional(
      { type: "object", properties: {}, additionalProperties: {} },
      "Policy for this pass, narrower only, such as timeout_ms",
    ),
  },
  [RETURN_TOOL]: {
    status: types.choice(["completed", "failed", "aborted", "partial"], "How the work ended"),
    decision: types.optionalString("Such as approved or changes_requested"),
    findings: types.optional({ type: "array", items: objectOf(FINDING, PLACE) }, "What the originator should look at"),
    recommendations: types.optionalStrings("What to do next"),
    artifacts: types.optional(
      { type: "array", items: { anyOf: CLAIMED } },
      "Decisions, findings and messages; files are seen to",
    ),
    return_to: types.optionalString("Only the agent that passed the work on"),
    summary: types.string("What the originator has to know, in a few sentences"),
  },
  [APPLY_TOOL]: {
    pass_over_id: passID,
    artifacts,
    all_or_nothing: types.optionalBoolean("false: apply what can be applied (default true)"),
  },
  [REJECT_TOOL]: { pass_over_id: passID, artifacts, reason: types.optionalString("Why") },
  [STATUS_TOOL]: { pass_over_id: types.optionalString("One pass in full; without it, the passes of this session") },
} as const

const PASS_DESCRIPTION = `Passes work over to another agent in a session of its own: audit reviews, scout explores, or any subagent. Returns its decision, findings with their place, and the files it changed, which are pending until you apply or reject them.

Use it for a review, an exploration, or a piece of work that stands by itself, not for a few steps. The agent knows only what this call says.`

const RETURN_DESCRIPTION =
  "Returns the result of the work that was passed over to you. Call it once, when you are done, and end your turn after it. Files that you changed are seen by program."

const APPLY_DESCRIPTION =
  "Applies the pending files of a pass to the worktree. A file that changed meanwhile is refused; nothing is overwritten."

const REJECT_DESCRIPTION = "Rejects the pending files of a pass. The worktree stays as it is."

const STATUS_DESCRIPTION = "Tells what became of the passes of this session, or of one of them in full."

type ToolDeps = { readonly load: () => Promise<PassOverFeature> }

export const createTools = ({ load }: ToolDeps): Record<string, ToolDefinition> => {
  const checked =
    <Arguments>(
      schemaOf: (schemas: ArgumentSchemas) => ZodType<Arguments>,
      toolOf: (feature: PassOverFeature) => (args: Arguments, context: ToolContext) => Promise<string>,
    ): ToolDefinition["execute"] =>
    async (args, context) => {
      const { argumentSchemas } = await import("./contract.ts")
      const run = async (valid: Arguments, by: ToolContext) => toolOf(await load())(valid, by)
      return validated((z) => schemaOf(argumentSchemas(z)), run)(args, context)
    }
  return {
    [PASS_TOOL]: {
      description: PASS_DESCRIPTION,
      args: OFFERED[PASS_TOOL],
      execute: checked(
        (schemas) => schemas.pass_over,
        (feature) => async (args, context) => (await feature.pass(args, context)).text,
      ),
    },
    [RETURN_TOOL]: {
      description: RETURN_DESCRIPTION,
      args: OFFERED[RETURN_TOOL],
      // The pass counts invalid returns, so arguments are checked there.
      execute: async (args, context) => (await load()).return(args, context),
    },
    [APPLY_TOOL]: {
      description: APPLY_DESCRIPTION,
      args: OFFERED[APPLY_TOOL],
      execute: checked(
        (schemas) => schemas.pass_over_apply,
        ({ apply }) => apply,
      ),
    },
    [REJECT_TOOL]: {
      description: REJECT_DESCRIPTION,
      args: OFFERED[REJECT_TOOL],
      execute: checked(
        (schemas) => schemas.pass_over_reject,
        ({ reject }) => reject,
      ),
    },
    [STATUS_TOOL]: {
      description: STATUS_DESCRIPTION,
      args: OFFERED[STATUS_TOOL],
      execute: checked(
        (schemas) => schemas.pass_over_status,
        ({ status }) => status,
      ),
    },
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
 */
export const setUp = async (
  config: Config,
  { projectRoot, log, load }: { projectRoot: string; log: Log } & ToolDeps,
): Promise<Record<string, ToolDefinition>> => {
  registerAgents(config, await findSkillAgents(projectRoot, log), log)
  return createTools({ load })
}
