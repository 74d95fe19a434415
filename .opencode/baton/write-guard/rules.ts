import { evaluate, matches, type PermissionRule } from "../host/permissions.ts"
import { SETTINGS_FILES } from "../host/project.ts"

type Rule = PermissionRule

/** Relative to the project. OpenCode's `*` is any text, a slash too. */
const FOLDERS = ["baton", "plugins", "plugin", "state", "state.foreign-*", "pass-over-logs", "node_modules"]
const DENIED = FOLDERS.map((folder) => `.opencode/${folder}/**`)
/** Of OpenCode 1 and 2: it runs the first two, and takes agents, commands and rules from the others. */
const READ_BY_OPENCODE = ["tool", "command", "agent", "mode", "skill"].flatMap((name) => [name, `${name}s`])
const ASKED = [
  ".opencode/*.json",
  ".opencode/*.jsonc",
  ".opencode/opencode.json",
  ...READ_BY_OPENCODE.map((folder) => `.opencode/${folder}/**`),
]
/** Of an `.opencode` that is not the project's. */
const PLUGINS = [".opencode/plugin/**", ".opencode/plugins/**"]

/** OpenCode's own agents that may change no file unless a rule says so. */
const READERS = new Set(["plan", "explore", "title", "summary", "compaction"])
/** OpenCode's own agents that may. */
const WRITERS = ["build", "general"]

/** The rules of a permission setting, as OpenCode reads it: `{ "edit": "ask", "bash": { "git *": "allow" } }`, or one word. */
const rulesOf = (setting: unknown): Rule[] => {
  const byName = typeof setting === "string" ? { "*": setting } : Object(setting)
  return Object.entries(byName).flatMap(([permission, value]) => {
    const byPattern: Record<string, unknown> =
      typeof value === "object" && value !== null ? { ...value } : { "*": value }
    return Object.entries(byPattern).map(([pattern, action]) => ({
      permission,
      pattern,
      action: action as Rule["action"],
    }))
  })
}

const isAll = ({ pattern }: Rule): boolean => pattern === "*" || pattern === "**"

/** Patterns of the files that are denied and asked for, relative to the worktree. */
export type Paths = Readonly<Record<"denied" | "asked", readonly string[]>>

/**
 * @param prefixes the project's folder relative to the worktree, by each of its names: "" or with a slash at its end
 * @param prompts Baton's prompt files, relative to the project
 * @param started the folder that OpenCode was started in, as the prefixes: it may be below the project
 */
export const protectedPaths = (
  prefixes: readonly string[],
  prompts: readonly string[],
  started: readonly string[] = prefixes,
): Paths => {
  const within = (folders: readonly string[], paths: readonly string[]) =>
    folders.flatMap((folder) => paths.map((path) => `${folder}${path}`))
  // OpenCode reads settings and an `.opencode` in each folder up to the worktree.
  const above = [...prefixes, ...started].flatMap((prefix) =>
    prefix.split("/").map((_, at, all) =>
      all
        .slice(0, at)
        .map((name) => `${name}/`)
        .join(""),
    ),
  )
  const folders = [...new Set([...prefixes, ...above])]
  const others = folders.filter((folder) => !prefixes.includes(folder))
  return {
    denied: within(prefixes, DENIED),
    asked: [
      ...within(prefixes, [...ASKED, ...prompts]),
      ...within(others, [...ASKED, ...PLUGINS]),
      ...within(folders, SETTINGS_FILES),
    ],
  }
}

const upToWildcard = (pattern: string): string => pattern.replace(/[*?].*/s, "")

/** A rule for all files does not name the protected ones, nor does one for another folder. */
const isNamed =
  ({ denied, asked }: Paths) =>
  ({ pattern }: Rule): boolean =>
    /(?:^|[/*])(?:\.opencode|prompts)(?:\/|$)|(?:^|[/*])opencode\.jsonc?$/.test(pattern) &&
    [...denied, ...asked].some((path) => {
      const [own, users] = [upToWildcard(path), upToWildcard(pattern)]
      return own.startsWith(users) || users.startsWith(own)
    })

/** Patterns for the files of a folder that the user's rules deny, and that a question for the whole folder would open. */
const deniedWithin = (folder: string, rules: readonly Rule[]): string[] =>
  rules
    .filter(({ pattern, action }) => action === "deny" && /^[*?]/.test(pattern))
    // One with a slash may match by the folder's own name.
    .map(({ pattern }) => (pattern.includes("/") ? folder : `${folder.slice(0, -2)}${pattern}`))

/**
 * The rules for `edit` that go behind an agent's own: protected files are denied or asked for, and after them stand the user's
 * own rules from the first one on that names such files, so that these decide. OpenCode takes the last rule that matches.
 */
const ownRules = (edits: readonly Rule[], paths: Paths): Rule[] => {
  const last = edits.at(-1)
  // OpenCode leaves the tools out of a request only while such a rule is the last one.
  if (last && isAll(last) && last.action === "deny") return []
  const afterAll = edits.slice(edits.findLastIndex(isAll) + 1)
  const first = afterAll.findIndex(isNamed(paths))
  const users = first === -1 ? [] : afterAll.slice(first)
  const rule = (action: Rule["action"]) => (pattern: string) => ({ permission: "edit", pattern, action })
  const asked = paths.asked.filter((path) => evaluate(edits, "edit", path.replace("*", "any")) === "allow")
  // The question for all files of a folder would open these.
  const closed = paths.asked.filter((path) => !path.includes("*") && evaluate(edits, "edit", path) === "deny")
  const folders = asked.filter((path) => path.endsWith("/**")).flatMap((path) => deniedWithin(path, afterAll))
  const denied = [...closed, ...folders, ...paths.denied]
  return [...asked.map(rule("ask")), ...denied.map(rule("deny")), ...users]
}

/** Of rules with one pattern the last decides; an object keeps the place of the first. */
const toSetting = (rules: readonly Rule[]): Record<string, Rule["action"]> => {
  const last = rules.filter(({ pattern }, at) => !rules.slice(at + 1).some((later) => later.pattern === pattern))
  return Object.fromEntries(last.map(({ pattern, action }) => [pattern, action]))
}

type Agent = { permission?: unknown; disable?: boolean }
type Config = { permission?: unknown; agent?: Record<string, Agent | undefined> }

/**
 * Adds the rules to each agent that may change files.
 *
 * @returns the rules for `edit` of each agent as the user has them
 */
export const protectFiles = (config: Config, paths: Paths): readonly (readonly Rule[])[] => {
  const agents = { ...config.agent }
  const names = new Set([...WRITERS, "plan", "explore", ...Object.keys(agents)])
  const lists = [...names].map((name) => {
    const agent = agents[name]
    const before: Rule = { permission: "edit", pattern: "*", action: READERS.has(name) ? "deny" : "allow" }
    const rules = [before, ...rulesOf(config.permission), ...rulesOf(agent?.permission)]
    const edits = rules.filter(({ permission }) => matches("edit", permission))
    const added = agent?.disable === true ? [] : ownRules(edits, paths)
    if (added.length > 0) {
      const own = typeof agent?.permission === "string" ? { "*": agent.permission } : { ...Object(agent?.permission) }
      // A key of its own stands behind the user's, which keep their order.
      const key = "edit" in own ? "edit*" : "edit"
      own[key] = toSetting(added)
      agents[name] = { ...agent, permission: own }
    }
    return edits
  })
  config.agent = agents
  return lists
}

/** The verdict on a path relative to the worktree, for a write that OpenCode's rules may have let pass. */
export const judgePath = (
  path: string,
  paths: Paths,
  users: readonly (readonly Rule[])[],
): "free" | "allowed" | "denied" | "asked" => {
  const matchesOne = (patterns: readonly string[]) => patterns.some((pattern) => matches(path, pattern))
  const kind = matchesOne(paths.denied) ? "denied" : matchesOne(paths.asked) ? "asked" : "free"
  if (kind === "free") return kind
  const decides = users.flatMap((rules) => rules.findLast(({ pattern }) => matches(path, pattern)) ?? [])
  const named = decides.filter(isNamed(paths)).map(({ action }) => action)
  if (named.includes("allow")) return "allowed"
  return named.includes("ask") ? "asked" : kind
}
