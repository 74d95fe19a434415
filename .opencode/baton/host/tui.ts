import { isMainThread } from "node:worker_threads"
import type { PluginInput } from "@opencode-ai/plugin"
import { createLruMap } from "./async.ts"
import { describeError, type Log } from "./log.ts"
import { argumentsOf } from "./process-identity.ts"
import { createClientCall, type Result } from "./sessions.ts"
import type { Settings } from "./settings.ts"
import { cutText } from "./text.ts"

/** The interface that shows this process's sessions. */
export type Interface = "tui" | "run" | "server"

/** Options of OpenCode that take a value and may stand before the command. */
const VALUE_OPTIONS: ReadonlySet<string> = new Set(["--log-level"])

/** The first argument that is no option, such as `run` in `opencode --print-logs run …`. */
const commandIn = (args: readonly string[]): string | undefined =>
  args.find((arg, at) => !arg.startsWith("-") && !VALUE_OPTIONS.has(args[at - 1] ?? ""))

type Process = {
  readonly argv: readonly string[]
  readonly isMainThread: boolean
  /** Gives the command line of the process that started this one. */
  readonly parent?: () => readonly string[]
}

/**
 * Detects the interface of an OpenCode process (seen on 1.2.15 and 1.18.33). A local TUI runs plugins in a worker with the
 * script `…/tui/worker.js`. A TUI that is attached to `serve` cannot be detected. OpenCode 2 starts `serve --stdio` for
 * `run --standalone`, whose plugins have the arguments of that (seen on 2.0.15); on systems without /proc it is a server.
 */
export const detectUi = ({ argv, isMainThread, parent = () => argumentsOf(process.ppid) }: Process): Interface => {
  if (!isMainThread && /[\\/]tui[\\/]worker\.[jt]s$/.test(argv[1] ?? "")) return "tui"
  const own = argv.slice(2)
  return commandIn(own.includes("--stdio") ? parent().slice(1) : own) === "run" ? "run" : "server"
}

const CALL_DEADLINE_MS = 2_000

type Toast = { title: string; message: string; variant: "success" | "warning"; durationMs: number }

export type Tui = ReturnType<typeof createTui>

/** Controls the TUI. Every call answers true, with or without a TUI (docs/opencode-notes.md). */
export const createTui = (client: Pick<PluginInput["client"], "tui">) => {
  const callClient = createClientCall(CALL_DEADLINE_MS)
  const call = (what: string, work: Parameters<typeof callClient>[1]): Promise<Result<true>> =>
    callClient(what, work, () => ({ value: true }))
  return {
    // Only names with an underscore work; others answer true and do nothing.
    openNewSession: () =>
      call("tui.executeCommand", () => client.tui.executeCommand({ body: { command: "session_new" } })),
    /** Appends to the text in the prompt. */
    appendPrompt: (text: string) => call("tui.appendPrompt", () => client.tui.appendPrompt({ body: { text } })),
    showToast: ({ durationMs, ...toast }: Toast) =>
      call("tui.showToast", () => client.tui.showToast({ body: { ...toast, duration: durationMs } })),
  }
}

/** A message that the TUI shows for some seconds. */
export type Notice = {
  /** A notice with the same key is shown once. */
  readonly key?: string
  /** Follows the word "Baton". */
  readonly title: string
  readonly message: string
  /** Needs the user's attention, or says that such a thing is over. */
  readonly isProblem?: boolean
}

/** Shows notices in the TUI, one after the other, as the setting `notices` has it. Never throws, and is not waited for. */
export type Notices = (notice: Notice) => void

type NoticesDeps = {
  readonly tui: Pick<Tui, "showToast">
  readonly userInterface?: Interface
  /** Reads the setting. */
  readonly setting: () => Promise<Settings["notices"]>
  readonly log: Log
  /** Aborted at the end: what waits is not shown. */
  readonly signal: AbortSignal
  readonly pause?: (ms: number) => Promise<void>
}

const MESSAGE_CHARACTERS = 200
const INFO_MS = 5_000
const PROBLEM_MS = 10_000
/** The TUI shows one toast at a time, the newest. */
const LEAST_MS = 3_000
/** More are a flood that the user does not read. */
const MAX_WAITING = 8

export const createNotices = (deps: NoticesDeps): Notices => {
  const { tui, setting, log, signal } = deps
  let timer: NodeJS.Timeout | undefined
  signal.addEventListener("abort", () => clearTimeout(timer))
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      timer = setTimeout(resolve, ms)
      timer.unref()
    })
  const { pause = wait } = deps
  const { userInterface = detectUi({ argv: process.argv, isMainThread }) } = deps
  const shownKeys = createLruMap<true>()
  let waiting = 0
  let last: Promise<void> = Promise.resolve()

  const show = async ({ title, message, isProblem = false }: Notice): Promise<void> => {
    const wanted = await setting()
    if (signal.aborted || wanted === "none" || (wanted === "problems" && !isProblem)) return
    const shown = await tui.showToast({
      title: `Baton: ${title}`,
      message: cutText(message.replaceAll(/(?!\n)[\s\p{Cc}]+/gu, " ").trim(), MESSAGE_CHARACTERS),
      variant: isProblem ? "warning" : "success",
      durationMs: isProblem ? PROBLEM_MS : INFO_MS,
    })
    if (shown.kind === "failed") log.debug("a notice is not shown", { title, reason: shown.reason })
    if (!signal.aborted) await pause(LEAST_MS)
  }

  return (notice) => {
    const { key } = notice
    if (userInterface === "run" || waiting >= MAX_WAITING || (key !== undefined && shownKeys.has(key))) return
    if (key !== undefined) shownKeys.set(key, true)
    waiting++
    last = last
      .then(() => show(notice))
      .catch((error: unknown) =>
        log.warn("a notice is not shown", { title: notice.title, error: describeError(error) }),
      )
      .finally(() => {
        waiting--
      })
  }
}
