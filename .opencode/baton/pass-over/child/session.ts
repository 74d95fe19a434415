import { createDeferred, withDeadline } from "../../host/async.ts"
import type { ChildSessions, PermissionRule, Prompt } from "../../host/child-sessions.ts"
import { describeError, type Log, truncate } from "../../host/log.ts"
import type { Result, Sessions, StoredMessage } from "../../host/sessions.ts"
import { type PassOverError, passOverError } from "../errors.ts"
import { abortTree } from "../policy/chain.ts"
import type { Policy } from "../policy/policy.ts"
import { buildWorkOutput, CHILD_MESSAGES, changedPaths, setUpError, writtenPaths } from "../result/work-output.ts"
import { pathInWorktree, redirectPath } from "../sandbox/paths.ts"
import type { Sandboxes } from "../sandbox/sandbox.ts"
import type { Passes } from "../store/passes.ts"
import type { PassRecord } from "../store/record.ts"
import { type LivePass, type PassSessions, stopPass } from "./active-passes.ts"
import { renderContext, renderOrder } from "./context.ts"
import { childRules } from "./permissions.ts"

export type RetryPolicy = Pick<Policy, "max_retries" | "retry_delay_ms" | "backoff_multiplier">

/** Upper bound of a wait, for any multiplier. */
export const MAX_DELAY_MS = 600_000
/** Random share of a delay, so that attempts that failed together do not return together. */
const JITTER = 0.2

/**
 * Returns the wait before each further attempt, in ms: the delay times the growing multiplier, each with its jitter.
 *
 * @param random from 0 to below 1
 */
export const retryDelays = (policy: RetryPolicy, random: () => number): number[] =>
  Array.from({ length: policy.max_retries }, (_, at) => {
    const delay = policy.retry_delay_ms * policy.backoff_multiplier ** at
    return Math.round(Math.min(delay, MAX_DELAY_MS) * (1 - JITTER + 2 * JITTER * random()))
  })

type Retried<Outcome> =
  | { readonly kind: "ended"; readonly outcome: Outcome; readonly attempts: number }
  /** Aborted before an attempt could end; `last` is the outcome of the one before. */
  | { readonly kind: "aborted"; readonly last: Outcome | undefined; readonly attempts: number }

type RetryDeps<Outcome> = {
  readonly policy: RetryPolicy
  /** @param number from 1. Rejects only when no further attempt can help. */
  readonly attempt: (number: number) => Promise<Outcome>
  readonly isRecoverable: (outcome: Outcome) => boolean
  /** Called before the wait, so that every failure is recorded. */
  readonly onFailure?: (outcome: Outcome, about: { attempt: number; delayMs: number }) => Promise<void>
  readonly signal: AbortSignal
  readonly random?: () => number
}

/** Resolves after the time or at the abort, whichever is first; leaves neither timer nor listener. */
const pause = (delayMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, delayMs)
    signal.addEventListener("abort", end)
    if (signal.aborted) end()
  })

/** Repeats an attempt until it succeeds, fails for good, or none is left; an abort ends it at once. */
export const runWithRetry = async <Outcome>(deps: RetryDeps<Outcome>): Promise<Retried<Outcome>> => {
  const { policy, attempt, isRecoverable, onFailure, signal, random = Math.random } = deps
  const delays = retryDelays(policy, random)
  let last: Outcome | undefined
  for (let number = 1; ; number++) {
    if (signal.aborted) return { kind: "aborted", last, attempts: number - 1 }
    const outcome = await attempt(number)
    const delayMs = delays[number - 1]
    if (delayMs === undefined || signal.aborted || !isRecoverable(outcome))
      return { kind: "ended", outcome, attempts: number }
    last = outcome
    await onFailure?.(outcome, { attempt: number, delayMs })
    await pause(delayMs, signal)
  }
}

/** Time that a stopped child may take to end, and the interval of repeated aborts. */
const STOP_GRACE_MS = 5_000
const STOP_AGAIN_MS = 250
/** Time that a child may continue its turn after its work is done. */
const CLOSING_MS = 60_000

export type ChildEnd =
  /** Its work is done. */
  | { readonly kind: "ended" }
  | { readonly kind: "crashed"; readonly error: PassOverError }
  /** It was aborted, by the pass or by the user. */
  | { readonly kind: "stopped" }

type ChildOrder = {
  readonly parentID: string
  readonly title: string
  readonly permission: readonly PermissionRule[]
  readonly prompt: Prompt
  /** Resolves when its work is done, perhaps before its turn is; the rest of the turn is not waited for. */
  readonly atRest: Promise<unknown>
  /** Stops the child and everything below it. */
  readonly signal: AbortSignal
  /** Called before the child's first step, which does not wait for what this stores. */
  readonly onSession: (sessionID: string) => Promise<void>
  /** Called when the child's turn is over, perhaps after this program has stopped waiting for it. */
  readonly onTurnOver: (sessionID: string) => void
}

const crashed = (message: string, cause: string): ChildEnd => ({
  kind: "crashed",
  error: passOverError("E011", { message, cause }),
})

const describeModelError = (error: { name: string; data: Record<string, unknown> }): string => {
  const { message } = error.data
  return `${error.name}${typeof message === "string" ? `: ${message}` : ""}`.slice(0, 500)
}

/** Repeats the abort until the turn has ended: OpenCode drops an abort that comes while a prompt is being stored. */
const endTurn = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  sessionID: string,
  turn: Promise<unknown>,
): Promise<void> => {
  const over = performance.now() + STOP_GRACE_MS
  while (performance.now() < over) {
    await abortTree(sessions, sessionID, log)
    const ended = await withDeadline(turn, STOP_AGAIN_MS)
    if (ended.kind !== "late") return
  }
  log.warn("a child session did not end when it was told to", { sessionID })
}

/** Resolves with the first of these, or at the abort. */
const firstOf = async <T>(promises: readonly Promise<T>[], signal: AbortSignal): Promise<T | { kind: "stopped" }> => {
  const stopped = createDeferred<{ kind: "stopped" }>()
  const stop = (): void => stopped.resolve({ kind: "stopped" })
  signal.addEventListener("abort", stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([...promises, stopped.promise])
  } finally {
    signal.removeEventListener("abort", stop)
  }
}

/** Lets a child whose work is done end its turn, or aborts it like a working one. */
const letSpeak = async (
  deps: { sessions: ChildSessions; log: Log },
  { sessionID, turn, signal }: { sessionID: string; turn: Promise<unknown>; signal: AbortSignal },
): Promise<void> => {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), CLOSING_MS)
  timer.unref()
  const over = turn.then(() => ({ kind: "over" as const }))
  const first = await firstOf([over], AbortSignal.any([signal, limit.signal]))
  clearTimeout(timer)
  if (first.kind === "stopped") await endTurn(deps, sessionID, turn)
}

/** Creates a child session, runs its agent, and waits for the end of its work. Never throws. */
const runChild = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  order: ChildOrder,
): Promise<ChildEnd> => {
  const { signal, prompt } = order
  if (signal.aborted) return { kind: "stopped" }
  const created = await sessions.create(order)
  if (created.kind === "failed") return crashed("The child session could not be created", created.reason)
  const sessionID = created.value
  const noted = order.onSession(sessionID)
  const turn = sessions.prompt(sessionID, prompt).finally(() => order.onTurnOver(sessionID))
  try {
    await noted
  } catch (error) {
    // A child that is not recorded must not work.
    await endTurn({ sessions, log }, sessionID, turn)
    throw error
  }
  const first = await firstOf<{ kind: "over"; answer: Result<StoredMessage> } | { kind: "at-rest" }>(
    [turn.then((answer) => ({ kind: "over", answer })), order.atRest.then(() => ({ kind: "at-rest" }))],
    signal,
  )
  if (first.kind === "stopped") {
    await endTurn({ sessions, log }, sessionID, turn)
    return { kind: "stopped" }
  }
  if (first.kind === "at-rest") {
    void letSpeak({ sessions, log }, { sessionID, turn, signal })
    return { kind: "ended" }
  }
  const { answer } = first
  if (answer.kind === "failed") return crashed("The subagent's turn failed", answer.reason)
  const { info } = answer.value
  const error = info.role === "assistant" ? info.error : undefined
  if (!error) return { kind: "ended" }
  if (error.name === "MessageAbortedError") return { kind: "stopped" }
  return crashed("The subagent's model gave an error", describeModelError(error))
}

type PassWorkDeps = {
  readonly sessions: Pick<Sessions, "messages">
  readonly childSessions: ChildSessions
  readonly passSessions: PassSessions
  readonly passes: Passes
  readonly worktree: Sandboxes
  /** Returns the copy's path relative to the worktree, as file rules name it. */
  readonly relativeCopy: (copy: string) => string
  readonly log: Log
  readonly now: () => Date
}

const TITLE_CHARACTERS = 60

const titleOf = ({ prepared }: LivePass): string => {
  const objective = truncate(prepared.request.work_context.objective.replaceAll(/\s+/g, " "), TITLE_CHARACTERS)
  return `${objective} (@${prepared.subagent.name} pass_over)`
}

/** Runs a pass's child to its end and stores the result. */
export const createPassWork = (deps: PassWorkDeps) => {
  const { sessions, childSessions, passSessions, passes, worktree, log, now } = deps

  const attempt = (pass: LivePass): Promise<ChildEnd> => {
    const { request, subagent, originatorRules, model } = pass.prepared
    const { limits } = pass
    const { place } = pass
    const copy = place && {
      relative: deps.relativeCopy(place.copy),
      moved: (path: string) => redirectPath(path, place),
    }
    return runChild(
      { sessions: childSessions, log },
      {
        parentID: request.originating_session_id,
        title: titleOf(pass),
        permission: childRules({
          limits,
          child: subagent.permission,
          originator: originatorRules,
          copy,
        }),
        prompt: {
          text: renderOrder(request),
          context: renderContext(request, pass.leftOut),
          agent: subagent.name,
          model,
        },
        atRest: pass.rest.promise,
        signal: pass.stopping.signal,
        onSession: async (sessionID) => {
          pass.childSessionID = sessionID
          passSessions.begin(sessionID, {
            passID: pass.id,
            limits,
            place: pass.place,
            hasReturned: false,
            isOver: false,
            refusals: 0,
            begun: new Set(),
            above: request.metadata.origination_chain.map((link) => link.session_id),
            originatorWentOn: createDeferred(),
            stop: () => pass.stopping.abort(),
          })
          const started = await passes.advance(pass.id, { type: "started" }, { child_session_id: sessionID })
          // It was cancelled between two attempts.
          if (started.kind === "refused") pass.stopping.abort()
        },
        onTurnOver: passSessions.end,
      },
    )
  }

  const readMessages = async ({ childSessionID, transcript }: LivePass): Promise<readonly StoredMessage[]> => {
    if (transcript) return transcript
    if (childSessionID === null) return []
    const answer = await sessions.messages(childSessionID, CHILD_MESSAGES)
    if (answer.kind === "ok") return answer.value.messages
    log.warn("the transcript of a pass cannot be read", { sessionID: childSessionID, reason: answer.reason })
    return []
  }

  /** Applies to the worktree what the policy allows. */
  const keepFiles = async (pass: LivePass, record: PassRecord): Promise<PassRecord> => {
    const kept = await worktree.keep(pass.id)
    if (kept.kind === "refused") {
      log.warn("changes could not be kept", { pass: pass.id, reason: kept.reason })
      return record
    }
    const paths = kept.files
      .filter(({ outcome }) => outcome !== "conflict" && outcome !== "not-tried")
      .map(({ path }) => path)
    if (paths.length === 0) return record
    const applied = await passes.advance(pass.id, { type: "applied", paths, by: "policy" })
    return applied.kind === "moved" ? applied.record : record
  }

  const finish = async (pass: LivePass, end: ChildEnd, attempts: number): Promise<PassRecord | undefined> => {
    const { request, policy } = pass.prepared
    if (pass.childSessionID !== null) passSessions.close(pass.childSessionID)
    const messages = await readMessages(pass)
    const { place } = pass
    const written = place ? writtenPaths(messages).map((path) => pathInWorktree(path, place)) : []
    const toolPaths = new Set(written.filter((path) => path !== undefined))
    const changes = await worktree.withhold(pass.id, toolPaths)
    const output = buildWorkOutput({
      request,
      childSessionID: pass.childSessionID,
      attempts,
      end,
      stopReason: pass.stopReason,
      returned: pass.returned,
      setUpError: pass.setUpError,
      returnError: pass.returnError,
      messages,
      changes,
      copy: place?.copy,
      completedAt: now().toISOString(),
    })
    const paths = changedPaths(output)
    if (pass.stopReason === "cancelled") {
      // Refused when the canceller has recorded it already.
      await passes.advance(pass.id, { type: "cancelled" })
      const rejected = changes.kind === "changes" ? await worktree.reject(pass.id) : changes
      if (rejected.kind === "refused" && rejected.code !== "unknown-pass")
        log.warn("the files of a cancelled pass stay", { pass: pass.id, reason: rejected.reason })
      return undefined
    }
    // The originator left without recording it, as at an exit: a late result, to be announced.
    if (!pass.isAwaited && !request.async && request.return_required)
      await passes.advance(pass.id, { type: "timed_out" })
    const returned = await passes.advance(pass.id, { type: "returned", paths }, { output })
    if (returned.kind === "refused") {
      log.warn("a result came for a pass that takes none", { pass: pass.id, reason: returned.error.cause })
      return undefined
    }
    // A late or incomplete result is left for the originator to decide.
    const isWhole = end.kind === "ended" && output.status === "completed"
    const isKept = policy.values.auto_apply && isWhole && paths.length > 0
    const { state } = returned.record
    return isKept && "is_late" in state && !state.is_late ? keepFiles(pass, returned.record) : returned.record
  }

  const work = async (pass: LivePass): Promise<PassRecord | undefined> => {
    const { policy } = pass.prepared
    const timer = setTimeout(() => stopPass(pass, "max_time"), policy.values.max_time_ms)
    timer.unref()
    void pass.made.then((refusal) => {
      if (!refusal) return
      pass.setUpError = setUpError(refusal)
      pass.stopping.abort()
    })
    try {
      const retried = await runWithRetry({
        policy: policy.values,
        attempt: () => attempt(pass),
        isRecoverable: (end) => end.kind === "crashed" && end.error.recoverable && !pass.returned && !pass.returnError,
        onFailure: async (end) => {
          if (end.kind === "crashed") await passes.attemptFailed(pass.id, end.error)
        },
        signal: pass.stopping.signal,
      })
      const end = retried.kind === "ended" ? retried.outcome : { kind: "stopped" as const }
      return await finish(pass, end, retried.attempts)
    } catch (error) {
      log.error("a pass could not be brought to its end", { pass: pass.id, error: describeError(error) })
      // The next start finds it open; until then its files must not change.
      if (pass.childSessionID !== null) passSessions.close(pass.childSessionID)
      await worktree.withhold(pass.id)
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  /** Starts the child; `pass.finished` resolves with the stored record. */
  return (pass: LivePass): void => {
    pass.finished = work(pass)
  }
}
