import type { StartTimer } from "../../host/async.ts"
import type { ChildSessions } from "../../host/child-sessions.ts"
import { describeError, type Log } from "../../host/log.ts"
import { evaluate } from "../../host/permissions.ts"
import type { Sessions, StoredMessage } from "../../host/sessions.ts"
import { cutText } from "../../host/text.ts"
import { artifactsOf, type FileModification } from "../contract.ts"
import { reasonForName } from "../result/approval.ts"
import {
  buildWorkOutput,
  CHILD_MESSAGES,
  changedPaths,
  lostError,
  setUpError,
  timeoutError,
  writtenPaths,
} from "../result/work-output.ts"
import { toProjectPath, toSandboxPath } from "../sandbox/paths.ts"
import type { Sandboxes } from "../sandbox/sandbox.ts"
import type { Passes } from "../store/passes.ts"
import type { PassRecord } from "../store/record.ts"
import type { PassStore } from "../store/store.ts"
import { type ActivePass, advance, outcomeOf } from "./active-pass.ts"
import type { ActivePasses } from "./active-passes.ts"
import { renderContext, renderOrder } from "./context.ts"
import { childRules } from "./permissions.ts"
import { type ChildEnd, runChild, runWithRetry } from "./session.ts"

type PassWorkDeps = {
  readonly sessions: Pick<Sessions, "messages">
  readonly childSessions: ChildSessions
  readonly activePasses: ActivePasses
  readonly passes: Passes
  readonly store: Pick<PassStore, "read">
  readonly sandboxes: Pick<Sandboxes, "collect" | "apply" | "reset">
  /** Returns a sandbox's path relative to the worktree, as file rules name it. */
  readonly relativePath: (root: string) => string
  /** Names a file of the project as file rules do. */
  readonly asRuled: (path: string) => string
  readonly log: Log
  readonly now: () => Date
  readonly startTimer: StartTimer
}

const TITLE_CHARACTERS = 60

const titleOf = ({ prepared }: ActivePass): string => {
  const objective = cutText(prepared.request.work_context.objective.replaceAll(/\s+/g, " "), TITLE_CHARACTERS)
  return `${objective} (@${prepared.subagent.name} pass_over)`
}

/** Runs a pass's child to its end. Resolves with the stored record; undefined when storing failed. Never rejects. */
export const createChildWork = (deps: PassWorkDeps) => {
  const { sessions, childSessions, activePasses, passes, store, sandboxes, log, now } = deps

  /** Ends the pass's child when its files cannot be set up. */
  const watchFiles = (pass: ActivePass): void => {
    void pass.state.ready.then((refusal) => {
      if (!refusal) return
      advance(pass, { type: "set_up_failed", error: setUpError(refusal) })
      pass.stopping.abort()
    })
  }

  /** A further attempt begins with fresh files, and not with what the one before left. */
  const renewFiles = async (pass: ActivePass): Promise<ChildEnd | undefined> => {
    const { parentPass: parent } = pass.prepared
    const made = await sandboxes.reset(pass.id, { canModify: pass.limits.can_modify_files, parent })
    if (made.kind === "refused") {
      const error = setUpError(made)
      advance(pass, { type: "set_up_failed", error })
      return { kind: "crashed", error }
    }
    advance(pass, { type: "renewed", ready: made.ready })
    watchFiles(pass)
    return undefined
  }

  const attempt = async (pass: ActivePass, number: number): Promise<ChildEnd> => {
    const failed = number > 1 ? await renewFiles(pass) : undefined
    if (failed) return failed
    const { attemptMs, stopping } = pass
    if (attemptMs === undefined) return runAttempt(pass, stopping.signal)
    const late = new AbortController()
    const stopTimer = deps.startTimer(attemptMs, () => late.abort())
    const end = await runAttempt(pass, AbortSignal.any([stopping.signal, late.signal]))
    stopTimer()
    const isLate = end.kind === "stopped" && late.signal.aborted && !stopping.signal.aborted
    const error = timeoutError(`It took longer than timeout_ms, ${attemptMs} ms`)
    return isLate ? { kind: "crashed", error } : end
  }

  const runAttempt = (pass: ActivePass, signal: AbortSignal): Promise<ChildEnd> => {
    const { request, subagent, originatorRules, model } = pass.prepared
    const { limits, sandbox } = pass
    const fileRules = sandbox && {
      relative: deps.relativePath(sandbox.root),
      moved: (path: string) => toSandboxPath(path, sandbox),
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
          sandbox: fileRules,
        }),
        prompt: {
          text: renderOrder(request),
          context: renderContext(request, pass.skipped),
          agent: subagent.name,
          model,
        },
        workDone: pass.workDone.promise,
        signal,
        onSession: async (sessionID) => {
          advance(pass, { type: "session_started", sessionID })
          activePasses.turnStarted(sessionID, pass)
          const started = await passes.transition(pass.id, { type: "started" }, { child_session_id: sessionID })
          // It was cancelled between two attempts.
          if (started.kind === "refused") pass.stopping.abort()
        },
        onTurnOver: activePasses.turnEnded,
      },
    )
  }

  const readMessages = async ({ state: { childSessionID } }: ActivePass): Promise<readonly StoredMessage[]> => {
    if (childSessionID === null) return []
    const answer = await sessions.messages(childSessionID, CHILD_MESSAGES)
    if (answer.kind === "ok") return answer.value.messages
    log.warn("the transcript of a pass cannot be read", { sessionID: childSessionID, reason: answer.reason })
    return []
  }

  /** Applies to the worktree what the policy allows: files that the originator may write unasked, and that nothing runs. */
  const autoApply = async (pass: ActivePass, record: PassRecord): Promise<PassRecord> => {
    const { originatorRules } = pass.prepared
    const undecided = "undecided" in record.state ? record.state.undecided : []
    const isWanted = (file: FileModification): boolean => {
      const written = [file.path, file.previous_path ?? file.path]
      const isAllowed = written.every((path) => evaluate(originatorRules, "edit", deps.asRuled(path)) === "allow")
      return undecided.includes(file.path) && isAllowed && reasonForName(file) === undefined
    }
    const paths = artifactsOf(record.output, "file_modification")
      .filter(isWanted)
      .map(({ path }) => path)
    if (paths.length === 0) return record
    const options = { allOrNothing: false, by: "policy" } as const
    const applied = await sandboxes.apply(pass.id, paths, options)
    if (applied.kind === "refused") log.warn("changes could not be applied", { pass: pass.id, reason: applied.reason })
    return (await store.read(pass.id)) ?? record
  }

  const finish = async (pass: ActivePass, end: ChildEnd, attempts: number): Promise<PassRecord | undefined> => {
    const { request, policy } = pass.prepared
    advance(pass, { type: "ended" })
    const messages = await readMessages(pass)
    const { sandbox } = pass
    const written = sandbox ? writtenPaths(messages).map((path) => toProjectPath(path, sandbox)) : []
    const toolPaths = new Set(written.filter((path) => path !== undefined))
    const changes = await sandboxes.collect(pass.id, toolPaths)
    const found = { request, attempts, end, messages, changes, sandbox: sandbox?.root }
    const outcome = outcomeOf(pass.state)
    const output = buildWorkOutput({ ...pass.state, ...found, outcome, completedAt: now().toISOString() })
    const paths = changedPaths(output)
    await activePasses.judged(pass)
    if (pass.state.cancelReason === "cancelled") {
      // Refused when the canceller has recorded it already.
      await passes.transition(pass.id, { type: "cancelled" })
      return undefined
    }
    // The originator left without recording it, as at an exit: a late result, to be announced.
    if (pass.state.originator !== "waiting" && !request.async && request.return_required)
      await passes.transition(pass.id, { type: "timed_out" })
    const returned = await passes.transition(pass.id, { type: "returned", paths }, { output })
    if (returned.kind === "refused") {
      log.warn("result rejected: pass is already closed", { pass: pass.id, reason: returned.error.cause })
      if (changes.kind === "refused") advance(pass, { type: "lost", error: lostError(pass.id, changes) })
      return undefined
    }
    // A late or incomplete result is left for the originator to decide.
    const isWhole = end.kind === "ended" && output.status === "completed"
    const isKept = policy.values.auto_apply && isWhole && paths.length > 0
    const { state } = returned.record
    return isKept && "is_late" in state && !state.is_late ? autoApply(pass, returned.record) : returned.record
  }

  const work = async (pass: ActivePass): Promise<PassRecord | undefined> => {
    const { policy } = pass.prepared
    const stopTimer = deps.startTimer(policy.values.max_time_ms, () => activePasses.cancel(pass, "max_time"))
    watchFiles(pass)
    try {
      const { outcome, attempts } = await runWithRetry({
        policy: policy.values,
        attempt: (number) => attempt(pass, number),
        isRecoverable: (end) =>
          end.kind === "crashed" && end.error.recoverable && !outcomeOf(pass.state) && !pass.state.setUpError,
        onFailure: async (end) => {
          if (end.kind !== "crashed") return
          activePasses.attemptFailed(pass, end.error)
          await passes.attemptFailed(pass.id, end.error)
        },
        signal: pass.stopping.signal,
      })
      return await finish(pass, outcome ?? { kind: "stopped" }, attempts)
    } catch (error) {
      log.error("a pass could not be brought to its end", { pass: pass.id, error: describeError(error) })
      // The next start finds it open; until then its files must not change.
      advance(pass, { type: "ended" })
      await sandboxes.collect(pass.id)
      return undefined
    } finally {
      stopTimer()
    }
  }

  return work
}
