import { pagesBack, type Sessions, type StoredMessage } from "../host/sessions.ts"
import { type Activity, afterSnapshot, afterToolUse, EMPTY_ACTIVITY } from "../task/activity.ts"
import { collectUserText } from "../task/parse.ts"

/** What a whole session shows, read from the newest page back. */
export type SessionHistory = {
  /** The first thing the user wrote, verbatim; undefined when it was not reached. */
  readonly firstRequest?: string
  readonly activity: Activity
  readonly compactions: number
  /** Why not every message was read; undefined when all were. */
  readonly incomplete?: string
}

const PAGE_MESSAGES = 200

type Step =
  | { readonly kind: "tool"; readonly tool: string; readonly args: unknown; readonly metadata: unknown }
  | { readonly kind: "snapshot"; readonly files: readonly string[] }

/** Only what the activity is made of, so that a long session's outputs are not kept. */
const stepsOf = ({ info, parts }: StoredMessage): Step[] =>
  info.role === "user"
    ? []
    : parts.flatMap((part): Step[] => {
        if (part.type === "patch") return [{ kind: "snapshot", files: part.files }]
        if (part.type !== "tool" || part.state.status !== "completed") return []
        const { filePath, command, patchText } = part.state.input
        const metadata = { exit: part.state.metadata?.exit }
        return [{ kind: "tool", tool: part.tool, args: { filePath, command, patchText }, metadata }]
      })

const reduce = (steps: readonly Step[], root: string): Activity =>
  steps.reduce<Activity>(
    (activity, step) =>
      step.kind === "tool" ? afterToolUse(activity, step, root) : afterSnapshot(activity, step.files, root),
    EMPTY_ACTIVITY,
  )

/** @param isOver asked before each page; what was read until then is given */
export const readHistory = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { root, isOver }: { root: string; isOver: () => boolean },
): Promise<SessionHistory> => {
  const pages: Step[][] = []
  let firstRequest: string | undefined
  let compactions = 0
  let incomplete: string | undefined = "it took too long"
  for await (const answer of pagesBack(sessions, sessionID, { size: PAGE_MESSAGES, isOver })) {
    if (answer.kind === "failed") {
      incomplete = answer.reason
      break
    }
    const { messages, isOldest } = answer.value
    for (const message of messages) if (message.info.role === "assistant" && message.info.summary) compactions++
    const users = messages.filter((message) => message.info.role === "user")
    firstRequest = users.map(({ parts }) => collectUserText(parts)).find((text) => text.trim() !== "") ?? firstRequest
    pages.unshift(messages.flatMap(stepsOf))
    if (isOldest) incomplete = undefined
  }
  return {
    ...(incomplete === undefined && firstRequest !== undefined ? { firstRequest } : {}),
    activity: reduce(pages.flat(), root),
    compactions,
    ...(incomplete === undefined ? {} : { incomplete }),
  }
}
