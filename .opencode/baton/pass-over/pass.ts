import type { ToolContext } from "@opencode-ai/plugin"
import { createDeferred, raceWithAbort, withDeadline } from "../host/async.ts"
import { describeError, errorCode, type Log } from "../host/log.ts"
import { type ActivePass, advance, outcomeOf, type Prepared, startingState } from "./child/active-pass.ts"
import type { ActivePasses } from "./child/active-passes.ts"
import type { PassOverRequest, WorkOutput } from "./contract.ts"
import { type PassOverError, passOverError, renderError } from "./errors.ts"
import type { PassCall, Preparation } from "./prepare.ts"
import type { Approval } from "./result/approval.ts"
import { renderResult, renderUnapproved } from "./result/render.ts"
import { lostError, reuseOutput, setUpError } from "./result/work-output.ts"
import type { Boundary } from "./sandbox/boundary.ts"
import type { SandboxPaths } from "./sandbox/paths.ts"
import type { Refusal } from "./sandbox/repository.ts"
import type { Sandboxes } from "./sandbox/sandbox.ts"
import type { Passes, Transition } from "./store/passes.ts"
import type { PassRecord } from "./store/record.ts"
import type { PassOwners, PassStore } from "./store/store.ts"

/** Time that an aborted originator waits for its child to end. */
const END_GRACE_MS = 10_000

export type PassOverDeps = {
  readonly prepare: (call: PassCall) => Promise<Preparation>
  readonly passes: Pick<Passes, "begin" | "transition" | "refuse" | "announce">
  readonly store: Pick<PassStore, "findAnswer" | "removeUnwritten">
  readonly sandboxes: Pick<Sandboxes, "create" | "collect">
  readonly toSandboxPaths: (root: string, originatingSessionID: string) => Promise<SandboxPaths>
  readonly createBoundary: (sandbox: string) => Promise<Boundary | Refusal>
  readonly owners: Pick<PassOwners, "claim" | "release">
  readonly activePasses: Pick<ActivePasses, "add" | "remove" | "isExit" | "isEnding">
  /** Runs the child to its end. Resolves with the stored record; undefined when storing failed. Never rejects. */
  readonly runChild: (pass: ActivePass) => Promise<PassRecord | undefined>
  /** A pass of this session may continue after its turn, to be announced to the session later. */
  readonly canDetach: (originatingSessionID: string) => boolean
  /** Runs the steps at a child's end: ledger, notice, announcement. Never rejects. */
  readonly onEnd: (record: PassRecord | undefined, pass: ActivePass) => Promise<void>
  /** Adds a result to the task's log and shows it on the screen. */
  readonly recordResult: (record: PassRecord) => Promise<void>
  readonly approve: (record: PassRecord, ask: ToolContext["ask"]) => Promise<Approval>
  readonly log: Log
  readonly now: () => Date
}

/** The originator does not wait for this pass. */
const isDetached = ({ async, return_required }: PassOverRequest): boolean => async || !return_required

/** Waits for the pass, the time-out or the abort, whichever is first. */
const waitFor = async ({ finished }: ActivePass, timeoutMs: number | undefined, signal: AbortSignal) => {
  const over = raceWithAbort([finished.promise.then((record) => ({ kind: "finished" as const, record }))], signal)
  if (timeoutMs === undefined) return over
  const first = await withDeadline(over, timeoutMs)
  return first.kind === "done" ? first.value : { kind: "timeout" as const }
}

/** `text` is for the originator. Without an output the pass gave none, and `error`, where it has a code, says why. */
export type PassAnswer = { readonly text: string; readonly output?: WorkOutput; readonly error?: PassOverError }

const refused = (error: PassOverError): PassAnswer => ({ text: renderError(error), error })

const renderDetached = ({ id, prepared, state: { childSessionID } }: ActivePass, why: string): string =>
  [
    `${id}: ${prepared.subagent.name} ${why}`,
    prepared.request.return_required
      ? "You are told here when there is a result; pass_over_status shows how it stands. Do not wait or ask in a loop."
      : "You are not told of its result, as you wished; pass_over_status shows it.",
    `Child session: ${childSessionID ?? "being created"}`,
  ].join("\n")

const answerLost = ({ id, state }: ActivePass): PassAnswer => {
  const { childSessionID } = state
  const outcome = outcomeOf(state)
  const error = outcome?.kind === "failed" ? outcome.error : lostError(id)
  return { text: `${renderError(error)}\nChild session: ${childSessionID ?? "none was created"}`, error }
}

type CallContext = Pick<ToolContext, "abort" | "ask">

/** OpenCode ends: no session can take the result. */
const answerUndelivered = ({ id }: ActivePass): PassAnswer => ({
  text: `OpenCode ends before ${id} could be answered. pass_over_status shows what was done, and a later turn is told.`,
})

const boundaryError = ({ reason: cause, fix: nextStep }: Refusal): PassOverError =>
  passOverError("E030", { message: 'The policy has "sandbox": "os", which cannot be had here', cause, nextStep })

const unrecordedError = (error: unknown): PassOverError =>
  passOverError("E011", {
    message: "Nothing was passed, since a pass cannot be recorded",
    cause: `.opencode/state cannot be written (${errorCode(error) ?? describeError(error)})`,
    nextStep: "Do the work yourself, and tell the user, who can mend that.",
  })

const withNote = ({ prepared: { note } }: ActivePass, answer: PassAnswer): PassAnswer =>
  note === undefined ? answer : { ...answer, text: `${answer.text}\n${note}` }

/** Makes passes, for the tool pass_over and for other plugins. */
export const createPassRunner = (deps: PassOverDeps) => {
  const { passes, store, sandboxes, owners, activePasses, log, now } = deps

  /** @returns the pass as answered from the store, or the reason why it cannot be; undefined without a stored answer */
  const answerFromCache = async (prepared: Prepared): Promise<Transition | undefined> => {
    const { cacheKey, request } = prepared
    const id = request.pass_over_id
    const known = cacheKey === null ? undefined : await store.findAnswer(cacheKey)
    if (!known?.output) return undefined
    // Claimed, so that no other process takes it for an abandoned pass.
    await owners.claim(id)
    try {
      const begun = await passes.begin(prepared)
      if (begun.kind === "refused") return begun
      const output = reuseOutput(known.output, request, now().toISOString())
      const change = { output, child_session_id: known.child_session_id }
      const answered = await passes.transition(id, { type: "returned", paths: [] }, change)
      if (answered.kind === "moved") await deps.recordResult(answered.record)
      return answered
    } finally {
      await owners.release(id)
      await store.removeUnwritten(id)
    }
  }

  /** @returns the active pass, or the error */
  const startPass = async (prepared: Prepared, attemptMs: number | undefined): Promise<ActivePass | PassOverError> => {
    const { request, policy, parentPass } = prepared
    const { can_run_tools } = policy.values
    const id = request.pass_over_id
    // An agent that cannot change files needs no sandbox, and must not get a tool that could change them.
    const { canChange: canModify } = prepared
    /** Removes the pass's files; only then may another process look at it. */
    const fail = async (error: PassOverError): Promise<PassOverError> => {
      try {
        await sandboxes.collect(id)
        await passes.transition(id, { type: "cancelled" }, {}, error)
        return error
      } finally {
        await owners.release(id)
        await store.removeUnwritten(id)
      }
    }
    // Claimed, so that no other process takes it for an abandoned pass.
    try {
      await owners.claim(id)
    } catch (error) {
      log.warn("a pass cannot be recorded", { pass: id, error: describeError(error) })
      return unrecordedError(error)
    }
    const setUp = async () => {
      const recorded = await passes.begin(prepared)
      if (recorded.kind === "refused") return recorded.error
      const created = await sandboxes.create(id, { canModify, parent: parentPass })
      if (created.kind === "refused") return setUpError(created)
      const { sandbox: root, skipped, ready } = created
      const sandbox = root === undefined ? undefined : await deps.toSandboxPaths(root, request.originating_session_id)
      // A child that may change no file has no shell.
      const isBound = policy.values.sandbox === "os" && canModify && root !== undefined
      const boundary = isBound ? await deps.createBoundary(root) : undefined
      if (boundary?.kind === "refused") return boundaryError(boundary)
      return { place: { sandbox, boundary, skipped, state: startingState(ready) } }
    }
    const made = await setUp().catch(async (error: unknown) => {
      const cause = describeError(error)
      await fail(passOverError("E011", { message: "The pass could not be begun", cause }))
      throw error
    })
    if ("code" in made) return fail(made)
    return {
      id,
      prepared,
      ...made.place,
      limits: { can_modify_files: canModify, can_run_tools },
      attemptMs,
      stopping: new AbortController(),
      workDone: createDeferred(),
      finished: createDeferred(),
    }
  }

  /** Never rejects: the originator and OpenCode's exit wait for its end. */
  const run = async (pass: ActivePass): Promise<void> => {
    const step = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await work()
      } catch (error) {
        log.error("a pass has failed", { pass: pass.id, error: describeError(error) })
        advance(pass, { type: "ended" })
        return undefined
      }
    }
    activePasses.add(pass)
    const record = await step(() => deps.runChild(pass))
    await step(() => deps.onEnd(record, pass))
    activePasses.remove(pass)
    pass.finished.resolve(record)
  }

  const answer = async (record: PassRecord, ask: ToolContext["ask"]): Promise<PassAnswer> => {
    const { output, request, state } = record
    if (!output) return { text: `${request.pass_over_id} has no result.` }
    const approval = await deps.approve(record, ask)
    // Marked as announced here, so that it is not announced again; not earlier, since the user may take a minute to answer and
    // the process may crash meanwhile.
    if (request.async || ("is_late" in state && state.is_late)) await passes.announce(request.pass_over_id)
    if (approval.kind === "refused") return { text: renderUnapproved(record) }
    const text = renderResult(output, request.subagent_id, state)
    return { text: approval.note === undefined ? text : `${text}\n${approval.note}`, output }
  }

  /** The sandbox is made before the originator continues and may change files. */
  const detach = async (pass: ActivePass): Promise<void> => {
    advance(pass, { type: "originator_left" })
    await pass.state.ready
  }

  /** The originator goes on, and the child, too. */
  const timeOut = async (pass: ActivePass, ask: ToolContext["ask"]): Promise<PassAnswer> => {
    const { timeout_ms: timeoutMs } = pass.prepared.policy.values
    const error = passOverError("E010", {
      message: `${pass.prepared.subagent.name} has not returned within ${timeoutMs} ms; it goes on`,
      cause: `timeout_ms is ${timeoutMs}, on_timeout is continue`,
      nextStep: "Go on without it. Its result is kept and announced here; its changes wait for pass_over_apply.",
    })
    const timedOut = await passes.transition(pass.id, { type: "timed_out" }, {}, error).catch((error: unknown) => {
      advance(pass, { type: "originator_left" })
      throw error
    })
    if (timedOut.kind === "refused") {
      // It returned at the last moment.
      const record = await pass.finished.promise
      return record ? answer(record, ask) : answerLost(pass)
    }
    advance(pass, { type: "originator_timed_out" })
    await pass.state.ready
    const text = `${pass.id}: status timeout\n${renderError(error)}\nChild session: ${pass.state.childSessionID ?? "none yet"}`
    return { text, error }
  }

  /**
   * Ends a pass whose originator was aborted. The user's abort drops its changes, also those of a result that comes in the same
   * moment; what was done until OpenCode's exit is its result.
   */
  const cancel = async (pass: ActivePass): Promise<PassAnswer> => {
    const judged = activePasses.isExit(pass)
    pass.stopping.abort()
    if (await judged) return answerUndelivered(pass)
    const cancelled = await passes.transition(pass.id, { type: "cancelled" })
    await withDeadline(pass.finished.promise, END_GRACE_MS)
    if (cancelled.kind === "refused") {
      await passes.transition(pass.id, { type: "rejected" })
    }
    return { text: `${pass.id} was cancelled. Child session: ${pass.state.childSessionID ?? "none was created"}` }
  }

  const make = async (call: PassCall, ask: ToolContext["ask"]): Promise<ActivePass | PassAnswer> => {
    const preparation = await deps.prepare(call)
    if (preparation.kind === "refused") {
      const { error, refusal, isAudited } = preparation
      if (isAudited) await passes.refuse(refusal, error)
      log.info("a pass was refused", { sessionID: call.sessionID, code: error.code, cause: error.cause })
      return refused(error)
    }
    const { prepared } = preparation
    const known = await answerFromCache(prepared)
    if (known) return known.kind === "moved" ? answer(known.record, ask) : refused(known.error)
    const { request, policy } = prepared
    const { on_timeout, timeout_ms } = policy.values
    const mayDetach =
      deps.canDetach(request.originating_session_id) && (isDetached(request) || on_timeout === "continue")
    const pass = await startPass(prepared, mayDetach ? undefined : timeout_ms)
    if ("code" in pass) return refused(pass)
    void run(pass)
    log.info("work is passed over", {
      sessionID: call.sessionID,
      pass: pass.id,
      subagent: prepared.subagent.name,
      policy: prepared.policy.name,
    })
    return pass
  }

  /** 1.2.15 leaves the question to the user open when it aborts the tool that asks. */
  const answerUnlessAborted = async (record: PassRecord, { abort, ask }: CallContext): Promise<PassAnswer> => {
    const answered = await raceWithAbort(
      [answer(record, ask).then((given) => ({ kind: "answered" as const, given }))],
      abort,
    )
    return answered.kind === "answered" ? answered.given : { text: renderUnapproved(record) }
  }

  const finish = async (pass: ActivePass, { abort, ask }: CallContext): Promise<PassAnswer> => {
    // An attempt that is ended at its time-out needs no second clock.
    const timeoutMs = pass.attemptMs === undefined ? pass.prepared.policy.values.timeout_ms : undefined
    const waited = await waitFor(pass, timeoutMs, abort)
    switch (waited.kind) {
      case "finished":
        if (!waited.record) return answerLost(pass)
        return activePasses.isEnding() ? answerUndelivered(pass) : answerUnlessAborted(waited.record, { abort, ask })
      case "timeout":
        return timeOut(pass, ask)
      case "stopped":
        return cancel(pass)
    }
  }

  return async (call: PassCall, context: CallContext): Promise<PassAnswer> => {
    const pass = await make(call, context.ask)
    if ("text" in pass) return pass
    if (isDetached(pass.prepared.request) && deps.canDetach(call.sessionID)) {
      await detach(pass)
      return withNote(pass, { text: renderDetached(pass, "is at work.") })
    }
    const answered = withNote(pass, await finish(pass, context))
    if (!(context.abort.aborted ? await activePasses.isExit(pass) : activePasses.isEnding())) return answered
    // Nothing waits for the answer any more: the next start tells the result.
    await passes.transition(pass.id, { type: "untold" })
    return answered
  }
}
