import { parseAgentEvent } from "./agent-events.ts"
import { runChild } from "./child-process.ts"
import type { Progress } from "./progress.ts"
import type { OpenCodeContext } from "./session.ts"

export type AgentRun = {
  exitCode: number | null
  sessionID: string | undefined
  /** The agent's last words. */
  lastText: string
  /** What OpenCode says went wrong, if anything. */
  error: string
  seconds: number
}

/** `opencode run`, the message on stdin as a user's shell would pipe it, each step shown as it comes; `crash` kills it. */
export const runAgent = async (
  { options, workspace, signal }: OpenCodeContext,
  message: string,
  progress: Progress,
  crash?: AbortSignal,
): Promise<AgentRun> => {
  const startedAt = performance.now()
  let sessionID: string | undefined
  let lastText = ""
  let error = ""
  const model = options.model ? ["--model", options.model] : []
  const result = await runChild([options.opencode, "run", "--format", "json", "--title", "Baton demo", ...model], {
    cwd: workspace.directory,
    environment: workspace.environment,
    stdin: message,
    signal,
    crash,
    onLine: (line) => {
      const event = parseAgentEvent(line)
      if (!event) return
      sessionID ??= event.sessionID
      if (event.kind === "text") lastText = event.text
      if (event.kind === "error") error = event.text
      progress.show(event)
    },
  }).finally(() => progress.end())
  return {
    exitCode: result.exitCode,
    sessionID,
    lastText,
    error: error || (result.exitCode === 0 ? "" : result.stderr.trim().slice(-500)),
    seconds: (performance.now() - startedAt) / 1_000,
  }
}
