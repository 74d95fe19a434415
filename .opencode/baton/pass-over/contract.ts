import type { infer as Infer } from "zod"
import type { Zod } from "../host/schema.ts"

const DAY_MS = 86_400_000

/** Any of a policy's keys, and no other keys. */
export const policyPartSchema = (z: Zod, object: Zod["strictObject"] = z.strictObject) => {
  const flag = (about: string) => z.boolean().optional().describe(about)
  const whole = (min: number, max: number, about: string) =>
    z.number().int().min(min).max(max).optional().describe(about)
  return object({
    auto_return: flag("Whether a result goes back without the user being asked"),
    auto_apply: flag("Whether changed files stay changed without pass_over_apply"),
    timeout_ms: whole(1000, DAY_MS, "How long the originator waits"),
    on_timeout: z.enum(["stop", "continue"]).optional().describe("What becomes of the subagent when it takes longer"),
    max_chain_depth: whole(1, 20, "Delegations from the root session downwards"),
    notify_on_return: z.enum(["always", "only_issues", "never"]).optional().describe("When the user gets a notice"),
    can_receive_passes: flag("Whether work may be passed here"),
    can_modify_files: flag("Whether the subagent, and any agent it passes work to, may change files"),
    can_run_tools: flag("Whether the subagent may use tools beyond reading"),
    sandbox: z
      .enum(["copy", "os"])
      .optional()
      .describe("os: shell commands can write in the subagent's copy alone, which the operating system sees to"),
    max_time_ms: whole(1000, DAY_MS, "How long the subagent may work at all"),
    cache: flag("Whether the same question is answered by the stored output"),
    max_retries: whole(0, 10, "Further attempts after a failure that may pass"),
    retry_delay_ms: whole(0, 600_000, "Before the first further attempt"),
    backoff_multiplier: z.number().min(1).max(10).optional().describe("By how much each delay is longer than the last"),
    max_passes_per_session: whole(1, 10_000, "Passes of a root session and all sessions below it"),
    max_context_tokens: whole(1000, 1_000_000, "Of the files, messages and tool results that go along"),
  })
}

/** Kinds of artifacts of a pass. File changes and tool results are recorded by program; an agent cannot claim them. */
const artifactSchemas = (z: Zod, object: Zod["strictObject"] = z.strictObject) => {
  const content = z.string().nullable().describe("null in a record: the contents are kept with the pass's files")
  const mode = z
    .string()
    .regex(/^[0-7]{6}$/)
    .nullable()
    .describe("As git has it, such as 100755")

  const fileModification = object({
    type: z.literal("file_modification"),
    path: z.string().min(1),
    change: z.enum(["added", "modified", "deleted", "renamed", "mode_changed"]),
    previous_path: z.string().min(1).optional().describe("Of a renamed file"),
    old_content: content,
    new_content: content,
    is_binary: z.boolean(),
    is_large: z.boolean(),
    old_hash: z.string().nullable(),
    new_hash: z.string().nullable(),
    old_mode: mode,
    new_mode: mode,
    link_target: z.string().optional().describe("Where a symbolic link leads"),
    by: z.enum(["tool", "shell"]),
  })

  const decision = object({
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
  const finding = object({ type: z.literal("finding"), ...findingFields })

  const message = object({ type: z.literal("message"), text: z.string().min(1) })

  const toolResult = object({
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
    finding: object(findingFields),
  }
}

const WORK_STATUSES = ["completed", "failed", "aborted", "partial", "timeout"] as const

/**
 * All schemas of a pass's input and output: the types below, docs/pass-over.schema.json and every check come from them. Names are
 * the design document's, in snake_case as models see them; times are ISO 8601 in UTC; paths are relative to the project's folder.
 *
 * @param object what an object is: without a key that is unknown, or, for stored ones, with what a newer version added
 */
export const contractSchemas = (z: Zod, object: Zod["strictObject"] = z.strictObject) => {
  const { artifact, finding, claimedArtifact } = artifactSchemas(z, object)
  const time = z.iso.datetime()
  const name = z.string().min(1)
  const count = z.number().int().min(0)

  const workContext = object({
    objective: name.describe("What is to be done"),
    background: z.string().optional().describe("What led here"),
    expected: z.string().optional().describe("What the originator wants back"),
    files: z.array(
      object({
        path: name,
        content: z.string().nullable().describe("null when left out; `note` says why"),
        hash: z
          .string()
          .nullable()
          .describe("SHA-256 of the file's text in UTF-8, hex; null when it could not be read"),
        note: z.string().optional(),
      }),
    ),
    messages: z.array(object({ role: z.enum(["user", "assistant"]), text: z.string() })),
    tool_results: z.array(
      object({
        tool: name,
        title: z.string(),
        status: z.enum(["completed", "error"]),
        output: z.string(),
      }),
    ),
    todos: z.array(object({ content: z.string(), status: z.string(), priority: z.string().optional() })),
    task: object({ id: name, role: name, block: z.string() }).nullable().describe("The task of the session"),
    left_out: z.array(z.string()).describe("What did not fit into the token budget, named"),
  })

  const metadata = object({
    chain_depth: z.number().int().min(1).describe("Delegations from the root session to this subagent"),
    origination_chain: z
      .array(object({ agent: name, session_id: name }))
      .describe("From the root session to the originator"),
    root_session_id: name,
    created_at: time,
    completed_at: time.nullable(),
    policy_name: name.describe("The most specific policy that had a say, such as `pair alice->audit`"),
    attempts: z.number().int().min(0).describe("How often the subagent was started"),
    cached_from: z.string().nullable().describe("The pass whose stored output this is"),
  })

  const request = object({
    pass_over_id: name,
    originating_agent_id: name,
    originating_session_id: name,
    subagent_id: name,
    reason: name,
    work_context: workContext,
    return_required: z.boolean(),
    async: z.boolean().describe("Whether the originator goes on at once and is told later"),
    override: policyPartSchema(z, object).optional(),
    metadata,
  })

  const error = object({
    code: z.string().regex(/^E0\d\d$/),
    name,
    recoverable: z.boolean(),
    message: name.describe("What failed"),
    cause: z.string().describe("What was received or found"),
    next_step: name.describe("What to do now"),
  })

  const output = object({
    pass_over_id: name,
    return_to: name.describe("The originating agent"),
    status: z.enum(WORK_STATUSES),
    child_session_id: z.string().nullable().describe("null when no session could be created"),
    source: z
      .enum(["return", "transcript", "program"])
      .describe("pass_over_return, the subagent's transcript, or this program when there was neither"),
    summary: object({
      text: z.string(),
      decision: z.string().nullable(),
      findings: z.array(z.string()).describe("One line each; in full they are artifacts"),
      recommendations: z.array(z.string()),
    }),
    artifacts: z.array(artifact),
    reading: object({ files: count, searches: count, commands: count, sent: count }).describe(
      "How much the subagent looked at: different files, searches, shell commands, files that came with the order",
    ),
    refused: z.array(z.string()).describe("Permissions that the subagent was refused, such as `bash make`"),
    left_out: z
      .array(object({ path: name, reason: z.string() }))
      .default([])
      .describe("What the subagent made and no pass can carry"),
    error: error.nullable(),
    metadata,
  })

  const returnArguments = object({
    status: z.enum(["completed", "failed", "aborted", "partial"]),
    decision: z.string().min(1).optional().describe("Such as approved or changes_requested"),
    findings: z.array(finding).default([]),
    recommendations: z.array(z.string().min(1)).default([]),
    artifacts: z.array(claimedArtifact).default([]).describe("Decisions, findings and messages; files are seen to"),
    return_to: z.string().min(1).optional().describe("Only the agent that passed the work on"),
    summary: z.string().trim().min(1).describe("What the originator has to know, in a few sentences"),
  })

  return { request, workContext, output, artifact, metadata, error, returnArguments }
}

/** Schemas of the tools' arguments; those of pass_over_return are above. */
export const argumentSchemas = (z: Zod) => {
  const text = z.string().trim().min(1)
  const files = z.array(text).min(1).optional()
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
      artifacts: files,
      all_or_nothing: z.boolean().optional(),
    }),
    pass_over_reject: z.strictObject({ pass_over_id: text, artifacts: files, reason: z.string().optional() }),
    pass_over_status: z.strictObject({ pass_over_id: text.optional() }),
  }
}

export type Immutable<T> = T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> } : T
type Schemas = ReturnType<typeof contractSchemas>
export type ArgumentSchemas = ReturnType<typeof argumentSchemas>

export type PassOverArguments = Infer<ArgumentSchemas["pass_over"]>
export type ApplyArguments = Infer<ArgumentSchemas["pass_over_apply"]>
export type RejectArguments = Infer<ArgumentSchemas["pass_over_reject"]>
export type StatusArguments = Infer<ArgumentSchemas["pass_over_status"]>

export type PassOverRequest = Immutable<Infer<Schemas["request"]>>
export type WorkContext = Immutable<Infer<Schemas["workContext"]>>
export type WorkOutput = Immutable<Infer<Schemas["output"]>>
export type ReturnArguments = Immutable<Infer<Schemas["returnArguments"]>>
export type Artifact = Immutable<Infer<Schemas["artifact"]>>
export type ArtifactOf<Type extends Artifact["type"]> = Extract<Artifact, { type: Type }>
export type FileModification = ArtifactOf<"file_modification">
export type WorkStatus = (typeof WORK_STATUSES)[number]

/** The artifacts of one type; none without an output. */
export const artifactsOf = <Type extends Artifact["type"]>(
  output: Pick<WorkOutput, "artifacts"> | null,
  type: Type,
): ArtifactOf<Type>[] =>
  (output?.artifacts ?? []).filter((artifact): artifact is ArtifactOf<Type> => artifact.type === type)
