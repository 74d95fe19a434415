/**
 * A child of a pass runs in OpenCode's own directory, with its dialogs, agents and plugins; only the paths of its tools is moved
 * to the pass's sandbox. OpenCode gives `tool.execute.before` the same arguments object as the tool.
 */
import { lstatSync, realpathSync } from "node:fs"
import { dirname, isAbsolute, relative, resolve, sep } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { EDITING_TOOLS, PATCH_PATH, PATCH_TOOLS } from "../../host/messages.ts"

export type SandboxPaths = {
  /** OpenCode's directory, the base of relative paths. */
  readonly directory: string
  /** Top folder of the original; `spellings` are other absolute paths of it, such as through a link. */
  readonly worktree: string
  readonly spellings?: readonly string[]
  /** Top folder of the sandbox. */
  readonly root: string
}

export type SandboxCall =
  /** The fields to set in the call's arguments; empty for a tool that touches no files, and for one of a plugin or an MCP server. */
  | { readonly kind: "go"; readonly changes: Readonly<Record<string, unknown>> }
  /** A sentence for the model. */
  | { readonly kind: "refused"; readonly reason: string }

const FILE_TOOLS: ReadonlySet<string> = new Set(["read", "lsp", ...EDITING_TOOLS])
const FOLDER_TOOLS: ReadonlySet<string> = new Set(["glob", "grep", "list"])

const escapePattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

const inside = (folder: string, path: string): string | undefined => {
  const below = relative(folder, path)
  return below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below) ? undefined : below
}

export const isInside = (folder: string, path: string): boolean => inside(folder, path) !== undefined

const rootsOf = ({ worktree, spellings = [] }: SandboxPaths): readonly string[] => [worktree, ...spellings]

/** Maps a path of the worktree to the sandbox; other paths stay unchanged. */
export const toSandboxPath = (path: string, paths: SandboxPaths): string => {
  const named = resolve(paths.directory, path)
  if (isInside(paths.root, named)) return named
  const below = rootsOf(paths)
    .map((root) => inside(root, named))
    .find((found) => found !== undefined)
  return below === undefined ? named : resolve(paths.root, below)
}

export const sandboxDirectory = (paths: SandboxPaths): string => toSandboxPath(paths.directory, paths)

/** Replaces `~/…`, `$HOME/…` and `${HOME}/…` by absolute paths where they name the project. */
export const spellOutHome = (command: string, home: string, paths: SandboxPaths): string =>
  rootsOf(paths).reduce((text, root) => {
    if (!root.startsWith(`${home}/`)) return text
    const below = escapePattern(root.slice(home.length))
    const pattern = String.raw`(?<![\w./~-])(?:~|"\$HOME"|"\$\{HOME\}"|\$HOME|\$\{HOME\})${below}(?![\w-])`
    return text.replaceAll(new RegExp(pattern, "g"), () => root)
  }, command)

/** Replaces the worktree's absolute path by the sandbox's in a text such as a command or a system prompt. */
export const toSandboxText = (text: string, paths: SandboxPaths): string => {
  // A folder so near the root of the file system may mean something else in a text.
  const roots = rootsOf(paths).filter((root) => root.length > 1)
  return roots.reduce((current, root) => {
    const rootBelow = inside(root, paths.root)
    const notTheSandbox = rootBelow === undefined ? "" : `(?!/${escapePattern(rootBelow)})`
    const pattern = new RegExp(
      String.raw`(?<![\w./-])${escapePattern(root)}${notTheSandbox}(?=/|[^\w.-]|\.?$|\.\s)`,
      "gm",
    )
    return current.replaceAll(pattern, () => paths.root)
  }, text)
}

/** Replaces the sandbox's path in a child's text by relative paths, which are valid for every reader. */
export const toProjectText = (text: string, root: string): string => {
  const pattern = new RegExp(`${escapePattern(root)}(?:/|(?![\\w.-]))`, "g")
  return text.replaceAll(pattern, (found) => (found.endsWith("/") ? "" : "."))
}

/** The same for every text in a JSON value, at any depth. */
export const toProjectValue = (value: unknown, root: string): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? value : JSON.parse(toProjectText(text, root))
}

/** Returns a tool's path relative to the worktree's top, with `/`; undefined for one outside. */
export const toProjectPath = (path: string, paths: SandboxPaths): string | undefined =>
  inside(paths.root, toSandboxPath(path, paths))?.split(sep).join("/")

const redirectField = (
  args: Readonly<Record<string, unknown>>,
  field: string,
  paths: SandboxPaths,
): Record<string, string> => {
  const value = args[field]
  return typeof value === "string" ? { [field]: toSandboxPath(value, paths) } : {}
}

/**
 * Returns the changes that make a child's tool call work in the sandbox. Covers OpenCode's own tools from 1.2.15 to 1.18. Of a shell
 * command the working directory is moved, and every mention of the worktree's absolute path. This cannot hold back a command that
 * tries to leave it: a shell is not confined.
 */
export const toSandboxArgs = (
  tool: string,
  args: Readonly<Record<string, unknown>>,
  paths: SandboxPaths,
): SandboxCall => {
  const redirected = (changes: Record<string, unknown>): SandboxCall => ({ kind: "go", changes })
  if (FILE_TOOLS.has(tool)) {
    const own = redirectField(args, "filePath", paths)
    if (!Array.isArray(args.edits)) return redirected(own)
    const edits = args.edits.map((edit: unknown) =>
      typeof edit === "object" && edit !== null
        ? { ...edit, ...redirectField(edit as Record<string, unknown>, "filePath", paths) }
        : edit,
    )
    return redirected({ ...own, edits })
  }
  if (FOLDER_TOOLS.has(tool)) {
    return redirected({ path: toSandboxPath(typeof args.path === "string" ? args.path : ".", paths) })
  }
  if (PATCH_TOOLS.has(tool)) {
    const text = typeof args.patchText === "string" ? args.patchText : ""
    const patchText = text.replaceAll(
      PATCH_PATH,
      (_, head: string, path: string, end: string) => `${head}${toSandboxPath(path, paths)}${end}`,
    )
    return redirected({ patchText })
  }
  if (tool === "bash") {
    const command = typeof args.command === "string" ? toSandboxText(args.command, paths) : args.command
    return redirected({ command, workdir: toSandboxPath(typeof args.workdir === "string" ? args.workdir : ".", paths) })
  }
  // It runs other tools itself, without any hook.
  if (tool === "batch") return { kind: "refused", reason: "call the tools one by one: batch cannot be used in a pass" }
  return redirected({})
}

/**
 * Returns the paths where a pass's tools work.
 *
 * @param own OpenCode's directory and the worktree's top folder, in each spelling
 * @param above paths of the originator's tools, when it works on a pass itself
 */
export const toSandboxPaths = (
  own: { readonly directory: string; readonly roots: readonly [string, ...string[]] },
  root: string,
  above: SandboxPaths | undefined,
): SandboxPaths => {
  const [worktree, ...spellings] = own.roots
  if (!above) return { directory: own.directory, worktree, spellings, root }
  // A subagent that may not change files works in its originator's sandbox.
  if (above.root === root) return above
  return {
    directory: toSandboxPath(above.directory, above),
    worktree: above.root,
    spellings: [above.worktree, ...(above.spellings ?? [])],
    root,
  }
}

/** @returns the real path, or that of the nearest existing folder; undefined for a dangling link */
const nearestRealPath = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  try {
    lstatSync(path)
    return undefined
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return nearestRealPath(dirname(path))
}

/**
 * A write to a path of the sandbox would go elsewhere through a link: the sandbox has the worktree's links, and an
 * absolute one leads back to the user's files.
 *
 * @throws the file system's own error, such as ELOOP
 */
export const escapesSandbox = (path: string, root: string): boolean => {
  if (!isInside(root, path)) return false
  const real = nearestRealPath(path)
  return real === undefined || !isInside(realpathSync(root), real)
}
