/**
 * Passes from a plugin of the project's own; docs/pass-over.md, "From your own plugin".
 *
 * A pass is made for the tool call that the plugin is answering: its agent is the originator, whose rights bound the subagent's.
 */
import { loadZod } from "../host/schema.ts"
import { argumentSchemas, type PassOverArguments, type WorkOutput } from "./contract.ts"
import type { PassOverError } from "./errors.ts"
import type { PassContext } from "./feature.ts"
import { findServing } from "./hooks.ts"
import type { PassAnswer } from "./pass.ts"
import type { PolicyPart } from "./policy/policy.ts"
import { POLICY_FILE } from "./policy/policy-path.ts"

export type { Artifact, WorkOutput } from "./contract.ts"
export type { PassContext } from "./feature.ts"

/** The work that goes along. The files' texts, messages and the task are read by Baton. */
export type PassOverWork = {
  /** The work, complete in itself. */
  readonly objective: string
  /** The background of the work. */
  readonly background?: string
  /** The wanted result. */
  readonly expected?: string
  /** Paths, absolute or relative to OpenCode's folder; 100 at most. */
  readonly files?: readonly string[]
  /** Number of the session's newest messages that go along: 0 to 50, default 4. */
  readonly messages?: number
}

export type PassOverCall = {
  readonly subagent: string
  readonly work_context: PassOverWork
  /** Why, in a few words; default `plugin`. */
  readonly reason?: string
  /** Values of the policy for this pass, narrower only: times in milliseconds. */
  readonly override?: PolicyPart
}

/** No output came back: a limit refused the pass, it took too long, it was cancelled, or the user did not approve its result. */
export class PassOverFailure extends Error {
  override readonly name = "PassOverFailure"
  /** E001 to E030; undefined after a cancellation, and when the user did not approve. */
  readonly code: string | undefined
  /** The same pass may succeed at another try. */
  readonly isRecoverable: boolean

  constructor(message: string, error?: PassOverError) {
    super(message)
    this.code = error?.code
    this.isRecoverable = error?.recoverable ?? false
  }
}

/** @throws PassOverFailure when they are not valid */
const argumentsOf = async ({ subagent, work_context, reason, override }: PassOverCall): Promise<PassOverArguments> => {
  const z = await loadZod()
  const given = { ...work_context, subagent, reason: reason ?? "plugin", ...(override && { override }) }
  const parsed = argumentSchemas(z).pass_over.safeParse(given)
  if (parsed.success) return parsed.data
  throw new PassOverFailure(`The call of passOver is not valid; nothing was passed.\n${z.prettifyError(parsed.error)}`)
}

const outputOf = ({ text, output, error }: PassAnswer): WorkOutput => {
  if (output) return output
  throw new PassOverFailure(text, error)
}

/**
 * Passes work over to a subagent and waits for its output, as the tool `pass_over` does: the same policy, limits, approval and audit.
 *
 * @param context of the tool call that the plugin is answering; its abort ends the pass
 * @returns also what failed or is partial: `status` and `error` say so. Changed files are pending until the agent calls pass_over_apply
 * @throws PassOverFailure without an output
 */
export const passOver = async (call: PassOverCall, context: PassContext): Promise<WorkOutput> => {
  const args = await argumentsOf(call)
  const load = findServing(context.directory)
  if (!load)
    throw new PassOverFailure(
      `Nothing was passed: this copy of Baton serves no passes in ${context.directory}. They are on where ${POLICY_FILE} is; import from the copy that OpenCode has loaded there.`,
    )
  return outputOf(await (await load()).pass(args, context))
}

export type RetryOptions = Pick<PolicyPart, "max_retries" | "retry_delay_ms" | "backoff_multiplier">

/**
 * The same with its own numbers of further attempts after a crash or a time-out, within the policy's.
 *
 * @throws PassOverFailure like `passOver`
 */
export const passOverWithRetry = (
  { request, options }: { readonly request: PassOverCall; readonly options: RetryOptions },
  context: PassContext,
): Promise<WorkOutput> => passOver({ ...request, override: { ...request.override, ...options } }, context)
