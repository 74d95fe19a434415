import type { ToolPart } from "@opencode-ai/sdk"
import { cutText } from "../host/log.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { Artifact } from "./contract.ts"
import { RETURN_TOOL } from "./tool-names.ts"
import { readToolResult } from "./work-context.ts"
import { WRITING_TOOLS } from "./worktree/redirect.ts"

const OUTPUT_CHARACTERS = 2_000
const PROSE_CHARACTERS = 8_000
const MAX_RESULTS = 100

type ToolResult = Extract<Artifact, { type: "tool_result" }>

const toolParts = (messages: readonly StoredMessage[]): ToolPart[] =>
  messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool"))

/**
 * Whether a child that has returned does nothing any more: no tool of it is at work but the one that returns.
 *
 * @param begun calls of the step it is at; one that the transcript does not have yet is at work
 */
export const isAtRest = (messages: readonly StoredMessage[], begun: ReadonlySet<string>): boolean => {
  const parts = toolParts(messages).filter(({ tool }) => tool !== RETURN_TOOL)
  const ended = parts.filter(({ state }) => state.status === "completed" || state.status === "error")
  const known = new Set(ended.map(({ callID }) => callID))
  return ended.length === parts.length && [...begun].every((callID) => known.has(callID))
}

const exitCodeOf = ({ state }: ToolPart): number | null => {
  const exit = state.status === "completed" ? state.metadata.exit : undefined
  return typeof exit === "number" ? exit : null
}

/** What the child's tools said, newest 100, each cut to 2,000 characters. */
export const collectToolResults = (messages: readonly StoredMessage[]): ToolResult[] =>
  toolParts(messages)
    .flatMap((part) =>
      readToolResult(part).map(
        (result): ToolResult => ({
          type: "tool_result",
          ...result,
          output: cutText(result.output, OUTPUT_CHARACTERS),
          exit_code: exitCodeOf(part),
          is_cut: result.output.length > OUTPUT_CHARACTERS,
        }),
      ),
    )
    .slice(-MAX_RESULTS)

const pathsOf = ({ state }: ToolPart): unknown[] => {
  if (state.status !== "completed") return []
  const files: unknown = state.metadata.files
  const patched = Array.isArray(files) ? files.map((file: { filePath?: unknown }) => file?.filePath) : []
  return [state.input.filePath, ...patched]
}

/** Paths, as the tools had them, that the child's own tools wrote. */
export const writtenPaths = (messages: readonly StoredMessage[]): string[] =>
  toolParts(messages)
    .filter(({ tool }) => WRITING_TOOLS.has(tool))
    .flatMap(pathsOf)
    .filter((path) => typeof path === "string")

/** The last words of an agent that ended without pass_over_return; empty when it said nothing. */
export const lastWords = (messages: readonly StoredMessage[]): string => {
  const spoken = messages
    .filter(({ info }) => info.role === "assistant")
    .map(({ parts }) =>
      parts
        .flatMap((part) => (part.type === "text" ? [part.text] : []))
        .join("\n")
        .trim(),
    )
  return cutText(spoken.findLast((text) => text !== "") ?? "", PROSE_CHARACTERS)
}
