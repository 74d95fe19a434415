import type { ToolContext } from "@opencode-ai/plugin"
import { withDeadline } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { RESULT_PERMISSION } from "./agents.ts"
import { askUser } from "./ask-user.ts"
import type { PassRecord } from "./pass-record.ts"

/** Nobody may be there: a server has no way to tell. */
const ANSWER_DEADLINE_MS = 60_000

export type Release =
  | { readonly kind: "released"; readonly note: string | undefined }
  /** A person said no. */
  | { readonly kind: "refused" }

export type ReleaseDeps = {
  readonly ask: ToolContext["ask"]
  /** Whether somebody can be asked at all. */
  readonly hasUser: boolean
  /** Stores that the result may go back. */
  readonly noteRelease: (passID: string) => Promise<unknown>
  /** Takes back a question that nobody answered. */
  readonly withdraw: (passID: string) => Promise<void>
  readonly log: Log
  /** Default 60 s. */
  readonly answerDeadlineMs?: number
}

/** Whether a result goes back without a question: unless the user's own policy file, or the call, says otherwise. */
const isReleasedByPolicy = ({ policy }: PassRecord): boolean =>
  policy.values.auto_return || policy.levels.auto_return === "built-in"

/** Whether a result may go back without a question, or because it did before. */
export const isReleased = (record: PassRecord): boolean => isReleasedByPolicy(record) || record.released_at !== null

/**
 * Asks the user whether a result may go back, in OpenCode's own dialog; without an answer the result goes back, and says so.
 * Whoever gets a result by whatever tool gets it through here; after a yes nobody is asked again.
 *
 * @throws when the release cannot be stored
 */
export const releaseResult = async (record: PassRecord, deps: ReleaseDeps): Promise<Release> => {
  if (isReleased(record)) return { kind: "released", note: undefined }
  const release = await askForRelease(record, deps)
  if (release.kind === "released") await deps.noteRelease(record.request.pass_over_id)
  return release
}

const askForRelease = async (record: PassRecord, deps: ReleaseDeps): Promise<Release> => {
  if (!deps.hasUser)
    return { kind: "released", note: "Nobody could be asked whether it may go back (auto_return false)." }
  const { pass_over_id: passID, subagent_id: subagent } = record.request
  const question = {
    permission: RESULT_PERMISSION,
    patterns: [subagent],
    always: [subagent],
    metadata: {
      pass_over_id: passID,
      subagent,
      status: record.output?.status,
      decision: record.output?.summary.decision,
      summary: record.output?.summary.text,
    },
  }
  const deadlineMs = deps.answerDeadlineMs ?? ANSWER_DEADLINE_MS
  const answer = await withDeadline(askUser(deps.ask, question), deadlineMs)
  const context = { pass: passID, sessionID: record.request.originating_session_id }
  switch (answer.kind === "done" ? answer.value.kind : "late") {
    case "granted":
      return { kind: "released", note: undefined }
    case "refused":
      deps.log.info("a result was not released by the user", context)
      return { kind: "refused" }
    case "unable":
      deps.log.warn("this OpenCode lets no tool of a plugin ask: a result went back unasked", context)
      return { kind: "released", note: "This OpenCode cannot ask whether it may go back (auto_return false)." }
    case "late": {
      await deps.withdraw(passID)
      const seconds = deadlineMs / 1000
      return {
        kind: "released",
        note: `Nobody answered within ${seconds} s whether it may go back (auto_return false).`,
      }
    }
  }
}
