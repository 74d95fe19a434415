import type { PassOverRequest, WorkContext } from "./contract.ts"
import type { LeftOut } from "./worktree/worktree.ts"

/** A fence that nothing in the text can close. */
const fence = (text: string): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length))
  const mark = "`".repeat(longest + 1)
  return `${mark}\n${text}${text.endsWith("\n") ? "" : "\n"}${mark}`
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ["", `## ${title}`, ...lines]

const renderFile = ({ path, content, note }: WorkContext["files"][number]): string =>
  content === null ? `- ${path}: ${note ?? "not shown"}` : `### ${path}\n${fence(content)}`

/** What the subagent reads as its order. */
export const renderOrder = (request: PassOverRequest): string => {
  const { work_context: work, originating_agent_id: originator } = request
  return [
    `The agent ${originator} passes this work over to you (${request.reason}).`,
    "",
    work.objective,
    ...(work.background === undefined ? [] : ["", `Background: ${work.background}`]),
    ...(work.expected === undefined ? [] : ["", `Expected back: ${work.expected}`]),
    "",
    "When you are done, call pass_over_return once with status, summary, and your decision and findings where there are any.",
    "Files that you change are seen by program: do not list them. After pass_over_return, end your turn.",
  ].join("\n")
}

/**
 * What goes with the order; undefined when there is nothing.
 *
 * @param leftOut what the subagent's copy does not have
 */
export const renderContext = (
  { work_context: work }: PassOverRequest,
  leftOut: readonly LeftOut[],
): string | undefined => {
  const lines = [
    ...section(
      "In the project and not in your copy of it",
      leftOut.map(({ path, reason }) => `- ${path}: ${reason}`),
    ),
    ...section("Task of the session", work.task ? [`${work.task.id} (${work.task.role})`, work.task.block] : []),
    ...section(
      "Todos of the originator",
      work.todos.map(({ content, status }) => `- [${status}] ${content}`),
    ),
    ...section("Files", work.files.map(renderFile)),
    ...section(
      "Recent messages of the originator's session",
      work.messages.map(({ role, text }) => `${role}:\n${fence(text)}`),
    ),
    ...section(
      "Recent tool results",
      work.tool_results.map(({ tool, title, status, output }) => `${tool} ${title} (${status}):\n${fence(output)}`),
    ),
    ...section(
      "Left out for lack of room",
      work.left_out.map((name) => `- ${name}`),
    ),
  ]
  return lines.length === 0 ? undefined : `# Context of the work\n${lines.join("\n")}`
}
