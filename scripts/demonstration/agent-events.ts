/** What `opencode run --format json` tells of an agent, as far as the demo shows it. */
export type AgentEvent =
  | { kind: "tool"; sessionID: string; label: string }
  | { kind: "compacted"; sessionID: string }
  | { kind: "text" | "error"; sessionID: string; text: string }

const LABEL_CHARACTERS = 44

const field = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (found, name) => (typeof found === "object" && found ? Reflect.get(found, name) : undefined),
    value,
  )

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const shorten = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > LABEL_CHARACTERS ? `${line.slice(0, LABEL_CHARACTERS - 1).trimEnd()}…` : line
}

/** `prog log ts-1a2b3c 'State: orient'` reads as `prog log`: the task is the same throughout, the text is shown later. */
const shortCommand = (command: string): string =>
  shorten(
    command
      .replaceAll(" && ", ", ")
      .replaceAll(/(prog [a-z]+) [a-z]{2,}-[0-9a-f]{4,12}\b(?: ('[^']*'|"[^"]*"))?/g, "$1"),
  )

const bashLabel = (state: unknown): string => {
  const command = shortCommand(textOf(field(state, "input", "command")))
  const output = textOf(field(state, "metadata", "output") ?? field(state, "output"))
  const count = (name: string) => new RegExp(`[#ℹ] ${name} (\\d+)`).exec(output)?.[1]
  const [tests, failed] = [count("tests"), count("fail")]
  if (tests !== undefined && failed !== undefined) {
    const outcome = failed === "0" ? `✓ ${tests} pass` : `✗ ${failed} of ${tests} fail`
    return command.includes("node --test")
      ? command.replace("node --test", `node --test ${outcome}`)
      : `${command} ${outcome}`
  }
  const exit = field(state, "metadata", "exit")
  return typeof exit === "number" && exit !== 0 ? `${command} ✗ exit ${exit}` : command
}

const toolLabel = (part: unknown): string => {
  const tool = textOf(field(part, "tool"))
  const state = field(part, "state")
  if (tool === "bash") return bashLabel(state)
  const path = field(state, "input", "filePath")
  const name = typeof path === "string" ? `${tool} ${path.split("/").at(-1)}` : tool
  return shorten(field(state, "status") === "error" ? `${name} ✗` : name)
}

const parseLine = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** @returns undefined for a line that is no event, or one the demo does not show */
export const parseAgentEvent = (line: string): AgentEvent | undefined => {
  const event = parseLine(line)
  const part = field(event, "part")
  const sessionID = textOf(field(event, "sessionID"))
  switch (field(event, "type")) {
    case "tool_use":
      return { kind: "tool", sessionID, label: toolLabel(part) }
    case "text": {
      const marks = Object.keys(Object(field(part, "metadata")))
      if (marks.some((name) => name.startsWith("compaction"))) return { kind: "compacted", sessionID }
      return { kind: "text", sessionID, text: textOf(field(part, "text")) }
    }
    case "error": {
      const reason = field(event, "error", "data", "message") ?? field(event, "error", "name")
      return { kind: "error", sessionID, text: textOf(reason) || line }
    }
    default:
      return undefined
  }
}
