import { isAbsolute } from "node:path"
import type { PermissionRule } from "../../host/child-sessions.ts"

type Action = PermissionRule["action"]

/** What changes files, by the names of OpenCode's permissions; `task` because its sessions start with fresh rules. */
const CHANGING = ["edit", "write", "patch", "multiedit", "apply_patch", "bash", "task"] as const
/** What a subagent may still do that may run no tools: read, and say that it is done. */
const READING = ["read", "glob", "grep", "list", "lsp", "skill"] as const

/** OpenCode's wildcards: `*` is any text, `?` any character; `ls *` also stands for `ls`. */
const matches = (text: string, pattern: string): boolean => {
  const escaped = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".")
  const source = escaped.endsWith(" .*") ? `${escaped.slice(0, -3)}( .*)?` : escaped
  return new RegExp(`^${source}$`, "s").test(text)
}

/** As OpenCode decides: the last rule that matches, and `ask` without any. */
export const evaluate = (rules: readonly PermissionRule[], permission: string, value: string): Action =>
  rules.findLast((rule) => matches(permission, rule.permission) && matches(value, rule.pattern))?.action ?? "ask"

const hasWildcard = (pattern: string): boolean => /[*?]/.test(pattern)

/** Whether some text may match both; two patterns with wildcards are taken to have one. */
const mayMeet = (one: string, other: string): boolean => {
  if (hasWildcard(one) && hasWildcard(other)) return true
  return hasWildcard(one) ? matches(other, one) : matches(one, other)
}

const mayOverlap = (one: PermissionRule, other: PermissionRule): boolean =>
  mayMeet(one.permission, other.permission) && mayMeet(one.pattern, other.pattern)

const isSame = (one: PermissionRule, other: PermissionRule): boolean =>
  one.permission === other.permission && one.pattern === other.pattern && one.action === other.action

const standsBehind = (rules: readonly PermissionRule[], rule: PermissionRule, at: number): boolean =>
  rules.findLastIndex((each) => isSame(each, rule)) > at

/**
 * Whether the child could do unasked what the originator is asked for by the rule at this place: it is allowed something
 * there, and neither is the child asked behind it, nor the originator allowed the same.
 */
const needsAsking = (
  originator: readonly PermissionRule[],
  at: number,
  rule: PermissionRule,
  child: readonly PermissionRule[],
): boolean =>
  child.some(
    (own, place) =>
      own.action === "allow" &&
      mayOverlap(own, rule) &&
      !standsBehind(child, rule, place) &&
      !standsBehind(originator, own, at),
  )

/**
 * What keeps a child from more rights than its originator: rules that go behind the child agent's own, where the last one
 * that matches decides. Nothing here allows anything, so that a child keeps what its own agent is denied. An exception
 * that the originator has from a denial of its own (`edit` only in `docs/`) is not passed on.
 *
 * @param originator the rules of the calling agent, then those of its session
 * @param child the rules of the subagent
 */
export const inheritLimits = (
  originator: readonly PermissionRule[],
  child: readonly PermissionRule[],
): PermissionRule[] => {
  const asks = originator.filter((rule, at) => rule.action === "ask" && needsAsking(originator, at, rule, child))
  // A question behind a denial would open it.
  const closed = child.filter((rule) => rule.action === "deny" && asks.some((ask) => mayOverlap(ask, rule)))
  // A denial that a later rule of the originator's lifts as a whole is none.
  const denials = originator.filter(
    ({ action, permission, pattern }) => action === "deny" && evaluate(originator, permission, pattern) === "deny",
  )
  return [...asks, ...closed, ...denials]
}

const deny = (permission: string): PermissionRule => ({ permission, pattern: "*", action: "deny" })

/** Whether a tool of this name is denied whatever it is used for, as OpenCode leaves tools out of a request. */
const isDenied = (rules: readonly PermissionRule[], permission: string): boolean => {
  const last = rules.findLast((rule) => matches(permission, rule.permission))
  return last?.action === "deny" && last.pattern === "*"
}

/** Whether an agent can change no file: all is denied that it is not expressly allowed, and so is all that changes files. */
export const isReader = (rules: readonly PermissionRule[]): boolean =>
  [...CHANGING, "a tool that nobody has named"].every((permission) => isDenied(rules, permission))

/** What a pass may do, by its policy and its agent. */
export type Limits = { readonly can_modify_files: boolean; readonly can_run_tools: boolean }

/** The policy's limits as rules behind those of the subagent. */
const limitRules = (
  { can_modify_files, can_run_tools }: Limits,
  child: readonly PermissionRule[],
): PermissionRule[] => {
  if (can_run_tools) return can_modify_files ? [] : CHANGING.map(deny)
  // What the agent's own rules say of reading, behind a denial of everything.
  const reading = child.flatMap((rule) =>
    READING.filter((permission) => matches(permission, rule.permission)).map((permission) => ({ ...rule, permission })),
  )
  return [deny("*"), ...reading]
}

/** Where the files of a child lie. */
type CopyPlace = {
  /** The copy's path relative to the worktree, as OpenCode names its files. */
  readonly relative: string
  /** What an absolute path of the worktree is in the copy; 1.2.15 asks for reading by absolute paths. */
  readonly moved: (path: string) => string
}

/** The agent's rules about files, for files in a copy of the worktree: OpenCode names those by their place in the copy. */
const rulesInCopy = (rules: readonly PermissionRule[], { relative, moved }: CopyPlace): PermissionRule[] =>
  ["edit", "read"].flatMap((permission) => {
    const ofFiles = rules.filter((rule) => matches(permission, rule.permission))
    if (ofFiles.every(({ pattern }) => pattern === "*")) return []
    return ofFiles.map(({ pattern, action }) => ({
      permission,
      pattern: isAbsolute(pattern) ? moved(pattern) : `${relative}/${pattern}`,
      action,
    }))
  })

/** Tools by which a session without the right to change files may still not be trusted: everything not known to read. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...READING,
  "pass_over_return",
  "webfetch",
  "websearch",
  "codesearch",
  "todowrite",
  "todoread",
  "pass_over",
  "pass_over_status",
  "StructuredOutput",
  "invalid",
])

/**
 * Whether a session under these limits may use a tool. OpenCode asks no permission for tools of plugins, and before 1.18 for
 * none of those that a session alone is denied, so that its rules are not enough.
 */
export const mayUseTool = (tool: string, { can_modify_files, can_run_tools }: Limits): boolean => {
  if (!can_run_tools) return tool === "pass_over_return" || READING.some((name) => name === tool)
  return can_modify_files || HARMLESS.has(tool)
}

const OTHER_TOOLS = ["webfetch", "websearch", "codesearch", "todowrite", "todoread"] as const

/** Tools of OpenCode's own that a session of a pass is not even offered. */
export const refusedTools = (limits: Limits): string[] => [
  "question",
  ...[...CHANGING, ...OTHER_TOOLS].filter((tool) => !mayUseTool(tool, limits)),
]

/**
 * The rules of a child session, which stand behind those of its agent.
 *
 * @param child the subagent's own rules
 * @param originator the rules of the calling agent, then those of its session
 * @param copy where the child's files are; undefined for the worktree itself
 */
export const childRules = (given: {
  readonly limits: Limits
  readonly child: readonly PermissionRule[]
  readonly originator: readonly PermissionRule[]
  readonly copy: CopyPlace | undefined
}): PermissionRule[] => {
  const { limits, child, originator, copy } = given
  const inherited = inheritLimits(originator, child)
  const limiting = limitRules(limits, child)
  const inCopy = (rules: readonly PermissionRule[]) => (copy === undefined ? [] : rulesInCopy(rules, copy))
  const returning: PermissionRule = { permission: "pass_over_return", pattern: "*", action: "allow" }
  return [
    ...inCopy(child),
    ...inCopy(inherited),
    ...inherited,
    ...limiting,
    ...inCopy(limiting),
    deny("question"),
    returning,
  ]
}
