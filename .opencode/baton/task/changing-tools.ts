import { isRecord } from "../host/client-call.ts"

/** OpenCode's tools that change the one file they name; `multiedit` is that of older versions. */
export const EDITING_TOOLS: ReadonlySet<string> = new Set(["edit", "write", "multiedit"])
/** Those that name files inside a patch; `patch` is that of older versions. */
export const PATCH_TOOLS: ReadonlySet<string> = new Set(["apply_patch", "patch"])

/** Where a patch names a file; of one that is moved, both names. */
const PATCHED_FILE = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm

/** @returns the paths that a tool call changes, as the model wrote them; none for a tool that is no editor */
export const changedPaths = (tool: string, args: unknown): string[] => {
  const { filePath, patchText } = isRecord(args) ? args : {}
  if (EDITING_TOOLS.has(tool)) return typeof filePath === "string" ? [filePath] : []
  if (!PATCH_TOOLS.has(tool) || typeof patchText !== "string") return []
  return [...new Set([...patchText.matchAll(PATCHED_FILE)].map(([, path = ""]) => path.trim()))]
}
