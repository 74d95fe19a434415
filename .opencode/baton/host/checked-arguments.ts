import type { ToolContext } from "@opencode-ai/plugin"
import type { ZodType } from "zod"
import { loadZod, type Zod } from "./schema.ts"

/**
 * A tool's `execute` that runs only with arguments of the right shape; the model is told what was wrong with others.
 * OpenCode tells the model the types and hands over what the model wrote, unchecked (seen on 1.2.15 and 1.18.33).
 */
export const withCheckedArguments =
  <Arguments>(
    schema: (z: Zod) => ZodType<Arguments>,
    run: (args: Arguments, context: ToolContext) => Promise<string>,
  ): ((args: unknown, context: ToolContext) => Promise<string>) =>
  async (args, context) => {
    const z = await loadZod()
    const parsed = schema(z).safeParse(args)
    if (parsed.success) return run(parsed.data, context)
    return `The arguments are not valid; nothing was done.\n${z.prettifyError(parsed.error)}\nMend them and call again.`
  }
