import { cutText, type Log } from "../host/log.ts"
import type { Tui } from "../host/tui.ts"
import type { Outbox } from "../ledger/outbox-entry.ts"
import type { PassRecord } from "./pass-record.ts"

const TOAST_MS = 6_000
const LINE_CHARACTERS = 200

/** Whether a person should look: it did not go well, or something was found. */
const hasIssues = ({ output }: PassRecord): boolean =>
  output !== null &&
  (output.status !== "completed" || output.artifacts.some(({ type }) => type === "finding") || output.error !== null)

const line = (text: string): string => cutText(text.replaceAll(/\s+/g, " ").trim(), LINE_CHARACTERS)

export type ResultNotesDeps = {
  readonly outbox: Pick<Outbox, "add">
  readonly tui: Pick<Tui, "showToast">
  readonly hasUser: boolean
  readonly log: Log
}

/** Notes a result where people look: in the log of its task, and on the screen where the policy says so. */
export const createResultNotes = ({ outbox, tui, hasUser, log }: ResultNotesDeps) => {
  const show = async (record: PassRecord): Promise<void> => {
    const { notify_on_return: notify } = record.policy.values
    if (!hasUser || notify === "never" || (notify === "only_issues" && !hasIssues(record))) return
    const { subagent_id: subagent } = record.request
    const { output } = record
    const decision = output?.status === "completed" ? output.summary.decision?.replaceAll("_", " ") : undefined
    const verdict = decision ?? output?.status ?? ""
    const message = line(`${verdict}: ${output?.summary.text ?? ""}`)
    const variant = hasIssues(record) ? "warning" : "success"
    const shown = await tui.showToast({ title: `${subagent} returned`, message, variant, durationMs: TOAST_MS })
    if (shown.kind === "failed") log.debug("toast not shown", { reason: shown.reason })
  }
  return async (record: PassRecord): Promise<void> => {
    const { request, output, child_session_id: childSessionID } = record
    const { task } = request.work_context
    if (task && output) {
      const decision = output.summary.decision === null ? "" : `, ${output.summary.decision}`
      const what = `Pass ${request.originating_agent_id} → ${request.subagent_id}: ${output.status}${decision}`
      const message = line(`${what} (${request.pass_over_id}, ${childSessionID ?? "no session"}): ${request.reason}`)
      await outbox.add({ kind: "log", taskID: task.id, message })
    }
    // Nobody waits for a notice on the screen.
    void show(record)
  }
}
