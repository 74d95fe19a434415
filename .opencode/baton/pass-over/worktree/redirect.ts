/**
 * A child of a pass runs in OpenCode's own directory, with its dialogs, agents and plugins; only where its tools work is
 * moved, to the copy that the pass has. OpenCode gives `tool.execute.before` the very arguments that the tool gets.
 */
import { isAbsolute, relative, resolve, sep } from "node:path"
import { EDITING_TOOLS, PATCH_TOOLS } from "../../task/activity.ts"

export type Place = {
  /** OpenCode's directory, which relative paths are taken from. */
  readonly directory: string
  /** Top folder of what was copied; `spellings` are other absolute paths of it, as through a link. */
  readonly worktree: string
  readonly spellings?: readonly string[]
  /** Top folder of the copy. */
  readonly copy: string
}

type Redirection =
  /** The fields to set in the call's arguments; empty for a tool that touches no files. */
  | { readonly kind: "redirected"; readonly args: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly reason: string }
  /** A tool of a plugin or an MCP server: whoever knows its rights decides. */
  | { readonly kind: "unknown" }

const FILE_TOOLS: ReadonlySet<string> = new Set(["read", "lsp", ...EDITING_TOOLS])
const FOLDER_TOOLS: ReadonlySet<string> = new Set(["glob", "grep", "list"])
const OTHER_TOOLS: ReadonlySet<string> = new Set([
  "task",
  "todowrite",
  "todoread",
  "webfetch",
  "websearch",
  "codesearch",
  "skill",
  "question",
  "invalid",
])

/** The lines of a patch that name a file; every other line begins with a space, a sign or an @. */
const PATCH_PATH = /^(\*\*\* (?:Add File|Update File|Delete File|Move to): )(.+?)(\r?)$/gm

const escapePattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

const inside = (folder: string, path: string): string | undefined => {
  const way = relative(folder, path)
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way
}

export const isInside = (folder: string, path: string): boolean => inside(folder, path) !== undefined

const rootsOf = ({ worktree, spellings = [] }: Place): readonly string[] => [worktree, ...spellings]

/** Where a path of the worktree is in the copy; one that lies elsewhere stays what it is. */
export const redirectPath = (path: string, place: Place): string => {
  const named = resolve(place.directory, path)
  if (isInside(place.copy, named)) return named
  const way = rootsOf(place)
    .map((root) => inside(root, named))
    .find((found) => found !== undefined)
  return way === undefined ? named : resolve(place.copy, way)
}

/** The directory that the child works in. */
export const redirectedDirectory = (place: Place): string => redirectPath(place.directory, place)

/** Text such as a command or a system prompt, with the worktree's absolute path made the copy's. */
export const redirectText = (text: string, place: Place): string => {
  // Folders so near the root of the file system are as likely to be something else in a text.
  const roots = rootsOf(place).filter((root) => root.length > 1)
  return roots.reduce((current, root) => {
    const copyBelow = inside(root, place.copy)
    const notTheCopy = copyBelow === undefined ? "" : `(?!/${escapePattern(copyBelow)})`
    const pattern = new RegExp(String.raw`(?<![\w./-])${escapePattern(root)}${notTheCopy}(?=/|[^\w.-]|\.?$|\.\s)`, "gm")
    return current.replaceAll(pattern, () => place.copy)
  }, text)
}

/** Text of the child with paths in the copy as paths of the worktree: relative ones, which hold for whoever reads them. */
export const projectText = (text: string, copy: string): string => {
  const pattern = new RegExp(`${escapePattern(copy)}(?:/|(?![\\w.-]))`, "g")
  return text.replaceAll(pattern, (found) => (found.endsWith("/") ? "" : "."))
}

/** The same for every text in a value that JSON can hold, at any depth. */
export const projectValue = (value: unknown, copy: string): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? value : JSON.parse(projectText(text, copy))
}

/** A path as a tool was given it, relative to the worktree's top with `/`; undefined for one that lies elsewhere. */
export const pathInWorktree = (path: string, place: Place): string | undefined =>
  inside(place.copy, redirectPath(path, place))?.split(sep).join("/")

const redirectField = (
  args: Readonly<Record<string, unknown>>,
  field: string,
  place: Place,
): Record<string, string> => {
  const value = args[field]
  return typeof value === "string" ? { [field]: redirectPath(value, place) } : {}
}

/** OpenCode's own tools that write files. */
export const WRITING_TOOLS: ReadonlySet<string> = new Set([...EDITING_TOOLS, ...PATCH_TOOLS])

const pathOf = (value: unknown): string[] =>
  typeof value === "object" && value !== null && "filePath" in value && typeof value.filePath === "string"
    ? [value.filePath]
    : []

/** The files that a call of such a tool would write, as its arguments name them. */
export const pathsToWrite = (tool: string, args: Readonly<Record<string, unknown>>): string[] => {
  if (!WRITING_TOOLS.has(tool)) return []
  const patch = typeof args.patchText === "string" ? args.patchText : ""
  const edits = Array.isArray(args.edits) ? args.edits.flatMap(pathOf) : []
  return [...pathOf(args), ...edits, ...[...patch.matchAll(PATCH_PATH)].flatMap(([, , path]) => path ?? [])]
}

/**
 * What to change in a tool call of a child so that it works in the copy. Covers OpenCode's own tools from 1.2.15 to 1.18.
 * Of a shell command the working directory is moved, and the worktree's absolute path wherever the text has it. A command
 * that seeks its way out is not held back by this: a shell is no jail.
 */
export const redirectCall = (tool: string, args: Readonly<Record<string, unknown>>, place: Place): Redirection => {
  const redirected = (changes: Record<string, unknown>): Redirection => ({ kind: "redirected", args: changes })
  if (OTHER_TOOLS.has(tool)) return redirected({})
  if (FILE_TOOLS.has(tool)) {
    const own = redirectField(args, "filePath", place)
    if (!Array.isArray(args.edits)) return redirected(own)
    const edits = args.edits.map((edit: unknown) =>
      typeof edit === "object" && edit !== null
        ? { ...edit, ...redirectField(edit as Record<string, unknown>, "filePath", place) }
        : edit,
    )
    return redirected({ ...own, edits })
  }
  if (FOLDER_TOOLS.has(tool)) {
    return redirected({ path: redirectPath(typeof args.path === "string" ? args.path : ".", place) })
  }
  if (PATCH_TOOLS.has(tool)) {
    const text = typeof args.patchText === "string" ? args.patchText : ""
    const patchText = text.replaceAll(
      PATCH_PATH,
      (_, head: string, path: string, end: string) => `${head}${redirectPath(path, place)}${end}`,
    )
    return redirected({ patchText })
  }
  if (tool === "bash") {
    const command = typeof args.command === "string" ? redirectText(args.command, place) : args.command
    return redirected({ command, workdir: redirectPath(typeof args.workdir === "string" ? args.workdir : ".", place) })
  }
  // It runs other tools by itself, past every hook.
  if (tool === "batch") return { kind: "refused", reason: "call the tools one by one: batch cannot be used in a pass" }
  return { kind: "unknown" }
}
