import type { ToolContext } from "@opencode-ai/plugin"
import { withDeadline } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { passOverError, renderError } from "./errors.ts"
import { type LivePass, stopPass } from "./live-pass.ts"
import { createPassBeginning, type PassBeginningDeps } from "./pass-beginning.ts"
import type { PassRecord } from "./pass-record.ts"
import type { Passes } from "./passes.ts"
import type { PassCall, Preparation } from "./prepare-pass.ts"
import type { Release } from "./release-result.ts"
import { renderUnreleased } from "./render-notice.ts"
import { renderResult } from "./render-result.ts"
import { createTurns } from "./turns.ts"

/** How long the originator waits for a child that it has ended. */
const END_GRACE_MS = 10_000

export type PassOverDeps = PassBeginningDeps & {
  readonly prepare: (call: PassCall) => Promise<Preparation>
  readonly passes: Passes
  /** The passes of this process that are not at their end, by id. */
  readonly live: Map<string, LivePass>
  /** Starts the child and sets `finished`. */
  readonly startWork: (pass: LivePass) => void
  /** Whether a pass of this session may go on behind its turn, and the session be told of the result later. */
  readonly canGoOn: (originatingSessionID: string) => boolean
  /** Whatever is to happen once the child is at its end: ledger, notice, announcement. Never rejects. */
  readonly onEnd: (record: PassRecord | undefined, pass: LivePass) => Promise<void>
  readonly release: (record: PassRecord, ask: ToolContext["ask"]) => Promise<Release>
  readonly log: Log
  /** Default 10 s. */
  readonly endGraceMs?: number
}

type Waited =
  | { readonly kind: "finished"; readonly record: PassRecord | undefined }
  | { readonly kind: "timeout" | "aborted" }

/** Waits for the pass, the time or the abort, whichever is first. */
const waitFor = async (pass: LivePass, timeoutMs: number, signal: AbortSignal): Promise<Waited> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let abort: (() => void) | undefined
  const early = new Promise<Waited>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "timeout" }), timeoutMs)
    abort = () => resolve({ kind: "aborted" })
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) abort()
  })
  try {
    return await Promise.race([pass.finished.then((record): Waited => ({ kind: "finished", record })), early])
  } finally {
    clearTimeout(timer)
    if (abort) signal.removeEventListener("abort", abort)
  }
}

const renderGoingOn = ({ id, prepared, childSessionID }: LivePass, why: string): string =>
  [
    `${id}: ${prepared.subagent.name} ${why}`,
    prepared.request.return_required
      ? "You are told here when there is a result; pass_over_status shows how it stands. Do not wait or ask in a loop."
      : "You are not told of its result, as you wished; pass_over_status shows it.",
    `Child session: ${childSessionID ?? "being created"}`,
  ].join("\n")

const lostResult = ({ id, childSessionID }: LivePass): string =>
  `${renderError(
    passOverError("E011", { message: `The result of ${id} could not be stored`, cause: "OpenCode's log says why" }),
  )}\nChild session: ${childSessionID ?? "none was created"}`

/** The tool pass_over. */
export const createPassOver = (deps: PassOverDeps) => {
  const { passes, live, log } = deps

  const { answerAgain, begin } = createPassBeginning(deps)

  const start = (pass: LivePass): void => {
    live.set(pass.id, pass)
    deps.startWork(pass)
    pass.finished = pass.finished.then(async (record) => {
      live.delete(pass.id)
      await deps.onEnd(record, pass)
      return record
    })
  }

  const giveBack = async (record: PassRecord, ask: ToolContext["ask"]): Promise<string> => {
    const { output, request, state } = record
    if (!output) return `${request.pass_over_id} has no result.`
    const release = await deps.release(record, ask)
    // Told here and now, so that nobody is told again; not before, since the user may let a minute pass and a crash come.
    if (request.async || ("is_late" in state && state.is_late)) await passes.announce(request.pass_over_id)
    if (release.kind === "refused") return renderUnreleased(record)
    const text = renderResult(output, request.subagent_id, state)
    return release.note === undefined ? text : `${text}\n${release.note}`
  }

  /** The originator goes on, and may change files then: the child's are what they are now. */
  const letGoOn = async (pass: LivePass): Promise<void> => {
    pass.isAwaited = false
    await deps.worktree.complete(pass.id)
  }

  const endInTime = async (pass: LivePass, ask: ToolContext["ask"]): Promise<string> => {
    const timedOut = await passes.advance(pass.id, { type: "timed_out" }).catch((error: unknown) => {
      pass.isAwaited = false
      throw error
    })
    if (timedOut.kind === "refused") {
      // It returned at the very last moment.
      const record = await pass.finished
      return record ? giveBack(record, ask) : lostResult(pass)
    }
    const { policy, request } = pass.prepared
    if (policy.values.on_timeout === "continue" && deps.canGoOn(request.originating_session_id)) {
      await letGoOn(pass)
      const { timeout_ms: timeoutMs } = policy.values
      const error = passOverError("E010", {
        message: `${pass.prepared.subagent.name} has not returned within ${timeoutMs} ms; it goes on`,
        cause: `timeout_ms is ${timeoutMs}, on_timeout is continue`,
        nextStep: "Go on without it. Its result is kept and announced here; its changes wait for pass_over_apply.",
      })
      return `${pass.id}: status timeout\n${renderError(error)}\nChild session: ${pass.childSessionID ?? "none yet"}`
    }
    stopPass(pass, "timeout")
    const ended = await withDeadline(pass.finished, deps.endGraceMs ?? END_GRACE_MS)
    if (ended.kind === "late") {
      pass.isAwaited = false
      return renderGoingOn(pass, "took too long and is being ended.")
    }
    return ended.kind === "done" && ended.value ? giveBack(ended.value, ask) : lostResult(pass)
  }

  /** Up to its record one pass is made after the other: those that count at the same time would all be the last allowed. */
  const makeOne = createTurns()

  const make = async (call: PassCall, ask: ToolContext["ask"], onRecorded: () => void): Promise<LivePass | string> => {
    const preparation = await deps.prepare(call)
    if (preparation.kind === "refused") {
      const { error, refusal, isAudited } = preparation
      if (isAudited) await passes.refuse(refusal, error)
      log.info("a pass was refused", { sessionID: call.sessionID, code: error.code, cause: error.cause })
      return renderError(error)
    }
    const { prepared } = preparation
    const known = await answerAgain(prepared)
    // The user may be asked for a minute; nobody waits for that.
    if (known) onRecorded()
    if (known) return known.kind === "moved" ? giveBack(known.record, ask) : renderError(known.error)
    const pass = await begin(prepared, onRecorded)
    if (typeof pass === "string") return pass
    start(pass)
    log.info("work is passed over", {
      sessionID: call.sessionID,
      pass: pass.id,
      subagent: prepared.subagent.name,
      policy: prepared.policy.name,
    })
    return pass
  }

  return async (call: PassCall, { abort, ask }: Pick<ToolContext, "abort" | "ask">): Promise<string> => {
    const pass = await makeOne((onRecorded) => make(call, ask, onRecorded))
    if (typeof pass === "string") return pass
    const { policy, request } = pass.prepared
    if ((request.async || !request.return_required) && deps.canGoOn(call.sessionID)) {
      await letGoOn(pass)
      return renderGoingOn(pass, "is at work.")
    }
    const waited = await waitFor(pass, policy.values.timeout_ms, abort)
    switch (waited.kind) {
      case "finished":
        return waited.record ? giveBack(waited.record, ask) : lostResult(pass)
      case "timeout":
        return endInTime(pass, ask)
      case "aborted":
        stopPass(pass, "cancelled")
        await passes.advance(pass.id, { type: "cancelled" })
        await withDeadline(pass.finished, END_GRACE_MS)
        return `${pass.id} was cancelled. Child session: ${pass.childSessionID ?? "none was created"}`
    }
  }
}
