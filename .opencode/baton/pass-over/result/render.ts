import { quoted } from "../../host/quoted.ts"
import { cutText, onOneLine } from "../../host/text.ts"
import { type ArtifactOf, artifactsOf, type FileModification, type WorkOutput } from "../contract.ts"
import { renderError } from "../errors.ts"
import { findForeignResult, isOpen, type PassRecord, type PassState, reasonToAsk } from "../store/record.ts"
import { reasonForName } from "./approval.ts"
import { renderReading } from "./reading.ts"

/** Limits of a result as handed to its originator; pass_over_status shows all of it. */
const SHORT = { items: 40, files: 60, summaryCharacters: 8_000 }
const WHOLE: typeof SHORT = {
  items: Number.POSITIVE_INFINITY,
  files: Number.POSITIVE_INFINITY,
  summaryCharacters: Number.POSITIVE_INFINITY,
}
const OBJECTIVE_CHARACTERS = 80

/** No path of a system's is longer. */
const PATH_CHARACTERS = 4_096

/** A file's name in one line: a repository can carry any. */
export const named = (path: string): string => quoted(path, PATH_CHARACTERS)

const listed = (title: string, lines: readonly string[], max: number): string[] => {
  if (lines.length === 0) return []
  const more = lines.length > max ? [`- and ${lines.length - max} more: pass_over_status shows them`] : []
  return ["", `${title} (${lines.length}):`, ...lines.slice(0, max).map((line) => `- ${line}`), ...more]
}

/** Renders a finding: `error src/a.ts:10-12: message → fix`. */
export const renderFinding = (finding: Omit<ArtifactOf<"finding">, "type">): string => {
  const { severity, message, path, line, end_line, fix } = finding
  const place =
    path === undefined ? "" : ` ${named(path)}${line === undefined ? "" : `:${line}`}${end_line ? `-${end_line}` : ""}`
  return `${severity}${place}: ${message}${fix === undefined ? "" : ` → ${fix}`}`
}

const EXECUTABLE = "100755"

const renderFile = (file: FileModification): string => {
  const { path, change, previous_path, link_target, old_mode, new_mode, by, is_binary, is_large } = file
  const reason = reasonForName(file)
  const notes = [
    ...(previous_path === undefined ? [] : [`from ${named(previous_path)}`]),
    ...(link_target === undefined ? [] : [`link → ${JSON.stringify(link_target)}`]),
    ...(new_mode === EXECUTABLE ? ["executable"] : []),
    ...(old_mode !== null && new_mode !== null && old_mode !== new_mode ? [`mode ${old_mode} → ${new_mode}`] : []),
    ...(reason === undefined ? [] : [`applied by its name alone: ${reason}`]),
    ...(by === "shell" ? ["by a shell command"] : []),
    ...(is_binary ? ["binary"] : []),
    ...(is_large ? ["large"] : []),
  ]
  return `${change.replace("_", " ")} ${named(path)}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`
}

const renderDecided = (state: PassState): string => {
  const [applied, rejected] = "applied" in state ? [state.applied, state.rejected] : [[], []]
  if (applied.length > 0 && rejected.length > 0)
    return `In the worktree: ${applied.map(named).join(", ")}. Rejected: ${rejected.map(named).join(", ")}.`
  return `They are ${applied.length > 0 ? "in the worktree" : "not in the worktree"} (${state.state}).`
}

const renderLeftOut = ({ left_out, pass_over_id: id }: WorkOutput, max: number): string[] => {
  if (left_out.length === 0) return []
  const lines = left_out.map(({ path, reason }) => `${named(path)}: ${reason}`)
  return [
    ...listed("Not carried", lines, max),
    `What has no other place stays in .opencode/state/pass-over/${id}/copy while that is there.`,
  ]
}

const renderFiles = (output: WorkOutput, state: PassState, max: number): string[] => {
  const files = artifactsOf(output, "file_modification")
  if (files.length === 0) return ["", "Changed files: none"]
  const id = JSON.stringify({ pass_over_id: output.pass_over_id })
  const isUndecided = "undecided" in state && state.undecided.length > 0
  const wait = isUndecided
    ? [
        `${state.undecided.length} of them are pending, not in the worktree. Apply them: pass_over_apply ${id}`,
        `Reject them: pass_over_reject ${id} (both take "artifacts": paths, for some of them).`,
      ]
    : [renderDecided(state)]
  return [...listed("Changed files", files.map(renderFile), max), ...wait]
}

/**
 * Renders a result for the originator: short, and enough to act on.
 *
 * @param options `isWhole`: without limits
 */
export const renderResult = (
  output: WorkOutput,
  subagent: string,
  state: PassState,
  { isWhole = false }: { isWhole?: boolean } = {},
): string => {
  const max = isWhole ? WHOLE : SHORT
  const { summary, status, metadata, child_session_id, error, refused } = output
  const decision = summary.decision === null ? "" : `, decision: ${summary.decision}`
  const isLate = "is_late" in state && state.is_late
  return [
    `${output.pass_over_id}: ${subagent} → ${status}${decision}${isLate ? " (came late)" : ""}`,
    ...(metadata.cached_from === null
      ? []
      : [`This is the stored result of ${metadata.cached_from}: same question, same files.`]),
    renderReading(output.reading),
    ...(output.source === "transcript" ? ["It did not call pass_over_return; this is what it said last."] : []),
    ...(status === "completed" || refused.length === 0 ? [] : [`It was refused: ${refused.join("; ")}`]),
    ...(error === null ? [] : ["", renderError(error)]),
    ...(summary.text === "" ? [] : ["", cutText(summary.text, max.summaryCharacters)]),
    ...listed("Findings", artifactsOf(output, "finding").map(renderFinding), max.items),
    ...listed(
      "Decisions",
      artifactsOf(output, "decision").map(({ question, answer }) => `${question} → ${answer}`),
      max.items,
    ),
    ...listed("Recommendations", summary.recommendations, max.items),
    ...listed(
      "Messages",
      artifactsOf(output, "message").map(({ text }) => text),
      max.items,
    ),
    ...renderFiles(output, state, max.files),
    ...renderLeftOut(output, max.files),
    "",
    `Child session: ${child_session_id ?? "none was created"}`,
  ].join("\n")
}

/** Renders a pass in one line: id, subagent, outcome, child session, objective. */
export const renderPassLine = ({ request, state, output, child_session_id }: PassRecord): string => {
  const pending = "undecided" in state && state.undecided.length > 0 ? `, ${state.undecided.length} files pending` : ""
  const result = isOpen(state) ? state.state : `${state.state}${output ? ` (${output.status})` : ""}${pending}`
  const objective = cutText(onOneLine(request.work_context.objective), OBJECTIVE_CHARACTERS)
  return [request.pass_over_id, request.subagent_id, result, child_session_id ?? "no session", objective].join("  ")
}

const renderSession = ({ output }: PassRecord): string =>
  `Child session: ${output?.child_session_id ?? "none was created"}`

/** The text for the originator when the user refuses. */
export const renderUnapproved = (record: PassRecord): string =>
  [
    `${record.request.pass_over_id}: the user has not approved the result of ${record.request.subagent_id}. Go on without it.`,
    renderSession(record),
  ].join("\n")

/** Renders the announcement of a result that the originator did not wait for; the user cannot be asked then. */
export const renderNotice = (record: PassRecord): string | undefined => {
  const { output, request, state } = record
  if (!output) return undefined
  const { pass_over_id: id, subagent_id: subagent } = request
  const error = findForeignResult(record)
  if (error) return `${id}: ${renderError(error)}\n${renderSession(record)}`
  if (reasonToAsk(record) === undefined) return renderResult(output, subagent, state)
  return [
    `${id}: ${subagent} has returned. The user is asked whether its result may go back when you want it:`,
    `pass_over_status ${JSON.stringify({ pass_over_id: id })}`,
    renderSession(record),
  ].join("\n")
}
