import { isRecord } from "../schema.ts"

/** Tools that are called otherwise in OpenCode 2; features know them by the names of OpenCode 1. */
const TOOLS: Readonly<Record<string, string>> = { shell: "bash", subagent: "task" }

/** Arguments that are called otherwise, by the tool's name in OpenCode 1. */
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  edit: { path: "filePath" },
  read: { path: "filePath" },
  write: { path: "filePath" },
  task: { agent: "subagent_type" },
}

/** The name of a tool, or of the permission for it, in OpenCode 1. */
export const toolName = (name: string): string => TOOLS[name] ?? name

/** @param tool its name in OpenCode 1 @returns the arguments of a call by their names in OpenCode 1 */
export const toolArguments = (tool: string, given: unknown): unknown => {
  const names = ARGUMENTS[tool]
  if (names === undefined || !isRecord(given)) return given
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [names[name] ?? name, value]))
}
