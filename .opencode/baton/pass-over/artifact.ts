import type { Zod } from "../host/schema.ts"

/** The kinds of things that a pass leaves. What files became and what tools said is seen by program, never claimed. */
export const artifactSchemas = (z: Zod) => {
  const content = z.string().nullable()
  const mode = z
    .string()
    .regex(/^[0-7]{6}$/)
    .nullable()
    .describe("As git has it, such as 100755")

  const fileModification = z.strictObject({
    type: z.literal("file_modification"),
    path: z.string().min(1),
    change: z.enum(["added", "modified", "deleted", "renamed", "mode_changed"]),
    previous_path: z.string().min(1).optional().describe("Of a renamed file"),
    old_content: content.describe("null when there was none, or it is binary or large"),
    new_content: content.describe("null when there is none, or it is binary or large"),
    is_binary: z.boolean(),
    is_large: z.boolean(),
    old_hash: z.string().nullable(),
    new_hash: z.string().nullable(),
    old_mode: mode,
    new_mode: mode,
    by: z.enum(["tool", "shell"]),
  })

  const decision = z.strictObject({
    type: z.literal("decision"),
    question: z.string().min(1),
    answer: z.string().min(1),
    reasoning: z.string().optional(),
  })

  const findingFields = {
    severity: z.enum(["critical", "error", "warning", "info"]),
    message: z.string().min(1),
    path: z.string().min(1).optional(),
    line: z.number().int().min(1).optional(),
    end_line: z.number().int().min(1).optional(),
    fix: z.string().min(1).optional().describe("What would mend it"),
  }
  const finding = z.strictObject({ type: z.literal("finding"), ...findingFields })

  const message = z.strictObject({ type: z.literal("message"), text: z.string().min(1) })

  const toolResult = z.strictObject({
    type: z.literal("tool_result"),
    tool: z.string().min(1),
    title: z.string(),
    status: z.enum(["completed", "error"]),
    exit_code: z.number().int().nullable(),
    output: z.string(),
    is_cut: z.boolean().describe("Whether the output goes on in the child's session"),
  })

  return {
    artifact: z.discriminatedUnion("type", [fileModification, decision, finding, message, toolResult]),
    claimedArtifact: z.discriminatedUnion("type", [decision, finding, message]),
    finding: z.strictObject(findingFields),
  }
}
