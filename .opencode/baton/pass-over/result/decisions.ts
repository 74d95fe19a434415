import type { ToolContext } from "@opencode-ai/plugin"
import type { Log } from "../../host/log.ts"
import {
  type ApplyArguments,
  artifactsOf,
  type FileModification,
  type RejectArguments,
  type StatusArguments,
} from "../contract.ts"
import { type PassOverError, passOverError, renderError, unknownPass } from "../errors.ts"
import { renderPolicy } from "../policy/resolve.ts"
import { type FileResult, isApplied } from "../sandbox/apply.ts"
import type { Refusal } from "../sandbox/repository.ts"
import type { Sandboxes } from "../sandbox/sandbox.ts"
import type { Passes } from "../store/passes.ts"
import { findForeignResult, isOpen, type PassRecord } from "../store/record.ts"
import type { PassStore } from "../store/store.ts"
import { type Approval, type EditPermission, reasonForName } from "./approval.ts"
import { named, renderPassLine, renderResult, renderUnapproved } from "./render.ts"

type DecideDeps = {
  readonly store: Pick<PassStore, "read" | "listOfSession">
  readonly passes: Pick<Passes, "transition">
  readonly sandboxes: Pick<Sandboxes, "collect" | "apply">
  /** Asks the user where the policy says so. */
  readonly approve: (record: PassRecord, ask: ToolContext["ask"]) => Promise<Approval>
  readonly mayWrite: EditPermission
  /** Notes that the originator knows the result, so that it is not announced. */
  readonly told: (record: PassRecord) => Promise<void>
  readonly log: Log
}

type Context = Pick<ToolContext, "sessionID" | "agent" | "ask">
type Found =
  | { readonly kind: "found"; readonly record: PassRecord }
  | { readonly kind: "refused"; readonly error: PassOverError }

const wrongState = (record: PassRecord): PassOverError =>
  passOverError("E024", {
    message: `${record.request.pass_over_id} has no files that wait to be applied or rejected`,
    cause: `It is ${record.state.state}`,
  })

const refusedByFiles = (passID: string, { reason: cause, fix: nextStep }: Refusal): PassOverError =>
  passOverError("E024", { message: `Nothing was done with the files of ${passID}`, cause, nextStep })

const filesAmong = ({ output }: PassRecord, paths: readonly string[]): FileModification[] =>
  artifactsOf(output, "file_modification").filter(({ path }) => paths.includes(path))

type Unnamed = { readonly path: string; readonly reason: string }

/** The files among these that are applied only when `artifacts` names them. */
const filesToName = (record: PassRecord, paths: readonly string[]): Unnamed[] =>
  filesAmong(record, paths).flatMap((file) => {
    const reason = reasonForName(file)
    return reason === undefined ? [] : [{ path: file.path, reason }]
  })

const renderUnnamed = (passID: string, files: readonly Unnamed[]): string[] => {
  if (files.length === 0) return []
  const call = JSON.stringify({ pass_over_id: passID, artifacts: files.map(({ path }) => path) })
  const lines = files.map(({ path, reason }) => `- ${named(path)}: ${reason}`)
  return [
    "Not applied yet, since each of these must be named in `artifacts`:",
    ...lines,
    `If they are wanted: pass_over_apply ${call}`,
  ]
}

const renderFileResult = ({ path, outcome, reason }: FileResult): string =>
  `- ${named(path)}: ${outcome}${reason === undefined ? "" : ` (${reason})`}`

/** The tools with which an originator decides on the files of a result. */
export const createDecisions = ({ store, passes, sandboxes, approve, mayWrite, told, log }: DecideDeps) => {
  const find = async (passID: string, sessionID: string): Promise<Found> => {
    const record = await store.read(passID)
    if (record?.request.originating_session_id === sessionID) {
      const error = findForeignResult(record)
      return error ? { kind: "refused", error } : { kind: "found", record }
    }
    const cause = record ? "It belongs to another session" : "It is not stored in this project"
    return { kind: "refused", error: unknownPass(passID, cause) }
  }

  /** Finishes what a crash cut off, and adds files that could not be stored when the result arrived. */
  const withFiles = async (record: PassRecord): Promise<PassRecord | Refusal> => {
    const { state, output, request } = record
    if (state.state !== "returned" || output === null) return record
    const id = request.pass_over_id
    const changes = await sandboxes.collect(id)
    // A pass without the right to change files.
    if (changes.kind === "refused") return changes.code === "unknown-pass" ? record : changes
    const files = changes.modifications
    if (files.length === 0 || [state.undecided, state.applied, state.rejected].flat().length > 0) return record
    const artifacts = [...files, ...output.artifacts]
    const paths = files.map(({ path }) => path)
    const change = { output: { ...output, artifacts, left_out: changes.skipped } }
    const collected = await passes.transition(id, { type: "collected", paths }, change)
    return collected.kind === "moved" ? collected.record : record
  }

  /** Finds a result that is not fully decided, and its files that are meant. */
  const findHeld = async (passID: string, sessionID: string, wanted: readonly string[] | undefined) => {
    const found = await find(passID, sessionID)
    if (found.kind === "refused") return found
    const record = await withFiles(found.record)
    if ("kind" in record) return { kind: "refused" as const, error: refusedByFiles(passID, record) }
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
    return { kind: "held" as const, record, undecided, paths: wanted ?? undecided }
  }

  const apply = async (args: ApplyArguments, context: Context): Promise<string> => {
    const { sessionID, ask } = context
    const { pass_over_id: passID, all_or_nothing: allOrNothing = true } = args
    const held = await findHeld(passID, sessionID, args.artifacts)
    if (held.kind === "refused") return renderError(held.error)
    if (held.paths.length === 0) return renderError(wrongState(held.record))
    if ((await approve(held.record, ask)).kind === "refused") return renderUnapproved(held.record)
    const unnamed = args.artifacts === undefined ? filesToName(held.record, held.paths) : []
    const paths = held.paths.filter((path) => !unnamed.some((file) => file.path === path))
    const rest = renderUnnamed(passID, unnamed)
    if (paths.length === 0) return [`${passID}: nothing was applied.`, ...rest].join("\n")
    // An agent that may not write these files must not have a pass write them.
    const previous = filesAmong(held.record, paths).flatMap(({ previous_path }) => previous_path ?? [])
    const asked = await mayWrite([...paths, ...previous], passID, context)
    if (asked.kind === "refused") {
      log.info("applying was not permitted", { sessionID, pass: passID, error: asked.reason })
      return `Nothing was applied: writing ${paths.map(named).join(", ")} is not permitted here (${asked.reason}). The files stay pending.`
    }
    const applied = await sandboxes.apply(passID, paths, { allOrNothing, by: "originator" })
    if (applied.kind === "refused") return renderError(refusedByFiles(passID, applied))
    await told(held.record)
    const done = applied.files.filter(isApplied)
    const lines = applied.files.map(renderFileResult)
    if (done.length === paths.length) return [`${passID}: applied.`, ...lines, ...rest].join("\n")
    const conflicts = applied.files.filter(({ outcome }) => outcome === "conflict")
    const error = passOverError("E022", {
      message: `${passID}: ${done.length === 0 ? "nothing was applied" : `${done.length} files were applied`}; ${held.undecided.length - done.length} stay pending`,
      cause: conflicts.map(({ path }) => path).join(", "),
    })
    return [renderError(error), ...lines, ...rest].join("\n")
  }

  const reject = async (args: RejectArguments, { sessionID }: Context): Promise<string> => {
    const { pass_over_id: passID, artifacts, reason } = args
    const held = await findHeld(passID, sessionID, artifacts)
    if (held.kind === "refused") return renderError(held.error)
    const { paths } = held
    const rejected = await passes.transition(passID, { type: "rejected", paths })
    if (rejected.kind === "refused") return renderError(rejected.error)
    await told(held.record)
    log.info("a result was rejected", { sessionID, pass: passID, reason })
    return `${passID}: rejected${paths.length === 0 ? "" : ` (${paths.map(named).join(", ")})`}. The worktree is as it was.`
  }

  /** Renders a pass in full: its progress while it is open, then its result if the user approves it. */
  const statusOf = async (record: PassRecord, ask: ToolContext["ask"]): Promise<string> => {
    const { output, request, state } = record
    if (!output || isOpen(state)) return renderPassLine(record)
    const approval = await approve(record, ask)
    if (approval.kind === "refused") return renderUnapproved(record)
    await told(record)
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
    return own.length === 0 ? "This session has made no passes." : own.map(renderPassLine).join("\n")
  }

  return { apply, reject, status }
}
