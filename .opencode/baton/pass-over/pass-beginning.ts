import { createDeferred } from "../host/async.ts"
import { describeError } from "../host/log.ts"
import { isReader } from "./child-permission.ts"
import { type PassOverError, passOverError, renderError } from "./errors.ts"
import type { LivePass } from "./live-pass.ts"
import type { PassOwners } from "./pass-owners.ts"
import type { PassRecord } from "./pass-record.ts"
import type { PassStore } from "./pass-store.ts"
import type { Advanced, Passes } from "./passes.ts"
import type { Prepared } from "./prepare-pass.ts"
import { reuseOutput, setUpError } from "./work-output.ts"
import type { Place } from "./worktree/redirect.ts"
import type { PassWorktree } from "./worktree/worktree.ts"

export type PassBeginningDeps = {
  readonly passes: Pick<Passes, "begin" | "advance">
  readonly store: Pick<PassStore, "findAnswer">
  readonly worktree: Pick<PassWorktree, "begin" | "withhold" | "complete">
  readonly toPlace: (copy: string, originatingSessionID: string) => Promise<Place>
  readonly owners: Pick<PassOwners, "claim" | "release">
  /** Notes a result where people look. */
  readonly note: (record: PassRecord) => Promise<void>
  readonly now: () => Date
}

/** What stands between a pass that may be made and a child at work: its record, its owner, its files, or a stored answer. */
export const createPassBeginning = (deps: PassBeginningDeps) => {
  const { passes, store, worktree, owners, now } = deps

  /** @returns the pass as the stored answer ends it, or why it cannot; undefined where there is none */
  const answerAgain = async (prepared: Prepared): Promise<Advanced | undefined> => {
    const { cacheKey, request } = prepared
    const id = request.pass_over_id
    const known = cacheKey === null ? undefined : await store.findAnswer(cacheKey)
    if (!known?.output) return undefined
    // Nobody may take it for a pass that was left.
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
    { copying, onRecorded }: { copying: ReturnType<PassWorktree["begin"]>; onRecorded: () => void },
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
   * @param onRecorded called when the pass counts as made, before its files are there
   * @returns the text of what is in the way of a beginning
   */
  const begin = async (prepared: Prepared, onRecorded: () => void): Promise<LivePass | string> => {
    const { request, policy } = prepared
    const { can_modify_files, can_run_tools } = policy.values
    const id = request.pass_over_id
    const { parentPass } = prepared
    // An agent that cannot change a file needs no copy, and must not get at a tool that could.
    const canModify = can_modify_files && can_run_tools && !isReader(prepared.subagent.permission)
    // Nobody may take it for a pass that was left.
    await owners.claim(id)
    const copying = worktree.begin(id, { canModify, ...(parentPass === undefined ? {} : { parent: parentPass }) })
    /** Nothing of it stays; only then may another process look at it. */
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
