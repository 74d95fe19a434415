import type { ToolContext } from "@opencode-ai/plugin"
import { createDeferred, withDeadline } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import { type LivePass, stopPass } from "./child/active-passes.ts"
import { isReader } from "./child/permissions.ts"
import { type PassOverError, passOverError, renderError } from "./errors.ts"
import type { PassCall, Preparation, Prepared } from "./prepare.ts"
import type { Release } from "./result/approval.ts"
import { renderResult, renderUnreleased } from "./result/render.ts"
import { reuseOutput, setUpError } from "./result/work-output.ts"
import type { Place } from "./sandbox/paths.ts"
import type { Sandboxes } from "./sandbox/sandbox.ts"
import type { Advanced, Passes } from "./store/passes.ts"
import type { PassRecord } from "./store/record.ts"
import type { PassOwners, PassStore } from "./store/store.ts"

/**
 * Serialises the starts of jobs: the next starts when the one before calls `next` or ends.
 *
 * @returns the job's result
 */
export const createTurns = () => {
  let last: Promise<void> = Promise.resolve()
  return async <T>(work: (next: () => void) => Promise<T>): Promise<T> => {
    const before = last
    let next = (): void => {}
    last = new Promise((resolve) => {
      next = resolve
    })
    await before
    try {
      return await work(next)
    } finally {
      next()
    }
  }
}

type PassBeginningDeps = {
  readonly passes: Pick<Passes, "begin" | "advance">
  readonly store: Pick<PassStore, "findAnswer">
  readonly worktree: Pick<Sandboxes, "begin" | "withhold">
  readonly toPlace: (copy: string, originatingSessionID: string) => Promise<Place>
  readonly owners: Pick<PassOwners, "claim" | "release">
  /** Adds a result to the task's log and shows it on the screen. */
  readonly note: (record: PassRecord) => Promise<void>
  readonly now: () => Date
}

/** Begins a pass that was allowed: record, owner, and files, or a stored answer. */
const createPassBeginning = (deps: PassBeginningDeps) => {
  const { passes, store, worktree, owners, now } = deps

  /** @returns the pass as answered from the store, or the reason why it cannot be; undefined without a stored answer */
  const answerAgain = async (prepared: Prepared): Promise<Advanced | undefined> => {
    const { cacheKey, request } = prepared
    const id = request.pass_over_id
    const known = cacheKey === null ? undefined : await store.findAnswer(cacheKey)
    if (!known?.output) return undefined
    // Claimed, so that no other process takes it for an abandoned pass.
    await owners.claim(id)
    try {
      await passes.begin(prepared)
      const output = reuseOutput(known.output, request, now().toISOString())
      const change = { output, child_session_id: known.child_session_id }
      const answered = await passes.advance(id, { type: "returned", paths: [] }, change)
      if (answered.kind === "moved") await deps.note(answered.record)
      return answered
    } finally {
      await owners.release(id)
    }
  }

  const enter = async (
    prepared: Prepared,
    { copying, onRecorded }: { copying: ReturnType<Sandboxes["begin"]>; onRecorded: () => void },
  ) => {
    await passes.begin(prepared)
    onRecorded()
    const begun = await copying
    if (begun.kind === "refused") return begun
    const { copy, leftOut, made } = begun
    const place = copy === undefined ? undefined : await deps.toPlace(copy, prepared.request.originating_session_id)
    return { kind: "entered" as const, place, leftOut, made }
  }

  /**
   * @param onRecorded called when the pass counts as made, before its files exist
   * @returns the live pass, or the text of the error
   */
  const begin = async (prepared: Prepared, onRecorded: () => void): Promise<LivePass | string> => {
    const { request, policy } = prepared
    const { can_modify_files, can_run_tools } = policy.values
    const id = request.pass_over_id
    const { parentPass } = prepared
    // An agent that cannot change files needs no copy, and must not get a tool that could change them.
    const canModify = can_modify_files && can_run_tools && !isReader(prepared.subagent.permission)
    // Claimed, so that no other process takes it for an abandoned pass.
    await owners.claim(id)
    const copying = worktree.begin(id, { canModify, ...(parentPass === undefined ? {} : { parent: parentPass }) })
    /** Removes the pass's files; only then may another process look at it. */
    const giveUp = async (error: PassOverError): Promise<void> => {
      try {
        if ((await copying).kind === "begun") await worktree.withhold(id)
        await passes.advance(id, { type: "cancelled" }, {}, error)
      } finally {
        await owners.release(id)
      }
    }
    const entered = await enter(prepared, { copying, onRecorded }).catch(async (error: unknown) => {
      const cause = describeError(error)
      await giveUp(passOverError("E011", { message: "The pass could not be begun", cause }))
      throw error
    })
    if (entered.kind === "refused") {
      const error = setUpError(entered)
      await giveUp(error)
      return renderError(error)
    }
    return {
      id,
      prepared,
      place: entered.place,
      leftOut: entered.leftOut,
      made: entered.made,
      setUpError: undefined,
      limits: { can_modify_files: canModify, can_run_tools },
      stopping: new AbortController(),
      stopReason: undefined,
      childSessionID: null,
      rest: createDeferred<void>(),
      transcript: undefined,
      returned: undefined,
      returnError: undefined,
      isAwaited: true,
      finished: Promise.resolve(undefined),
    }
  }

  return { answerAgain, begin }
}

/** Time that the originator waits for a child that it has stopped. */
const END_GRACE_MS = 10_000

export type PassOverDeps = PassBeginningDeps & {
  readonly prepare: (call: PassCall) => Promise<Preparation>
  readonly passes: Passes
  /** The running passes of this process, by id. */
  readonly live: Map<string, LivePass>
  /** Starts the child and sets `finished`. */
  readonly startWork: (pass: LivePass) => void
  /** Tells whether a pass of this session may continue after its turn, to be announced to the session later. */
  readonly canGoOn: (originatingSessionID: string) => boolean
  /** Runs the steps at a child's end: ledger, notice, announcement. Never rejects. */
  readonly onEnd: (record: PassRecord | undefined, pass: LivePass) => Promise<void>
  readonly release: (record: PassRecord, ask: ToolContext["ask"]) => Promise<Release>
  readonly log: Log
  /** Default 10 s. */
  readonly endGraceMs?: number
}

type Waited =
  | { readonly kind: "finished"; readonly record: PassRecord | undefined }
  | { readonly kind: "timeout" | "aborted" }

/** Waits for the pass, the time-out or the abort, whichever is first. */
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
    // Marked as announced here, so that it is not announced again; not earlier, since the user may take a minute to answer and
    // the process may crash meanwhile.
    if (request.async || ("is_late" in state && state.is_late)) await passes.announce(request.pass_over_id)
    if (release.kind === "refused") return renderUnreleased(record)
    const text = renderResult(output, request.subagent_id, state)
    return release.note === undefined ? text : `${text}\n${release.note}`
  }

  /** The sandbox is made before the originator continues and may change files. */
  const letGoOn = async (pass: LivePass): Promise<void> => {
    pass.isAwaited = false
    await pass.made
  }

  const endInTime = async (pass: LivePass, ask: ToolContext["ask"]): Promise<string> => {
    const timedOut = await passes.advance(pass.id, { type: "timed_out" }).catch((error: unknown) => {
      pass.isAwaited = false
      throw error
    })
    if (timedOut.kind === "refused") {
      // It returned at the last moment.
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

  /** Passes are counted and recorded one at a time; otherwise several could each count as the last allowed one. */
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
    // The user may take a minute to answer; the next pass need not wait for that.
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
