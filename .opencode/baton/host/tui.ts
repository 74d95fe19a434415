import type { PluginInput } from "@opencode-ai/plugin"
import { withDeadline } from "./async.ts"
import { describeError } from "./log.ts"

/** The interface that shows this process's sessions. */
export type Interface = "tui" | "run" | "server"

/** Options of OpenCode that take a value and may stand before the command. */
const VALUE_OPTIONS: ReadonlySet<string> = new Set(["--log-level"])

/** The first argument that is no option, such as `run` in `opencode --print-logs run …`. */
const commandIn = (args: readonly string[]): string | undefined =>
  args.find((arg, at) => !arg.startsWith("-") && !VALUE_OPTIONS.has(args[at - 1] ?? ""))

/**
 * Detects the interface of an OpenCode process (seen on 1.2.15 and 1.18.33). A local TUI runs plugins in a worker with the
 * script `…/tui/worker.js`. A TUI that is attached to `serve` cannot be detected.
 */
export const detectUi = ({ argv, isMainThread }: { argv: readonly string[]; isMainThread: boolean }): Interface => {
  if (!isMainThread && /[\\/]tui[\\/]worker\.[jt]s$/.test(argv[1] ?? "")) return "tui"
  return commandIn(argv.slice(2)) === "run" ? "run" : "server"
}

export type TuiAnswer = { kind: "done" } | { kind: "failed"; reason: string }

/** Controls the TUI. Every call answers true, with or without a TUI (docs/opencode-notes.md). */
export type Tui = {
  openNewSession(): Promise<TuiAnswer>
  /** Appends to the text in the prompt. */
  appendPrompt(text: string): Promise<TuiAnswer>
  showToast(toast: {
    title: string
    message: string
    variant: "success" | "warning"
    durationMs: number
  }): Promise<TuiAnswer>
}

const CALL_DEADLINE_MS = 2_000

export const createTui = (client: Pick<PluginInput["client"], "tui">): Tui => {
  const call = async (what: string, work: () => Promise<{ error?: unknown }>): Promise<TuiAnswer> => {
    const outcome = await withDeadline(
      Promise.resolve().then(() => work()),
      CALL_DEADLINE_MS,
    )
    if (outcome.kind === "late")
      return { kind: "failed", reason: `${what} did not answer within ${CALL_DEADLINE_MS} ms` }
    if (outcome.kind === "failed") return { kind: "failed", reason: `${what} failed: ${describeError(outcome.error)}` }
    const { error } = outcome.value
    if (error === undefined) return { kind: "done" }
    return { kind: "failed", reason: `${what} failed: ${JSON.stringify(error).slice(0, 200)}` }
  }
  return {
    // Only names with an underscore work; others answer true and do nothing.
    openNewSession: () =>
      call("tui.executeCommand", () => client.tui.executeCommand({ body: { command: "session_new" } })),
    appendPrompt: (text) => call("tui.appendPrompt", () => client.tui.appendPrompt({ body: { text } })),
    showToast: ({ durationMs, ...toast }) =>
      call("tui.showToast", () => client.tui.showToast({ body: { ...toast, duration: durationMs } })),
  }
}
