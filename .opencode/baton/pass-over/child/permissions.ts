import { isAbsolute } from "node:path"
import { matches, type PermissionRule } from "../../host/permissions.ts"
import { intersectRuleSets } from "../../host/rule-sets.ts"

/** OpenCode's permissions that change files; `task` is one because its sessions start with fresh rules. */
const CHANGING = ["edit", "write", "patch", "multiedit", "apply_patch", "bash", "task"] as const
/** The permissions of a subagent that may run no tools: it may read; pass_over_return is allowed separately. */
const READING = ["read", "glob", "grep", "list", "lsp", "skill"] as const

const deny = (permission: string): PermissionRule => ({ permission, pattern: "*", action: "deny" })

/** Denied for every use: the condition by which OpenCode leaves it out of a request. */
export const isDenied = (rules: readonly PermissionRule[], permission: string): boolean => {
  const last = rules.findLast((rule) => matches(permission, rule.permission))
  return last?.action === "deny" && last.pattern === "*"
}

/** An agent that can change no file: everything that changes files and every unknown permission is denied. */
export const isReader = (rules: readonly PermissionRule[]): boolean =>
  [...CHANGING, "a tool that nobody has named"].every((permission) => isDenied(rules, permission))

/** The rights of a pass, by its policy and its agent. */
export type Limits = { readonly can_modify_files: boolean; readonly can_run_tools: boolean }

/** @param before the rules that the limits follow */
const limitRules = (
  { can_modify_files, can_run_tools }: Limits,
  before: readonly PermissionRule[],
): PermissionRule[] => {
  if (can_run_tools) return can_modify_files ? [] : CHANGING.map(deny)
  // Their rules for reading, after a denial of everything.
  const reading = before.flatMap((rule) =>
    READING.filter((permission) => matches(permission, rule.permission)).map((permission) => ({ ...rule, permission })),
  )
  return [deny("*"), ...reading]
}

type SandboxRules = {
  /** The sandbox's path relative to the worktree, as OpenCode names its files. */
  readonly relative: string
  /** Maps an absolute path of the worktree to the sandbox; 1.2.15 asks for reading by absolute paths. */
  readonly moved: (path: string) => string
}

/** Translates the agent's file rules for a sandbox of the worktree: OpenCode names files there by their path in the sandbox. */
const rulesInSandbox = (rules: readonly PermissionRule[], { relative, moved }: SandboxRules): PermissionRule[] =>
  ["edit", "read"].flatMap((permission) => {
    const ofFiles = rules.filter((rule) => matches(permission, rule.permission))
    if (ofFiles.every(({ pattern }) => pattern === "*")) return []
    return ofFiles.map(({ pattern, action }) => ({
      permission,
      pattern: isAbsolute(pattern) ? moved(pattern) : `${relative}/${pattern}`,
      action,
    }))
  })

const OTHER_TOOLS = ["webfetch", "websearch", "codesearch", "todowrite", "todoread"] as const
/** The tools for a session's task in place of a shell. */
export const TASK_TOOLS = ["task_show", "task_log"] as const
const OWN_TOOLS = ["pass_over_return", "pass_over", "pass_over_status"] as const

/** The tools known to be harmless without the right to change files; all others are refused. */
const READ_ONLY_TOOLS: ReadonlySet<string> = new Set([
  ...[...READING, ...OTHER_TOOLS, ...OWN_TOOLS],
  ...[...TASK_TOOLS, "StructuredOutput", "invalid"],
])

/**
 * A session under these limits may use the tool. Its rules are not enough: OpenCode asks no permission for plugin
 * tools, and before 1.18 for none of the tools that only the session is denied.
 */
export const isToolAllowed = (tool: string, { can_modify_files, can_run_tools }: Limits): boolean => {
  if (!can_run_tools) return tool === "pass_over_return" || READING.some((name) => name === tool)
  return can_modify_files || READ_ONLY_TOOLS.has(tool)
}

/** OpenCode's own tools that are not offered to a session of a pass. */
export const refusedTools = (limits: Limits): string[] => [
  "question",
  ...[...CHANGING, ...OTHER_TOOLS].filter((tool) => !isToolAllowed(tool, limits)),
]

/**
 * Builds the rules of a child session, which follow those of its agent: what both the agent and its originator may do.
 *
 * @param child the subagent's own rules
 * @param originator the rules of the calling agent, then those of its session
 * @param sandbox the child's files; undefined for the worktree itself
 */
export const childRules = (given: {
  readonly limits: Limits
  readonly child: readonly PermissionRule[]
  readonly originator: readonly PermissionRule[]
  readonly sandbox: SandboxRules | undefined
}): PermissionRule[] => {
  const { limits, child, originator, sandbox } = given
  const common = intersectRuleSets(originator, child)
  const limiting = limitRules(limits, common)
  const inSandbox = (rules: readonly PermissionRule[]) => (sandbox === undefined ? [] : rulesInSandbox(rules, sandbox))
  const returning: PermissionRule = { permission: "pass_over_return", pattern: "*", action: "allow" }
  return [
    ...common,
    // Behind them, since the sandbox lies in the state folder, which no agent may change.
    ...inSandbox(common),
    ...limiting,
    ...inSandbox(limiting),
    // OpenCode leaves the tools out of a request only while the last rule denies them for every file.
    ...(isDenied(child, "edit") ? [deny("edit")] : []),
    deny("question"),
    returning,
  ]
}
