import type { PassRecord } from "./pass-record.ts"
import { isReleased } from "./release-result.ts"
import { renderResult } from "./render-result.ts"

const renderSession = ({ output }: PassRecord): string =>
  `Child session: ${output?.child_session_id ?? "none was created"}`

/** What the originator reads when the user has said no. */
export const renderUnreleased = (record: PassRecord): string =>
  [
    `${record.request.pass_over_id}: the user does not release the result of ${record.request.subagent_id}. Go on without it.`,
    renderSession(record),
  ].join("\n")

/** What an originator is told of a result that it did not wait for: nobody can be asked then whether it may go back. */
export const renderNotice = (record: PassRecord): string | undefined => {
  const { output, request, state } = record
  if (!output) return undefined
  const { pass_over_id: id, subagent_id: subagent } = request
  if (isReleased(record)) return renderResult(output, subagent, state)
  return [
    `${id}: ${subagent} has returned. The user is asked whether its result may go back when you want it:`,
    `pass_over_status ${JSON.stringify({ pass_over_id: id })}`,
    renderSession(record),
  ].join("\n")
}
