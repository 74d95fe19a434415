import type { Place } from "./place.ts"
import { testCount } from "./slug-project.ts"

/** The parts of `opencode run --format json` that the demo shows; for a tool, `text` is its label. */
export type AgentEvent = { kind: "tool" | "compacted" | "step" | "text" | "error"; sessionID: string; text: string }

type ToolState = {
  status?: string
  input?: { command?: string; filePath?: string; path?: string }
  output?: string
  /** OpenCode 2 has one more level. */
  metadata?: { output?: string; exit?: number; metadata?: { exit?: number } }
}
type Line = {
  type?: string
  sessionID?: string
  part?: { text?: string; metadata?: object; tool?: string; state?: ToolState }
  error?: { name?: string; data?: { message?: string } }
}
type Exported = { messages: readonly { info: { summary?: unknown; finish?: string; error?: object } }[] }

const LABEL_CHARACTERS = 44
/** `prog log ts-1a2b3c 'State: orient'` is shown as `prog log`: the task is the same throughout, the text is shown later. */
const PROG_CALL = /(prog [a-z]+) [a-z]{2,}-[0-9a-f]{4,12}\b(?: ('[^']*'|"[^"]*"))?/g

export const cut = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, width - 1).trimEnd()}…` : text

const toolLabel = ({ tool = "", state = {} }: NonNullable<Line["part"]>): string => {
  const { status, input, output = "", metadata } = state
  const file = [tool, (input?.filePath ?? input?.path)?.split("/").at(-1), status === "error" ? "✗" : ""]
    .filter(Boolean)
    .join(" ")
  if (tool !== "bash" && tool !== "shell") return cut(file, LABEL_CHARACTERS)
  const called = (input?.command ?? "").replaceAll(" && ", ", ").replaceAll(PROG_CALL, "$1")
  const command = cut(called.replace(/\s+/g, " ").trim(), LABEL_CHARACTERS)
  const printed = metadata?.output ?? output
  const [tests, failed] = [testCount(printed, "tests"), testCount(printed, "fail")]
  const exit = metadata?.exit ?? metadata?.metadata?.exit
  if (failed === undefined) return exit ? `${command} ✗ exit ${exit}` : command
  return `${command} ${failed === 0 ? `✓ ${tests} pass` : `✗ ${failed} of ${tests} fail`}`
}

const parseLine = (line: string): Line => {
  try {
    return (JSON.parse(line) ?? {}) as Line
  } catch {
    // OpenCode also prints lines that are not JSON.
    return {}
  }
}

/** @returns undefined for a line that is no event, or one the demo does not show */
const parseAgentEvent = (line: string): AgentEvent | undefined => {
  const { type, sessionID = "", part = {}, error } = parseLine(line)
  if (type === "tool_use") return { kind: "tool", sessionID, text: toolLabel(part) }
  if (type === "error") return { kind: "error", sessionID, text: error?.data?.message ?? error?.name ?? line }
  if (type === "step_start") return { kind: "step", sessionID, text: "" }
  if (type !== "text") return undefined
  const isCompacted = Object.keys(part.metadata ?? {}).some((name) => name.startsWith("compaction"))
  return { kind: isCompacted ? "compacted" : "text", sessionID, text: part.text ?? "" }
}

/**
 * `opencode run` with the message on stdin, as from a user's shell; each step is shown as it happens. `crash` kills it.
 *
 * @param session goes on in this one
 * @param summaries that the model was asked for so far; OpenCode 2 does not print its compactions
 */
export const runAgent = async (
  { options, openCode }: Place,
  message: string,
  {
    show,
    crash,
    session,
    summaries,
  }: {
    show: (event: AgentEvent) => void
    crash?: AbortSignal | undefined
    session?: string | undefined
    summaries?: (() => number) | undefined
  },
) => {
  const startedAt = performance.now()
  let sessionID: string | undefined
  let [lastText, error] = ["", ""]
  let shown = summaries?.() ?? 0
  const showCompactions = (): void => {
    for (; summaries && shown < summaries(); shown++) show({ kind: "compacted", sessionID: sessionID ?? "", text: "" })
  }
  const model = options.model ? ["--model", options.model] : []
  const place = session ? ["--session", session] : ["--title", "Baton demo"]
  const { exitCode, stderr } = await openCode(
    ["run", ...options.line.runArgs, "--format", "json", ...place, ...model],
    {
      stdin: message,
      crash,
      onLine: (line) => {
        const event = parseAgentEvent(line)
        if (!event) return
        sessionID ??= event.sessionID
        if (event.kind === "text") lastText = event.text
        if (event.kind === "error") error = event.text
        if (event.kind === "step") showCompactions()
        show(event)
      },
    },
  )
  showCompactions()
  // OpenCode's own error message, if any.
  error ||= exitCode === 0 ? "" : stderr.trim().slice(-500)
  return { exitCode, sessionID, lastText, error, seconds: (performance.now() - startedAt) / 1_000 }
}

export type AgentRun = Awaited<ReturnType<typeof runAgent>>

/** Counts the session's compactions in OpenCode's own export of it. */
export const countCompactions = async ({ openCode }: Place, sessionID: string): Promise<number> => {
  const { exitCode, stdout, stderr } = await openCode(["export", sessionID])
  if (exitCode !== 0) throw new Error(`opencode export ${sessionID} exited ${exitCode}: ${stderr.trim()}`)
  const { messages } = JSON.parse(stdout.slice(stdout.indexOf("{"))) as Exported
  return messages.filter(({ info }) => info.summary === true && info.finish && !info.error).length
}
