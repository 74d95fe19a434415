import type { Zod } from "../host/schema.ts"

/** What a policy may say, each key for itself; how it is come by is in policy-resolution.ts. */
export type Policy = {
  /** Whether a result goes back without the user being asked. */
  readonly auto_return: boolean
  /** Whether the files that the subagent changed stay changed without `pass_over_apply`. */
  readonly auto_apply: boolean
  /** How long the originator waits. */
  readonly timeout_ms: number
  /** What becomes of the subagent then. */
  readonly on_timeout: "stop" | "continue"
  /** Delegations from the root session downwards. */
  readonly max_chain_depth: number
  readonly notify_on_return: "always" | "only_issues" | "never"
  readonly can_receive_passes: boolean
  readonly can_modify_files: boolean
  readonly can_run_tools: boolean
  /** How long the subagent may work at all, whoever waits for it. */
  readonly max_time_ms: number
  /** Whether the same question is answered by the stored output. */
  readonly cache: boolean
  readonly max_retries: number
  /** Before the first further attempt. */
  readonly retry_delay_ms: number
  readonly backoff_multiplier: number
  /** Of a root session with all sessions below it. */
  readonly max_passes_per_session: number
  /** Of the work context, a token being four characters. */
  readonly max_context_tokens: number
}

export type PolicyKey = keyof Policy
export type PolicyPart = { readonly [Key in PolicyKey]?: Policy[Key] | undefined }

/**
 * What holds where nobody says anything. All but two values are the design document's: it has a time-out of 30 s, which a
 * real model passes while it reads; and it names no longest time for a subagent that goes on.
 */
export const BUILT_IN_POLICY: Policy = {
  auto_return: false,
  auto_apply: false,
  timeout_ms: 600_000,
  on_timeout: "continue",
  max_chain_depth: 3,
  notify_on_return: "always",
  can_receive_passes: true,
  can_modify_files: true,
  can_run_tools: true,
  max_time_ms: 1_800_000,
  cache: false,
  max_retries: 3,
  retry_delay_ms: 1000,
  backoff_multiplier: 2,
  max_passes_per_session: 50,
  max_context_tokens: 50_000,
}

const DAY_MS = 86_400_000

/** Some of the keys of a policy, and no other keys. */
export const policyPartSchema = (z: Zod) => {
  const flag = (about: string) => z.boolean().optional().describe(about)
  const whole = (min: number, max: number, about: string) =>
    z.number().int().min(min).max(max).optional().describe(about)
  return z.strictObject({
    auto_return: flag("Whether a result goes back without the user being asked"),
    auto_apply: flag("Whether changed files stay changed without pass_over_apply"),
    timeout_ms: whole(1000, DAY_MS, "How long the originator waits"),
    on_timeout: z.enum(["stop", "continue"]).optional().describe("What becomes of the subagent when it takes longer"),
    max_chain_depth: whole(1, 20, "Delegations from the root session downwards"),
    notify_on_return: z.enum(["always", "only_issues", "never"]).optional().describe("When the user gets a notice"),
    can_receive_passes: flag("Whether work may be passed here"),
    can_modify_files: flag("Whether the subagent, and whoever it passes work to, may change files"),
    can_run_tools: flag("Whether the subagent may use tools beyond reading"),
    max_time_ms: whole(1000, DAY_MS, "How long the subagent may work at all"),
    cache: flag("Whether the same question is answered by the stored output"),
    max_retries: whole(0, 10, "Further attempts after a failure that may pass"),
    retry_delay_ms: whole(0, 600_000, "Before the first further attempt"),
    backoff_multiplier: z.number().min(1).max(10).optional().describe("By how much each delay is longer than the last"),
    max_passes_per_session: whole(1, 10_000, "Passes of a root session and all sessions below it"),
    max_context_tokens: whole(1000, 1_000_000, "Of the files, messages and tool results that go along"),
  })
}
