import { count, field, text } from "../host/schema.ts"
import { listStates } from "../live-state/observe/state-files.ts"
import { liveFolder } from "../live-state/statefile.ts"
import { findMarked, RUN_MARK } from "./processes.ts"

/** The facts of an agent's statefile, for the table and for telling a provider's retries from silence. */
export type LiveView = {
  readonly agent: string
  readonly compactions: number
  readonly contextTokens: number
  readonly steps: number
  readonly retry:
    | { readonly message: string; readonly attempt: number; readonly since: string; readonly nextAt: string }
    | undefined
}

type State = { readonly [key: string]: unknown }

const findByMark = (mark: string, find: (isSo: (state: State) => boolean) => State | undefined): State | undefined => {
  const pids: ReadonlySet<unknown> = new Set(findMarked(RUN_MARK, mark))
  return find(({ opencode_pid }) => pids.has(opencode_pid))
}

/**
 * Reads the state of an agent in a project folder; undefined when there is none. OpenCode 1 prints nothing while its first request fails, so
 * that its process is known before its session; the process that was started may be a script around it.
 *
 * @param mark of the agent's processes
 */
export const readLive = async (
  directory: string,
  { session, pid, mark }: { session: string; pid: number | undefined; mark: string },
): Promise<LiveView | undefined> => {
  const states = await listStates(liveFolder(directory), () => {}).catch(() => [])
  const find = (isSo: (state: State) => boolean): State | undefined =>
    states.findLast(({ state }) => isSo(state))?.state
  const state =
    find((each) => each.opencode_pid === pid || (session !== "" && each.root_opencode_session_id === session)) ??
    findByMark(mark, find)
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
