import { field, text } from "../host/schema.ts"
import { listStates } from "../live-state/observe/state-files.ts"
import { liveFolder } from "../live-state/statefile.ts"

/** What an agent's statefile says of it, for the table and for telling a provider's retries from silence. */
export type LiveView = {
  readonly agent: string
  readonly compactions: number
  readonly contextTokens: number
  readonly steps: number
  readonly retry:
    | { readonly message: string; readonly attempt: number; readonly since: string; readonly nextAt: string }
    | undefined
}

const count = (value: unknown): number => (typeof value === "number" ? value : 0)

/** Reads the state of the agent with this session in a project folder; undefined when there is none. */
export const readLive = async (directory: string, session: string): Promise<LiveView | undefined> => {
  const states = await listStates(liveFolder(directory), () => {}).catch(() => [])
  const state = states.findLast(({ state: each }) => each.root_opencode_session_id === session)?.state
  if (state === undefined) return undefined
  const extensions = field(state, "extensions")
  const retry = field(extensions, "retry")
  return {
    agent: text(field(extensions, "task", "role")) ?? "worker",
    compactions: count(field(extensions, "compactions")),
    contextTokens: count(field(extensions, "context_tokens")),
    steps: count(field(state, "agent", "step_count")),
    retry:
      retry === null || retry === undefined
        ? undefined
        : {
            message: text(field(retry, "message")) ?? "the provider failed",
            attempt: count(field(retry, "attempt")),
            since: text(field(retry, "since")) ?? "",
            nextAt: text(field(retry, "next_at")) ?? "",
          },
  }
}
