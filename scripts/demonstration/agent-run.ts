import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Place } from "./place.ts"
import { testCount } from "./slug-project.ts"

/** The parts of `opencode run --format json` that the demo shows; for a tool, `text` is its label. */
export type AgentEvent = { kind: "tool" | "compacted" | "text" | "error"; sessionID: string; text: string }

const LABEL_CHARACTERS = 44

const field = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value)

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const shorten = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > LABEL_CHARACTERS ? `${line.slice(0, LABEL_CHARACTERS - 1).trimEnd()}…` : line
}

/** `prog log ts-1a2b3c 'State: orient'` is shown as `prog log`: the task is the same throughout, and the text is shown later. */
const shortCommand = (command: string): string =>
  shorten(
    command
      .replaceAll(" && ", ", ")
      .replaceAll(/(prog [a-z]+) [a-z]{2,}-[0-9a-f]{4,12}\b(?: ('[^']*'|"[^"]*"))?/g, "$1"),
  )

const bashLabel = (state: unknown): string => {
  const command = shortCommand(textOf(field(state, "input", "command")))
  const output = textOf(field(state, "metadata", "output") ?? field(state, "output"))
  const [tests, failed] = [testCount(output, "tests"), testCount(output, "fail")]
  if (tests !== undefined && failed !== undefined) {
    const outcome = failed === 0 ? `✓ ${tests} pass` : `✗ ${failed} of ${tests} fail`
    return command.includes("node --test")
      ? command.replace("node --test", `node --test ${outcome}`)
      : `${command} ${outcome}`
  }
  const exit = field(state, "metadata", "exit")
  return typeof exit === "number" && exit !== 0 ? `${command} ✗ exit ${exit}` : command
}

const toolLabel = (part: unknown): string => {
  const [tool, state] = [textOf(field(part, "tool")), field(part, "state")]
  if (tool === "bash") return bashLabel(state)
  const path = field(state, "input", "filePath")
  const name = typeof path === "string" ? `${tool} ${path.split("/").at(-1)}` : tool
  return shorten(field(state, "status") === "error" ? `${name} ✗` : name)
}

const parseLine = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    // OpenCode also prints lines that are not JSON.
    return undefined
  }
}

/** @returns undefined for a line that is no event, or one the demo does not show */
export const parseAgentEvent = (line: string): AgentEvent | undefined => {
  const event = parseLine(line)
  const part = field(event, "part")
  const sessionID = textOf(field(event, "sessionID"))
  switch (field(event, "type")) {
    case "tool_use":
      return { kind: "tool", sessionID, text: toolLabel(part) }
    case "text": {
      const isCompacted = Object.keys(Object(field(part, "metadata"))).some((name) => name.startsWith("compaction"))
      return { kind: isCompacted ? "compacted" : "text", sessionID, text: textOf(field(part, "text")) }
    }
    case "error": {
      const reason = field(event, "error", "data", "message") ?? field(event, "error", "name")
      return { kind: "error", sessionID, text: textOf(reason) || line }
    }
    default:
      return undefined
  }
}

/** `opencode run` with the message on stdin, as from a user's shell; each step is shown as it happens. `crash` kills it. */
export const runAgent = async (
  { options, openCode }: Place,
  message: string,
  show: (event: AgentEvent) => void,
  crash?: AbortSignal,
) => {
  const startedAt = performance.now()
  let sessionID: string | undefined
  let [lastText, error] = ["", ""]
  const model = options.model ? ["--model", options.model] : []
  const { exitCode, stderr } = await openCode(["run", "--format", "json", "--title", "Baton demo", ...model], {
    stdin: message,
    crash,
    onLine: (line) => {
      const event = parseAgentEvent(line)
      if (!event) return
      sessionID ??= event.sessionID
      if (event.kind === "text") lastText = event.text
      if (event.kind === "error") error = event.text
      show(event)
    },
  })
  // OpenCode's own error message, if any.
  error ||= exitCode === 0 ? "" : stderr.trim().slice(-500)
  return { exitCode, sessionID, lastText, error, seconds: (performance.now() - startedAt) / 1_000 }
}

export type AgentRun = Awaited<ReturnType<typeof runAgent>>

/** The bundled binary's version is in its package; another binary is asked. */
export const openCodeVersion = async ({ options: { opencode, runtime }, openCode }: Place): Promise<string> => {
  if (opencode === runtime)
    return textOf(field(parseLine(readFileSync(join(dirname(dirname(opencode)), "package.json"), "utf8")), "version"))
  const { exitCode, stdout, stderr } = await openCode(["--version"])
  if (exitCode !== 0) throw new Error(`${opencode} --version exited ${exitCode}: ${stderr.trim()}`)
  return stdout.trim()
}

/** Counts the session's compactions in OpenCode's own export of it. */
export const countCompactions = async ({ openCode }: Place, sessionID: string): Promise<number> => {
  const { exitCode, stdout, stderr } = await openCode(["export", sessionID])
  const messages = field(parseLine(stdout.slice(stdout.indexOf("{"))), "messages")
  if (exitCode !== 0 || !Array.isArray(messages))
    throw new Error(`opencode export exited ${exitCode}: ${stderr.trim()}, printed ${stdout.slice(0, 200)}`)
  const isFinishedSummary = (message: unknown): boolean => {
    const info = field(message, "info")
    return field(info, "summary") === true && field(info, "finish") !== undefined && field(info, "error") === undefined
  }
  return messages.filter(isFinishedSummary).length
}
