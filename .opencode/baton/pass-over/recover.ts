import type { Log } from "../host/log.ts"
import { loadZod } from "../host/schema.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { ReturnArguments } from "./contract.ts"
import { passOverError } from "./errors.ts"
import type { PassOwners } from "./pass-owners.ts"
import type { PassRecord } from "./pass-record.ts"
import { isOpen } from "./pass-state.ts"
import type { PassStore } from "./pass-store.ts"
import type { Passes } from "./passes.ts"
import { checkReturn, MAX_REFUSED_RETURNS } from "./return-arguments.ts"
import { RETURN_TOOL } from "./tool-names.ts"
import { buildWorkOutput } from "./work-output.ts"
import type { PassWorktree } from "./worktree/worktree.ts"

export type RecoverDeps = {
  readonly store: Pick<PassStore, "listUnfinished">
  readonly passes: Pick<Passes, "advance">
  readonly worktree: Pick<PassWorktree, "restore" | "changes">
  readonly sessions: Pick<Sessions, "messages">
  readonly owners: Pick<PassOwners, "isOwned">
  readonly log: Log
  readonly now: () => Date
}

const NEWEST_MESSAGES = 200

const INTERRUPTED = passOverError("E011", {
  message: "OpenCode ended while the subagent worked",
  cause: "The process that worked on the pass is gone",
})

/** What a child had returned before its process ended. */
const findReturned = async (messages: readonly StoredMessage[]): Promise<ReturnArguments | undefined> => {
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool" && part.tool === RETURN_TOOL ? [part.state] : [])),
  )
  const input = calls.findLast(({ status }) => status === "completed")?.input
  if (!input) return undefined
  const checked = checkReturn(await loadZod(), input, MAX_REFUSED_RETURNS)
  return checked.kind === "accepted" ? checked.value : undefined
}

/** Whether there is a result of which the originator has not heard: it came late, or was never waited for. */
export const isUntold = ({ request, state, output, announced_at: announcedAt }: PassRecord): boolean =>
  output !== null &&
  announcedAt === null &&
  state.state === "returned" &&
  (state.is_late || (request.async && request.return_required))

/**
 * Brings passes to their end whose process died: what the child said and changed is kept as the result, and nothing is lost.
 *
 * @returns passes that their originators have to be told of
 */
export const recoverPasses = async (deps: RecoverDeps): Promise<PassRecord[]> => {
  const { store, passes, worktree, sessions, owners, log, now } = deps
  const all = await store.listUnfinished()
  const recovered: PassRecord[] = []
  for (const record of all) {
    const { request, child_session_id: childSessionID, attempts } = record
    const id = request.pass_over_id
    if (!isOpen(record.state) || (await owners.isOwned(id))) continue
    const answer = childSessionID === null ? undefined : await sessions.messages(childSessionID, NEWEST_MESSAGES)
    const messages = answer?.kind === "answer" ? answer.value.messages : []
    const restored = await worktree.restore(id)
    const changes = restored.kind === "restored" ? await worktree.changes(id) : restored
    const modifications = changes.kind === "changes" ? changes.modifications : []
    const output = buildWorkOutput({
      request,
      childSessionID,
      attempts,
      end: { kind: "crashed", error: INTERRUPTED },
      stopReason: undefined,
      returned: await findReturned(messages),
      returnError: undefined,
      messages,
      modifications,
      // A pass that could change nothing has no files to restore.
      filesError: undefined,
      completedAt: now().toISOString(),
    })
    const paths = modifications.map(({ path }) => path)
    // Nobody waits any more, which makes it a late result: it is announced, and never applied by itself.
    await passes.advance(id, { type: "timed_out" })
    const moved = await passes.advance(id, { type: "returned", paths }, { output })
    log.warn("a pass was left in the middle and is brought to its end", { pass: id, files: paths.length })
    if (moved.kind === "moved") recovered.push(moved.record)
  }
  return [...all.filter(isUntold), ...recovered]
}
