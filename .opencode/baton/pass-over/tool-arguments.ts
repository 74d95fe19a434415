import type { infer as Infer } from "zod"
import type { Zod } from "../host/schema.ts"
import { policyPartSchema } from "./policy.ts"

/** What the model gives to the feature's tools; pass_over_return's arguments are the contract's. */
export const toolArguments = (z: Zod) => {
  const text = z.string().trim().min(1)
  return {
    pass_over: z.strictObject({
      subagent: text.describe("Name of the agent that gets the work"),
      objective: text.describe("What is to be done, complete in itself: the agent knows nothing but this call"),
      reason: text.describe("Why it is passed on, a few words, such as code_review"),
      files: z.array(text).max(100).optional().describe("Paths of files to send along"),
      messages: z
        .number()
        .int()
        .min(0)
        .max(50)
        .optional()
        .describe("How many of the newest messages go along (default 4)"),
      background: z.string().optional().describe("What led here: decisions, constraints, what failed"),
      expected: z.string().optional().describe("What you want back"),
      return_required: z.boolean().optional().describe("false: you need no result; it is kept and can be looked up"),
      async: z.boolean().optional().describe("true: go on at once, and be told when the result is there"),
      override: policyPartSchema(z)
        .optional()
        .describe("Policy values for this pass, such as timeout_ms; narrower only"),
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
