import type { Hooks, ToolContext, ToolDefinition } from "@opencode-ai/plugin"
import { field, isRecord } from "../schema.ts"
import type { Context } from "./context.ts"
import { isInBackground } from "./messages.ts"
import { toolArguments, toolName } from "./names.ts"

/** The JSON Schema of a tool's arguments; each says its own (see `argument` in schema.ts). */
export const inputSchema = (args: ToolDefinition["args"]): object => {
  const properties = Object.entries(args).map(([name, argument]) => {
    const toJSONSchema = field(argument, "_zod", "toJSONSchema")
    return [name, typeof toJSONSchema === "function" ? toJSONSchema() : {}] as const
  })
  const required = Object.entries(args).filter(([, argument]) => field(argument, "_zod", "optin") !== "optional")
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    required: required.map(([name]) => name),
    additionalProperties: false,
  }
}

/** Adds a feature's tools, each under its own name. */
export const addTools = async (context: Context, tools: NonNullable<Hooks["tool"]>): Promise<void> => {
  const { directory, project } = context.location
  const all = Object.entries(tools)
  if (all.length === 0) return
  await context.tool.transform((draft) => {
    for (const [name, { description, args, execute }] of all)
      draft.add({
        name,
        description,
        options: { codemode: false },
        input: inputSchema(args),
        execute: async (input, { sessionID, messageID, agent, signal }) => {
          const given: ToolContext = {
            sessionID,
            messageID,
            agent,
            directory,
            worktree: project.directory,
            abort: signal,
            metadata: () => {},
            ask: async () => {},
          }
          const result = await execute(isRecord(input) ? input : {}, given)
          return { content: typeof result === "string" ? result : result.output }
        },
      })
  })
}

/** Lets a feature see each call of a tool, by OpenCode 1's names, before and after. The first may refuse it by a throw. */
export const hookTools = async (context: Context, hooks: Hooks): Promise<void> => {
  const before = hooks["tool.execute.before"]
  const after = hooks["tool.execute.after"]
  if (before)
    await context.tool.hook("execute.before", async ({ tool: given, sessionID, id, input }) => {
      const tool = toolName(given)
      await before({ tool, sessionID, callID: id }, { args: toolArguments(tool, input) })
    })
  if (after)
    await context.tool.hook("execute.after", async ({ tool: given, sessionID, id, input, status, result }) => {
      // OpenCode 1 tells of no call that failed or was refused.
      if (status !== "completed") return
      const tool = toolName(given)
      if (isInBackground(tool, result?.metadata)) return
      const args = toolArguments(tool, input)
      await after({ tool, sessionID, callID: id, args }, { title: "", output: "", metadata: result?.metadata ?? {} })
    })
}
