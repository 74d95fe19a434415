import type { ToolPart } from "@opencode-ai/sdk"
import type { core } from "zod"
import { WRITING_TOOLS } from "../../host/messages.ts"
import { field, type Zod } from "../../host/schema.ts"
import type { StoredMessage } from "../../host/sessions.ts"
import { cutText } from "../../host/text.ts"
import { type ActivePass, type ActiveState, advance, type Outcome, outcomeOf } from "../child/active-pass.ts"
import { readToolResult } from "../child/context.ts"
import type { ChildEnd } from "../child/session.ts"
import {
  type ArtifactOf,
  artifactsOf,
  contractSchemas,
  type PassOverRequest,
  type ReturnArguments,
  type WorkOutput,
} from "../contract.ts"
import { type PassOverError, passOverError, renderError } from "../errors.ts"
import { toProjectText, toProjectValue } from "../sandbox/paths.ts"
import type { Refusal } from "../sandbox/repository.ts"
import type { Changes } from "../sandbox/sandbox.ts"
import { countReading } from "./reading.ts"
import { renderFinding } from "./render.ts"

const OUTPUT_CHARACTERS = 2_000
const PROSE_CHARACTERS = 8_000
const MAX_RESULTS = 100

type ToolResult = ArtifactOf<"tool_result">

const toolParts = (messages: readonly StoredMessage[]): ToolPart[] =>
  messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool"))

const exitCodeOf = ({ state }: ToolPart): number | null => {
  const exit = state.status === "completed" ? state.metadata.exit : undefined
  return typeof exit === "number" ? exit : null
}

/** The results of the child's tools, newest 100, each cut to 2,000 characters. */
const collectToolResults = (messages: readonly StoredMessage[]): ToolResult[] =>
  toolParts(messages)
    .flatMap((part) =>
      readToolResult(part).map(
        (result): ToolResult => ({
          type: "tool_result",
          ...result,
          output: cutText(result.output, OUTPUT_CHARACTERS),
          exit_code: exitCodeOf(part),
          is_cut: result.output.length > OUTPUT_CHARACTERS,
        }),
      ),
    )
    .slice(-MAX_RESULTS)

const pathsOf = ({ state }: ToolPart): unknown[] => {
  if (state.status !== "completed") return []
  const files: unknown = state.metadata.files
  const patched = Array.isArray(files) ? files.map((file: { filePath?: unknown }) => file?.filePath) : []
  return [state.input.filePath, ...patched]
}

/** Paths written by the child's own tools, as given to them. */
export const writtenPaths = (messages: readonly StoredMessage[]): string[] =>
  toolParts(messages)
    .filter(({ tool }) => WRITING_TOOLS.has(tool))
    .flatMap(pathsOf)
    .filter((path) => typeof path === "string")

/** The last text of an agent that ended without pass_over_return; empty when there is none. */
const lastWords = (messages: readonly StoredMessage[]): string => {
  const spoken = messages
    .filter(({ info }) => info.role === "assistant")
    .map(({ parts }) =>
      parts
        .flatMap((part) => (part.type === "text" ? [part.text] : []))
        .join("\n")
        .trim(),
    )
  return cutText(spoken.findLast((text) => text !== "") ?? "", PROSE_CHARACTERS)
}

/** The words with which OpenCode and this program refuse a tool call. */
const REFUSAL =
  /^(?:Error: )?(?:The user (?:rejected permission|has specified a rule which prevents)|The tool \S+ is refused: this pass may not)/
const REFUSED_CHARACTERS = 120

/** The tool calls that were refused, by the tool and what it was to be used on. */
const refusedCalls = (messages: readonly StoredMessage[]): string[] => {
  const calls = toolParts(messages).flatMap(({ tool, state }) => {
    if (state.status !== "error" || !REFUSAL.test(state.error)) return []
    const { command, filePath, pattern, url } = state.input
    const on = [command, filePath, pattern, url].find((value) => typeof value === "string")
    return [cutText([tool, on ?? ""].join(" ").replaceAll(/\s+/g, " ").trim(), REFUSED_CHARACTERS)]
  })
  return [...new Set(calls)]
}

/** Number of invalid returns that are refused with an explanation; the next one ends the pass. */
export const MAX_REFUSED_RETURNS = 2
const SHOWN_PROBLEMS = 5

type ReturnValidation =
  | {
      readonly kind: "accepted"
      readonly value: ReturnArguments
      /** Claims of facts that the program records itself and that are ignored: `file_modification src/a.ts`. */
      readonly ignored: readonly string[]
    }
  /** @property text for the subagent: the problems, and how often it may try again */
  | { readonly kind: "refused"; readonly text: string }
  | { readonly kind: "failed"; readonly error: PassOverError }

/** Models write null, and some an empty text, for an absent value. */
const dropEmpty = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((each) => each !== null).map(dropEmpty)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, each]) => each !== null && each !== "")
  return Object.fromEntries(entries.map(([key, each]) => [key, dropEmpty(each)]))
}

const SEEN_BY_PROGRAM: ReadonlySet<unknown> = new Set(["file_modification", "tool_result"])

const dropUnverifiable = (value: unknown): { rest: unknown; ignored: string[] } => {
  const artifacts = field(value, "artifacts")
  if (typeof value !== "object" || !Array.isArray(artifacts)) return { rest: value, ignored: [] }
  const isClaim = (artifact: unknown): boolean => SEEN_BY_PROGRAM.has(field(artifact, "type"))
  const ignored = artifacts.filter(isClaim).map((artifact) => {
    const what = field(artifact, "path") ?? field(artifact, "tool")
    return `${String(field(artifact, "type"))}${typeof what === "string" ? ` ${what}` : ""}`
  })
  return { rest: { ...value, artifacts: artifacts.filter((artifact) => !isClaim(artifact)) }, ignored }
}

const describeProblem = ({ path, message }: core.$ZodIssue): string =>
  `- ${path.length === 0 ? "the arguments" : path.map(String).join(".")}: ${message}`

/**
 * Checks the arguments of a subagent's return.
 *
 * @param args unchecked, of any shape
 * @param originator the agent that the result has to go back to
 * @param earlierRefusals number of refused returns of this pass so far
 */
export const validateReturn = (
  z: Zod,
  args: unknown,
  { originator, earlierRefusals }: { originator: string; earlierRefusals: number },
): ReturnValidation => {
  const { rest, ignored } = dropUnverifiable(dropEmpty(args))
  const parsed = contractSchemas(z).returnArguments.safeParse(rest)
  const returnTo = parsed.data?.return_to ?? originator
  if (parsed.success && returnTo === originator) return { kind: "accepted", value: parsed.data, ignored }
  const found = parsed.success
    ? [`- return_to: expected ${JSON.stringify(originator)}, received ${JSON.stringify(returnTo)}`]
    : parsed.error.issues.map(describeProblem)
  const more = found.length > SHOWN_PROBLEMS ? [`- and ${found.length - SHOWN_PROBLEMS} more`] : []
  const problems = [...found.slice(0, SHOWN_PROBLEMS), ...more].join("\n")
  const left = MAX_REFUSED_RETURNS - earlierRefusals
  if (left > 0) {
    const again = left === 1 ? "once more" : `${left} times more`
    const text = `This is not a valid return:\n${problems}\nCall pass_over_return again with this corrected; you may try ${again}.`
    return { kind: "refused", text }
  }
  const message = `The subagent's return was not valid ${earlierRefusals + 1} times`
  return { kind: "failed", error: passOverError("E021", { message, cause: problems.replaceAll("\n", " ") }) }
}

/** The tool pass_over_return. @returns the text for the subagent */
export const acceptReturn = (z: Zod, args: unknown, pass: ActivePass): string => {
  if (outcomeOf(pass.state)) return "The pass has its result, or is over: no other is taken. End your turn."
  const { originating_agent_id: originator } = pass.prepared.request
  const given = pass.sandbox ? toProjectValue(args, pass.sandbox.root) : args
  const earlierRefusals = pass.state.kind === "working" ? pass.state.refusals : 0
  const isAlone = pass.state.kind === "working" && pass.state.callsOfStep.length === 0
  const checked = validateReturn(z, given, { originator, earlierRefusals })
  if (checked.kind === "refused") {
    advance(pass, { type: "return_refused" })
    return checked.text
  }
  advance(pass, { type: "returned", outcome: checked })
  // Where another tool of this step is running, the end of the turn is waited for.
  if (isAlone) pass.workDone.resolve()
  if (checked.kind === "failed") return `${renderError(checked.error)}\nThe pass has failed. End your turn.`
  const { ignored } = checked
  const note = ignored.length === 0 ? "" : ` Left out, since it is seen by program: ${ignored.join(", ")}.`
  return `Returned to ${originator}.${note} End your turn now.`
}

/** Number of a child's newest messages that its result is made from. */
export const CHILD_MESSAGES = 200

export type Collected = Pick<ActiveState, "childSessionID" | "cancelReason" | "setUpError"> & {
  /** With paths of the worktree. */
  readonly outcome: Outcome | undefined
  readonly request: PassOverRequest
  readonly attempts: number
  readonly end: ChildEnd
  readonly messages: readonly StoredMessage[]
  /** The file changes, or the reason why they are unknown. */
  readonly changes: Changes | Refusal
  /** The sandbox whose paths in the child's text are replaced by the worktree's. */
  readonly sandbox: string | undefined
  readonly completedAt: string
}

/** @param cause the limit that was reached */
export const timeoutError = (cause: string): PassOverError =>
  passOverError("E010", {
    message: "The subagent was ended before it returned",
    cause,
    nextStep: "Pass a smaller piece of work, or go on without it. What it changed up to then is pending.",
  })

/** The error for the originator when a child's files cannot be set up. */
export const setUpError = ({ reason: cause, fix: nextStep }: Refusal): PassOverError =>
  passOverError("E011", { message: "The subagent's files could not be set up", cause, nextStep })

const filesError = ({ reason, fix }: Refusal): PassOverError =>
  passOverError("E011", {
    message: "What the subagent changed could not be stored; its sandbox is kept",
    cause: reason,
    nextStep: `${fix} Then pass_over_apply or pass_over_reject: they store it first.`,
  })

/** The error for an originator whose pass has no result in this process. @param why undefined where OpenCode's log tells */
export const lostError = (passID: string, why?: Refusal): PassOverError =>
  passOverError("E011", {
    message: `The result of ${passID} could not be stored`,
    cause: why?.reason ?? "OpenCode's log says why",
    nextStep: why?.fix,
  })

const judge = (collected: Collected): Pick<WorkOutput, "status" | "error"> => {
  const { end, cancelReason, outcome, setUpError, changes } = collected
  if (setUpError) return { status: "failed", error: setUpError }
  if (outcome?.kind === "failed") return { status: "failed", error: outcome.error }
  if (changes.kind === "refused") return { status: "failed", error: filesError(changes) }
  // A child that returned before it was stopped has done its work.
  if (outcome) return { status: outcome.value.status, error: null }
  if (end.kind === "crashed") return { status: end.error.code === "E010" ? "timeout" : "failed", error: end.error }
  if (end.kind === "ended") return { status: "partial", error: null }
  return cancelReason === "max_time"
    ? { status: "timeout", error: timeoutError("It worked for max_time_ms") }
    : { status: "aborted", error: null }
}

export const changedPaths = (output: WorkOutput): string[] =>
  artifactsOf(output, "file_modification").map(({ path }) => path)

/**
 * Builds the output of a pass from the child's return, else from its transcript; files and tool results as recorded by program.
 */
export const buildWorkOutput = (collected: Collected): WorkOutput => {
  const { request, outcome, messages, changes, sandbox } = collected
  const returned = outcome?.kind === "accepted" ? outcome.value : undefined
  const modifications = changes.kind === "changes" ? changes.modifications : []
  const shown = (text: string): string => (sandbox === undefined ? text : toProjectText(text, sandbox))
  const words = returned ? "" : shown(lastWords(messages))
  const results = collectToolResults(messages).map((result) => ({
    ...result,
    title: shown(result.title),
    output: shown(result.output),
  }))
  const findings = (returned?.findings ?? []).map((finding) => ({ type: "finding" as const, ...finding }))
  const claimed = returned?.artifacts ?? []
  const all = [...findings, ...claimed.filter((artifact) => artifact.type === "finding")]
  return {
    pass_over_id: request.pass_over_id,
    return_to: request.originating_agent_id,
    ...judge(collected),
    child_session_id: collected.childSessionID,
    source: returned ? "return" : words === "" ? "program" : "transcript",
    summary: {
      text: returned?.summary ?? words,
      decision: returned?.decision ?? null,
      findings: all.map(renderFinding),
      recommendations: [...(returned?.recommendations ?? [])],
    },
    artifacts: [...modifications, ...findings, ...claimed, ...results],
    reading: countReading(messages, request.work_context.files.filter(({ content }) => content !== null).length),
    refused: refusedCalls(messages).map(shown),
    left_out: changes.kind === "changes" ? changes.skipped : [],
    metadata: { ...request.metadata, attempts: collected.attempts, completed_at: collected.completedAt },
  }
}

/** Turns a stored output into the answer to a later pass with the same question. */
export const reuseOutput = (stored: WorkOutput, request: PassOverRequest, completedAt: string): WorkOutput => ({
  ...stored,
  pass_over_id: request.pass_over_id,
  return_to: request.originating_agent_id,
  metadata: {
    ...request.metadata,
    completed_at: completedAt,
    cached_from: stored.metadata.cached_from ?? stored.pass_over_id,
  },
})
