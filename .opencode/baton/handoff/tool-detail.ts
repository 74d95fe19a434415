/** How much of a tool call a transcript shows: nothing, its name and title, or its input and output too. */
export const TOOL_DETAILS = ["none", "titles", "full"] as const
export type ToolDetail = (typeof TOOL_DETAILS)[number]
