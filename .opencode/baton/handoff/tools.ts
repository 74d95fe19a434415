import type { ToolDefinition } from "@opencode-ai/plugin"
import type { Zod } from "../host/schema.ts"
import type { HandoffFeature } from "./feature.ts"
import { TOOL_DETAILS } from "./tool-detail.ts"
import { HANDOFF_TOOL, READ_TOOL } from "./tool-offers.ts"

const HANDOFF_DESCRIPTION = `Hands this work over to a new session: puts your prompt and references to the files into its draft, for the user to review and send. Call it when the user asks for a handoff, once.

- prompt: what the new session has to know to go on. The user's first request, files touched, open todos, git state, task and role are added by program.
- files: paths of the files to load at its start, 8 to 15, at most 20. A line range is possible: src/a.ts:10-80. What cannot be loaded is named in the answer.`

const READ_DESCRIPTION = `Reads what was said and done in an earlier session of this project, newest messages last. Use it when a handoff lacks something specific.

- sessionID: the full id, ses_…
- limit: how many of the newest messages, 1 to 500 (default 100)
- before: a message id; reads the messages before it
- search: a text, or /a regular expression/i; shows the matching lines with some around them
- tools: "none", "titles" (default) or "full" (with inputs and outputs)
- any: true reads a session that this one does not come from`

export type HandoffToolDeps = {
  load: () => Promise<HandoffFeature>
  /** What the user typed behind /handoff in this session; empty for nothing. */
  goalOf: (sessionID: string) => string
}

/** The tools as OpenCode wants them. zod is handed in, since it is loaded when OpenCode first asks for tools. */
export const createHandoffTools = (z: Zod, { load, goalOf }: HandoffToolDeps): Record<string, ToolDefinition> => {
  const handoffArgs = {
    prompt: z.string().describe("What the new session has to know to go on"),
    files: z.array(z.string()).optional().describe("Paths of files to load into the new session"),
  }
  const readArgs = {
    sessionID: z.string().describe("Full session id, ses_…"),
    limit: z.number().optional().describe("How many of the newest messages: 1 to 500, default 100"),
    before: z.string().optional().describe("A message id: reads the messages before it"),
    search: z.string().optional().describe("A text, or /a regular expression/i, to find in the session"),
    tools: z.enum(TOOL_DETAILS).optional().describe('How tools are shown: "none", "titles" or "full"'),
    any: z.boolean().optional().describe("Whether to read a session that this one does not come from"),
  }
  return {
    [HANDOFF_TOOL]: {
      description: HANDOFF_DESCRIPTION,
      args: handoffArgs,
      execute: async (args, { sessionID }) => {
        const { prompt, files = [] } = z.object(handoffArgs).parse(args)
        return (await load()).handOver({ sessionID, prompt, files, goal: goalOf(sessionID) })
      },
    },
    [READ_TOOL]: {
      description: READ_DESCRIPTION,
      args: readArgs,
      execute: async (args, context) => {
        const { title, output } = await (await load()).readSession(context.sessionID, z.object(readArgs).parse(args))
        context.metadata({ title })
        return output
      },
    },
  }
}
