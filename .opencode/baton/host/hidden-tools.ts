import type { StoredMessage } from "./sessions.ts"

/** Takes back what `hideTools` did to one tool of this request. */
export const showTool = (messages: readonly StoredMessage[], name: string): void => {
  const newest = messages.findLast(({ info }) => info.role === "user")?.info
  if (newest?.role !== "user" || newest.tools?.[name] !== false) return
  const { [name]: _, ...others } = newest.tools
  newest.tools = others
}

/**
 * Leaves tools out of one request. OpenCode drops a tool that the newest user message's `tools` says false to; changing
 * the message on its way into the request changes nothing that is stored (docs/adr/0005).
 */
export const hideTools = (messages: readonly StoredMessage[], names: readonly string[]): void => {
  const newest = messages.findLast(({ info }) => info.role === "user")?.info
  if (newest?.role !== "user" || names.length === 0) return
  newest.tools = { ...newest.tools, ...Object.fromEntries(names.map((name) => [name, false])) }
}
