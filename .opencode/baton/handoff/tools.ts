import type { ToolDefinition } from "@opencode-ai/plugin"
import { ARGUMENT_TYPES as types, withCheckedArguments, type Zod } from "../host/schema.ts"
import type { HandoffFeature } from "./feature.ts"
import { TOOL_DETAILS } from "./tool-detail.ts"
import { HANDOFF_TOOL, READ_TOOL } from "./tool-offers.ts"
import type { UserTurns } from "./user-turns.ts"

const HANDOFF_DESCRIPTION = `Hands this work over to a new session: puts your prompt and references to the files into its draft, for the user to review and send. Call it when the user asks for a handoff, once.

- prompt: what the new session has to know to go on. The user's first request, files touched, open todos, git state, task and role are added by program.
- files: paths of the files to load at its start, 8 to 15, at most 20. A line range is possible: src/a.ts:10-80. What cannot be loaded is named in the answer.`

const READ_DESCRIPTION = `Reads what was said and done in an earlier session of this project, newest messages last. Use it when a handoff lacks something specific.

- sessionID: the full id, ses_…
- limit: how many of the newest messages, 1 to 500 (default 100)
- before: a message id; reads the messages before it
- search: a text, or /a regular expression/i; shows the matching lines with some around them
- tools: "none", "titles" (default) or "full" (with inputs and outputs)
- any: true reads a session that this one does not come from and shares no task with`

export type HandoffToolDeps = {
  load: () => Promise<HandoffFeature>
  turns: Pick<UserTurns, "goalOf" | "handOverOnce">
}

const handoffArguments = (z: Zod) => z.object({ prompt: z.string(), files: z.array(z.string()).default([]) })

const readArguments = (z: Zod) =>
  z.object({
    sessionID: z.string(),
    limit: z.number().optional(),
    before: z.string().optional(),
    search: z.string().optional(),
    tools: z.enum(TOOL_DETAILS).optional(),
    any: z.boolean().optional(),
  })

/** The tools as OpenCode wants them. */
export const createHandoffTools = ({ load, turns }: HandoffToolDeps): Record<string, ToolDefinition> => ({
  [HANDOFF_TOOL]: {
    description: HANDOFF_DESCRIPTION,
    args: {
      prompt: types.string("What the new session has to know to go on"),
      files: types.optionalStrings("Paths of files to load into the new session"),
    },
    execute: withCheckedArguments(handoffArguments, async ({ prompt, files }, { sessionID }) => {
      const { handOver } = await load()
      const goal = turns.goalOf(sessionID)
      return turns.handOverOnce(sessionID, () => handOver({ sessionID, prompt, files, goal }))
    }),
  },
  [READ_TOOL]: {
    description: READ_DESCRIPTION,
    args: {
      sessionID: types.string("Full session id, ses_…"),
      limit: types.optionalNumber("How many of the newest messages: 1 to 500, default 100"),
      before: types.optionalString("A message id: reads the messages before it"),
      search: types.optionalString("A text, or /a regular expression/i, to find in the session"),
      tools: types.optionalChoice(TOOL_DETAILS, 'How tools are shown: "none", "titles" or "full"'),
      any: types.optionalBoolean("Whether to read a session that this one does not come from"),
    },
    execute: withCheckedArguments(readArguments, async (request, context) => {
      const { title, output } = await (await load()).readSession(context.sessionID, request)
      context.metadata({ title })
      return output
    }),
  },
})
