import { createDeferred } from "../host/async.ts"
import type { ChildSessions } from "../host/child-sessions.ts"
import { cutText, describeError, type Log } from "../host/log.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import { childRules } from "./child-permission.ts"
import { type ChildEnd, runChild } from "./child-run.ts"
import { writtenPaths } from "./child-transcript.ts"
import { type LivePass, stopPass } from "./live-pass.ts"
import type { PassRecord } from "./pass-record.ts"
import type { PassSessions } from "./pass-sessions.ts"
import type { Passes } from "./passes.ts"
import { renderContext, renderOrder } from "./render-context.ts"
import { runWithRetry } from "./retry.ts"
import { buildWorkOutput, CHILD_MESSAGES, changedPaths, setUpError } from "./work-output.ts"
import { pathInWorktree, redirectPath } from "./worktree/redirect.ts"
import type { PassWorktree } from "./worktree/worktree.ts"

export type PassWorkDeps = {
  readonly sessions: Pick<Sessions, "messages">
  readonly childSessions: ChildSessions
  readonly passSessions: PassSessions
  readonly passes: Passes
  readonly worktree: PassWorktree
  /** The copy's place relative to the worktree, as rules about files name it. */
  readonly relativeCopy: (copy: string) => string
  readonly log: Log
  readonly now: () => Date
}

const TITLE_CHARACTERS = 60

const titleOf = ({ prepared }: LivePass): string => {
  const objective = cutText(prepared.request.work_context.objective.replaceAll(/\s+/g, " "), TITLE_CHARACTERS)
  return `${objective} (@${prepared.subagent.name} pass_over)`
}

/** Runs a pass's child to its end and stores what came of it. */
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
    if (answer.kind === "answer") return answer.value.messages
    log.warn("the transcript of a pass cannot be read", { sessionID: childSessionID, reason: answer.reason })
    return []
  }

  /** Puts into the worktree what the policy wants there. */
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
      // Refused where whoever cancelled it has said so already.
      await passes.advance(pass.id, { type: "cancelled" })
      const rejected = changes.kind === "changes" ? await worktree.reject(pass.id) : changes
      if (rejected.kind === "refused" && rejected.code !== "unknown-pass")
        log.warn("the files of a cancelled pass stay", { pass: pass.id, reason: rejected.reason })
      return undefined
    }
    // Its originator has gone without having noted that, as at an exit: a late result, of which it is told.
    if (!pass.isAwaited && !request.async && request.return_required)
      await passes.advance(pass.id, { type: "timed_out" })
    const returned = await passes.advance(pass.id, { type: "returned", paths }, { output })
    if (returned.kind === "refused") {
      log.warn("a result came for a pass that takes none", { pass: pass.id, reason: returned.error.cause })
      return undefined
    }
    // What came late, or from a child that did not complete its work, is for the originator to decide.
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
      // The next start finds it open; until then nothing more may happen to its files.
      if (pass.childSessionID !== null) passSessions.close(pass.childSessionID)
      await worktree.withhold(pass.id)
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  /** Starts the child; `pass.finished` ends with what is stored. */
  return (pass: LivePass): void => {
    pass.finished = work(pass)
  }
}
