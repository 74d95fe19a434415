import type { PluginInput } from "@opencode-ai/plugin"
import { createClientCall, type Result } from "./sessions.ts"

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

/** Controls the TUI. Every call answers true, with or without a TUI (docs/opencode-notes.md). */
export type Tui = {
  openNewSession(): Promise<Result<true>>
  /** Appends to the text in the prompt. */
  appendPrompt(text: string): Promise<Result<true>>
  showToast(toast: {
    title: string
    message: string
    variant: "success" | "warning"
    durationMs: number
  }): Promise<Result<true>>
}

const CALL_DEADLINE_MS = 2_000

export const createTui = (client: Pick<PluginInput["client"], "tui">): Tui => {
  const callClient = createClientCall(CALL_DEADLINE_MS)
  const call = (what: string, work: Parameters<typeof callClient>[1]): Promise<Result<true>> =>
    callClient(what, work, () => ({ kind: "ok", value: true }))
  return {
    // Only names with an underscore work; others answer true and do nothing.
    openNewSession: () =>
      call("tui.executeCommand", () => client.tui.executeCommand({ body: { command: "session_new" } })),
    appendPrompt: (text) => call("tui.appendPrompt", () => client.tui.appendPrompt({ body: { text } })),
    showToast: ({ durationMs, ...toast }) =>
      call("tui.showToast", () => client.tui.showToast({ body: { ...toast, duration: durationMs } })),
  }
}
