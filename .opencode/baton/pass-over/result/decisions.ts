import type { ToolContext } from "@opencode-ai/plugin"
import type { Log } from "../../host/log.ts"
import { type PassOverError, passOverError, renderError, unknownPass } from "../errors.ts"
import { renderPolicy } from "../policy/resolve.ts"
import type { FileResult } from "../sandbox/apply.ts"
import type { Refusal } from "../sandbox/repository.ts"
import type { Sandboxes } from "../sandbox/sandbox.ts"
import type { Passes } from "../store/passes.ts"
import { type Decisions, findForeignResult, isOpen, type PassRecord } from "../store/record.ts"
import type { PassStore } from "../store/store.ts"
import type { ApplyArguments, RejectArguments, StatusArguments } from "../tools.ts"
import type { Approval, EditPermission } from "./approval.ts"
import { renderPassLine, renderResult, renderUnapproved } from "./render.ts"
import { withoutContents } from "./work-output.ts"

const hasFiles = ({ undecided, applied, rejected }: Decisions): boolean =>
  [undecided, applied, rejected].some(({ length }) => length > 0)

/**
 * Adds files to a result that could not be stored when it arrived: the disk was full, or git did not answer. Their copy, or its
 * restored changes (`baton passes restore`), still exists.
 */
const createFilesCollector =
  ({ worktree, passes }: { worktree: Pick<Sandboxes, "restore" | "changes">; passes: Pick<Passes, "advance"> }) =>
  async (record: PassRecord): Promise<{ readonly kind: "collected"; readonly record: PassRecord } | Refusal> => {
    const { state, output, request } = record
    if (state.state !== "returned" || output === null || hasFiles(state)) return { kind: "collected", record }
    const id = request.pass_over_id
    const restored = await worktree.restore(id)
    const changes = restored.kind === "restored" ? await worktree.changes(id) : restored
    // A pass without the right to change files.
    if (changes.kind === "refused") return changes.code === "unknown-pass" ? { kind: "collected", record } : changes
    const { modifications } = changes
    if (modifications.length === 0) return { kind: "collected", record }
    const whole = {
      ...output,
      artifacts: [...modifications.map(withoutContents), ...output.artifacts],
      left_out: changes.leftOut,
    }
    const paths = modifications.map(({ path }) => path)
    const moved = await passes.advance(id, { type: "collected", paths }, { output: whole })
    return { kind: "collected", record: moved.kind === "moved" ? moved.record : record }
  }

type DecideDeps = {
  readonly store: Pick<PassStore, "read" | "listOfSession">
  readonly passes: Pick<Passes, "advance">
  readonly worktree: Pick<Sandboxes, "apply" | "reject" | "restore" | "changes">
  /** Tells whether the user approves the result to the originator. */
  readonly approve: (record: PassRecord, ask: ToolContext["ask"]) => Promise<Approval>
  readonly mayWrite: EditPermission
  readonly log: Log
}

type Context = Pick<ToolContext, "sessionID" | "agent" | "ask">
type Found =
  | { readonly kind: "found"; readonly record: PassRecord }
  | { readonly kind: "refused"; readonly error: PassOverError }

const isOfSession = ({ request }: PassRecord, sessionID: string): boolean =>
  request.originating_session_id === sessionID

const wrongState = (record: PassRecord): PassOverError =>
  passOverError("E024", {
    message: `${record.request.pass_over_id} has no files that wait to be applied or rejected`,
    cause: `It is ${record.state.state}`,
  })

const refusedByFiles = (passID: string, { reason: cause, fix: nextStep }: Refusal): PassOverError =>
  passOverError("E024", { message: `Nothing was done with the files of ${passID}`, cause, nextStep })

/** The old paths of the renamed files among these. */
const previousPaths = ({ output }: PassRecord, paths: readonly string[]): string[] =>
  (output?.artifacts ?? []).flatMap((artifact) =>
    artifact.type === "file_modification" && artifact.previous_path !== undefined && paths.includes(artifact.path)
      ? [artifact.previous_path]
      : [],
  )

const renderFileResult = ({ path, outcome, reason, mergeable }: FileResult): string =>
  `- ${path}: ${outcome}${reason === undefined ? "" : ` (${reason})`}${mergeable === true ? ", can be merged" : ""}`

const renderOne = ({ request, state, output, child_session_id: childSessionID }: PassRecord): string =>
  renderPassLine({
    id: request.pass_over_id,
    subagent: request.subagent_id,
    objective: request.work_context.objective,
    state,
    status: output?.status,
    childSessionID,
  })

/** The tools with which an originator decides on the files of a result. */
export const createDecisions = ({ store, passes, worktree, approve, mayWrite, log }: DecideDeps) => {
  const find = async (passID: string, sessionID: string): Promise<Found> => {
    const record = await store.read(passID)
    if (record && isOfSession(record, sessionID)) {
      const error = findForeignResult(record)
      return error ? { kind: "refused", error } : { kind: "found", record }
    }
    const cause = record ? "It belongs to another session" : "It is not stored in this project"
    return { kind: "refused", error: unknownPass(passID, cause) }
  }

  const collect = createFilesCollector({ worktree, passes })

  /** Finds a result that is not fully decided, and its files that are meant. */
  const findHeld = async (passID: string, sessionID: string, wanted: readonly string[] | undefined) => {
    const found = await find(passID, sessionID)
    if (found.kind === "refused") return found
    const collected = await collect(found.record)
    if (collected.kind === "refused") return { kind: "refused" as const, error: refusedByFiles(passID, collected) }
    const { record } = collected
    if (record.state.state !== "returned") return { kind: "refused" as const, error: wrongState(record) }
    const { undecided } = record.state
    const unknown = (wanted ?? []).filter((path) => !undecided.includes(path))
    if (unknown.length > 0) {
      const message = `These are not among the files that wait: ${unknown.join(", ")}`
      return {
        kind: "refused" as const,
        error: passOverError("E024", { message, cause: `Waiting: ${undecided.join(", ")}` }),
      }
    }
    return { kind: "held" as const, record, paths: wanted ?? undecided }
  }

  const apply = async (args: ApplyArguments, context: Context): Promise<string> => {
    const { sessionID, ask } = context
    const { pass_over_id: passID, merge = false, all_or_nothing: allOrNothing = true } = args
    const held = await findHeld(passID, sessionID, args.artifacts)
    if (held.kind === "refused") return renderError(held.error)
    if (held.paths.length === 0) return renderError(wrongState(held.record))
    if ((await approve(held.record, ask)).kind === "refused") return renderUnapproved(held.record)
    const { paths } = held
    // An agent that may not write these files must not have a pass write them.
    const asked = await mayWrite([...paths, ...previousPaths(held.record, paths)], passID, context)
    if (asked.kind === "refused") {
      log.info("applying was not permitted", { sessionID, pass: passID, error: asked.reason })
      return `Nothing was applied: writing ${paths.join(", ")} is not permitted here (${asked.reason}). The files stay pending.`
    }
    const applied = await worktree.apply(passID, { paths, merge, allOrNothing })
    if (applied.kind === "refused") return renderError(refusedByFiles(passID, applied))
    const done = applied.files.filter(({ outcome }) => outcome !== "conflict" && outcome !== "not-tried")
    if (done.length > 0) {
      const moved = await passes.advance(passID, {
        type: "applied",
        paths: done.map(({ path }) => path),
        by: "originator",
      })
      if (moved.kind === "refused") log.warn("an apply is not noted", { pass: passID, reason: moved.error.cause })
    }
    const lines = applied.files.map(renderFileResult)
    if (applied.complete) return [`${passID}: applied.`, ...lines].join("\n")
    const conflicts = applied.files.filter(({ outcome }) => outcome === "conflict")
    const canMerge = !merge && conflicts.some(({ mergeable }) => mergeable)
    const error = passOverError("E022", {
      message: `${passID}: ${done.length === 0 ? "nothing was applied" : `${done.length} files were applied`}; ${applied.held} stay pending`,
      cause: conflicts.map(({ path }) => path).join(", "),
      ...(canMerge
        ? { nextStep: "Call pass_over_apply again with merge: true, name other files in artifacts, or reject." }
        : {}),
    })
    return [renderError(error), ...lines].join("\n")
  }

  const reject = async (args: RejectArguments, { sessionID }: Context): Promise<string> => {
    const { pass_over_id: passID, artifacts, reason } = args
    const held = await findHeld(passID, sessionID, artifacts)
    if (held.kind === "refused") return renderError(held.error)
    // A result without files can be rejected too.
    const none = { kind: "rejected" as const, paths: [], applied: [] }
    const rejected = held.paths.length === 0 ? none : await worktree.reject(passID, held.paths)
    if (rejected.kind === "refused") return renderError(refusedByFiles(passID, rejected))
    const { paths, applied } = rejected
    if (applied.length > 0) {
      const noted = await passes.advance(passID, { type: "applied", paths: applied, by: "originator" })
      if (noted.kind === "refused") return renderError(noted.error)
    }
    if (paths.length > 0 || applied.length === 0) {
      const moved = await passes.advance(passID, { type: "rejected", paths })
      if (moved.kind === "refused") return renderError(moved.error)
    }
    log.info("a result was rejected", { sessionID, pass: passID, reason })
    if (applied.length > 0)
      return `${passID}: ${applied.join(", ")} had been applied before. Rejected: ${paths.join(", ") || "nothing"}.`
    return `${passID}: rejected${paths.length === 0 ? "" : ` (${paths.join(", ")})`}. The worktree is as it was.`
  }

  /** Renders a pass in full: its progress while it is open, then its result if the user approves it. */
  const statusOf = async (record: PassRecord, ask: ToolContext["ask"]): Promise<string> => {
    const { output, request, state } = record
    if (!output || isOpen(state)) return renderOne(record)
    const approval = await approve(record, ask)
    if (approval.kind === "refused") return renderUnapproved(record)
    const text = renderResult(output, request.subagent_id, state, { isWhole: true })
    return approval.note === undefined ? text : `${text}\n${approval.note}`
  }

  const status = async ({ pass_over_id: passID }: StatusArguments, { sessionID, ask }: Context): Promise<string> => {
    if (passID !== undefined) {
      const found = await find(passID, sessionID)
      if (found.kind === "refused") return renderError(found.error)
      return `${await statusOf(found.record, ask)}\n\n${renderPolicy(found.record.policy)}`
    }
    const own = await store.listOfSession(sessionID)
    return own.length === 0 ? "This session has made no passes." : own.map(renderOne).join("\n")
  }

  return { apply, reject, status }
}
