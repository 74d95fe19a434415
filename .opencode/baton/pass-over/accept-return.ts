import type { Zod } from "../host/schema.ts"
import { renderError } from "./errors.ts"
import type { LivePass } from "./live-pass.ts"
import type { PassSession } from "./pass-sessions.ts"
import { checkReturn } from "./return-arguments.ts"
import { projectValue } from "./worktree/redirect.ts"

/** The tool pass_over_return. @returns what the subagent reads */
export const acceptReturn = (z: Zod, args: unknown, session: PassSession, pass: LivePass): string => {
  if (session.hasReturned) return "The result has been returned already. End your turn."
  const checked = checkReturn(z, pass.place ? projectValue(args, pass.place.copy) : args, session.refusals)
  switch (checked.kind) {
    case "refused":
      session.refusals++
      return checked.text
    case "failed":
      session.hasReturned = true
      pass.returnError = checked.error
      return `${renderError(checked.error)}\nThe pass has failed. End your turn.`
    case "accepted": {
      session.hasReturned = true
      pass.returned = checked.value
      const { ignored } = checked
      const note = ignored.length === 0 ? "" : ` Left out, since it is seen by program: ${ignored.join(", ")}.`
      return `Returned to ${pass.prepared.request.originating_agent_id}.${note} End your turn now.`
    }
  }
}
