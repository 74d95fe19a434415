import { eventually } from "../opencode/opencode-server.ts"
import type { TestProject } from "../opencode/test-project.ts"
import type { ModelRequest, ScriptedModel } from "./scripted-model.ts"

/** OpenCode's own estimate, used because the model's tokeniser is not available. */
const CHARACTERS_PER_TOKEN = 4

export const estimateTokens = (characters: number): number => Math.round(characters / CHARACTERS_PER_TOKEN)

const lengthOf = (content: unknown): number => {
  if (typeof content === "string") return content.length
  if (!Array.isArray(content)) return content == null ? 0 : JSON.stringify(content).length
  return content.reduce(
    (sum, part) => sum + (typeof part?.text === "string" ? part.text : JSON.stringify(part)).length,
    0,
  )
}

/** Characters of a request that a model reads: texts and tool calls of its messages, and its tool definitions as JSON. */
export const requestCharacters = ({ body }: Pick<ModelRequest, "body">): number => {
  const said = body.messages.map(({ content, tool_calls }) => lengthOf(content) + lengthOf(tool_calls))
  return said.reduce((sum, length) => sum + length, 0) + lengthOf(body.tools)
}

/** Random parts that differ between runs, and replacements of equal length. */
const CHANCE: readonly (readonly [RegExp, string])[] = [
  [/\b(ses|msg|prt|call)_[A-Za-z0-9]+/g, "$1_ID"],
  [/\bts-[0-9a-f]{6}\b/g, "ts-000000"],
]

/** A whole request as JSON, without ids and folders of its run: equal texts were equal bytes. */
export const comparableRequest = (
  { body }: Pick<ModelRequest, "body">,
  { home, directory }: Pick<TestProject, "home" | "directory">,
): string => {
  const text = JSON.stringify(body).replaceAll(directory, "PROJECT").replaceAll(home, "HOME")
  return CHANCE.reduce((shown, [pattern, name]) => shown.replace(pattern, name), text)
}

/**
 * Sorted, since OpenCode asks for a session's title beside its turn.
 *
 * @param sessions number of the sessions, whose titles are waited for
 */
export const comparableRequests = async (
  { requests }: Pick<ScriptedModel, "requests">,
  project: TestProject,
  sessions: number,
): Promise<string[]> => {
  const areAsked = () => requests.filter(({ kind }) => kind === "title").length >= sessions || undefined
  await eventually("the requests for titles", areAsked)
  return requests.map((request) => `${request.kind} ${comparableRequest(request, project)}`).toSorted()
}
