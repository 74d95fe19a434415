import { readdir } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { Config } from "@opencode-ai/plugin"
import type { AgentInfo } from "../host/child-sessions.ts"
import { describeError, isNotFound, type Log } from "../host/log.ts"
import type { PermissionRule } from "../host/permissions.ts"
import { projectConfigSwitch } from "../host/project.ts"
import { readOwnText } from "../host/untrusted.ts"

export const RETURN_TOOL = "pass_over_return"
export const APPLY_TOOL = "pass_over_apply"
export const REJECT_TOOL = "pass_over_reject"
export const STATUS_TOOL = "pass_over_status"

/** A value of the YAML subset in the front matter of skills and agents. */
type FrontMatterValue = string | boolean | { readonly [key: string]: FrontMatterValue }

type Markdown = { readonly data: Readonly<Record<string, FrontMatterValue>>; readonly body: string }

const PAIR = /^( *)("[^"]*"|'[^']*'|[^\s"'#:](?:[^:]*[^\s:])?)\s*:(?:\s+(.*))?$/
const IGNORED = /^\s*(?:#.*)?$/

const unquote = (text: string): string => /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text

const scalar = (text: string): FrontMatterValue => {
  if (text === "true" || text === "false") return text === "true"
  return /^["']/.test(text) ? unquote(text) : text.replace(/(?<!\s)\s+#.*$/, "")
}

type Open = { readonly indent: number; readonly into: Record<string, FrontMatterValue> }

/**
 * Parses front matter between `---` lines into maps of texts and booleans; the rest is the body.
 *
 * @returns undefined for a text without front matter, and for YAML beyond maps and one-line values
 */
export const parseFrontMatter = (text: string): Markdown | undefined => {
  const found = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---(?:\r?\n([\s\S]*))?$/.exec(text)
  if (!found) return undefined
  const data: Record<string, FrontMatterValue> = {}
  const open: Open[] = [{ indent: 0, into: data }]
  let parent: { readonly indent: number; readonly into: Record<string, FrontMatterValue> } | undefined
  for (const line of (found[1] ?? "").split(/\r?\n/)) {
    if (IGNORED.test(line)) continue
    const [matched, spaces = "", key = "", value] = PAIR.exec(line.trimEnd()) ?? []
    if (matched === undefined || /^[>|&*![{]/.test(value ?? "")) return undefined
    const indent = spaces.length
    if (parent && indent > parent.indent) open.push({ indent, into: parent.into })
    parent = undefined
    while (open.length > 1 && (open.at(-1)?.indent ?? 0) > indent) open.pop()
    const level = open.at(-1)
    if (!level || level.indent !== indent) return undefined
    if (value === undefined || value === "") {
      const into = {}
      level.into[unquote(key)] = into
      parent = { indent, into }
    } else {
      level.into[unquote(key)] = scalar(value)
    }
  }
  return { data, body: (found[2] ?? "").trim() }
}

type SkillAgent = {
  readonly name: string
  readonly description: string
  readonly prompt: string
  /** As in the front matter; OpenCode validates it. */
  readonly permission: FrontMatterValue | undefined
}

const FOLDERS = ["skill", "skills"]

const list = async (folder: string, log: Pick<Log, "warn">): Promise<string[]> => {
  try {
    return (await readdir(folder)).sort()
  } catch (error) {
    if (!isNotFound(error)) log.warn("skills cannot be listed", { folder, error: describeError(error) })
    return []
  }
}

const read = async (path: string, log: Pick<Log, "warn">): Promise<string | undefined> => {
  try {
    return await readOwnText(path, { isForeign: true })
  } catch (error) {
    // A folder without SKILL.md, or an entry that is not a skill.
    if (!isNotFound(error)) log.warn("a skill cannot be read", { path, error: describeError(error) })
    return undefined
  }
}

const nameOf = (path: string): string => {
  const file = basename(path, ".md")
  return file === "SKILL" ? basename(dirname(path)) : file
}

/** @returns the agent of a skill with `subagent: true` in its front matter */
const toSkillAgent = (path: string, { data, body }: Markdown): SkillAgent | undefined => {
  if (data.subagent !== true || body === "") return undefined
  const name = typeof data.name === "string" ? data.name : nameOf(path)
  const description = typeof data.description === "string" ? data.description : `The skill ${name}`
  return { name: `skill/${name}`, description, prompt: body, permission: data.permission }
}

/**
 * Finds a project's skills that are subagents: `.opencode/skill/*.md` and `.opencode/skills/<name>/SKILL.md`, in either folder. Links are
 * followed, as OpenCode follows them for skills.
 */
export const findSkillAgents = async (projectRoot: string, log: Pick<Log, "warn">): Promise<SkillAgent[]> => {
  if (projectConfigSwitch() !== undefined) return []
  const found: SkillAgent[] = []
  for (const folder of FOLDERS.map((name) => join(projectRoot, ".opencode", name))) {
    for (const entry of await list(folder, log)) {
      const path = entry.endsWith(".md") ? join(folder, entry) : join(folder, entry, "SKILL.md")
      const text = await read(path, log)
      const markdown = text === undefined ? undefined : parseFrontMatter(text)
      const agent = markdown && toSkillAgent(path, markdown)
      if (agent) found.push(agent)
      else if (text !== undefined && !markdown && /^subagent: *true/m.test(text))
        log.warn("a skill asks to be a subagent and its front matter cannot be used", { path })
    }
  }
  return found
}

/** The permission to return a result; what the question says follows it, since OpenCode shows a permission's name alone. */
export const RESULT_PERMISSION = "pass_over_result"
const RESULT_QUESTION = `${RESULT_PERMISSION} *`

type Action = "allow" | "ask" | "deny"
type Rules = Record<string, Action | Record<string, Action>>

/** OpenCode knows far more permissions than the SDK's types. */
type Agent = { mode: "subagent"; description: string; prompt: string; permission: Rules }

const READING: Rules = {
  "*": "deny",
  read: { "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow" },
  glob: "allow",
  grep: "allow",
  list: "allow",
  lsp: "allow",
  task_show: "allow",
  task_log: "allow",
  external_directory: "deny",
  [RETURN_TOOL]: "allow",
}

const AUDIT: Agent = {
  mode: "subagent",
  description: "Reviews code and plans that are passed over to it. Reads, changes nothing, and returns a decision.",
  prompt: `You review work that another agent passes over to you. You can read, not change.

Look at what you were given and at what it touches. Look for what is wrong before what is unusual: behaviour that differs
from the objective, cases not handled, errors swallowed, data lost, security. Check every claim against the code.

Return with pass_over_return: decision "approved" or "changes_requested", one finding for each fault with severity, path and
line, and a fix where you know one. Report nothing that you did not verify, and no matters of taste.`,
  permission: READING,
}

const SCOUT: Agent = {
  mode: "subagent",
  description:
    "Explores the project for an agent that passes a question over to it. Reads, changes nothing, and returns what it found.",
  prompt: `You find things out for another agent. You can read, not change.

Search widely, then read what matters. Stop when the question is answered.

Return with pass_over_return: the answer as summary, one finding of severity "info" for each place that matters with path and
line, and what you looked for and did not find.`,
  permission: READING,
}

const READY_MADE: Readonly<Record<string, Agent>> = { audit: AUDIT, scout: SCOUT }

const withReturn = (permission: unknown): unknown => {
  if (typeof permission !== "object" || permission === null) return permission
  const result: unknown = Reflect.get(permission, RESULT_PERMISSION)
  return {
    ...permission,
    ...("*" in permission && !(RETURN_TOOL in permission) ? { [RETURN_TOOL]: "allow" } : {}),
    ...(result === undefined ? {} : { [RESULT_QUESTION]: result }),
  }
}

/**
 * Adds the subagent skills and the ready-made agents to OpenCode's configuration; an agent of the user with the same name is
 * kept. An agent denied everything by `"*": "deny"` may still return a result.
 */
export const registerAgents = (
  config: Config,
  skills: readonly SkillAgent[],
  log: Pick<Log, "info" | "warn">,
): void => {
  const agents: Record<string, unknown> = { ...config.agent }
  for (const { name, permission, ...skill } of skills) {
    if (agents[name] !== undefined) log.warn("an agent of this name is there already: the skill is left out", { name })
    else agents[name] = { mode: "subagent", ...skill, ...(permission === undefined ? {} : { permission }) }
  }
  const settings: { agent?: unknown; permission?: unknown } = config
  const permission = toRules(settings.permission)
  const task = toRules(permission.task)
  const added: string[] = []
  for (const [name, agent] of Object.entries(READY_MADE)) {
    if (agents[name] !== undefined) {
      log.info("the user has an agent of this name: the ready-made one is left out", { name })
    } else if (task[name] !== "deny") {
      agents[name] = agent
      if (!(name in task)) added.push(name)
    }
  }
  for (const agent of Object.values(agents)) {
    if (typeof agent === "object" && agent !== null && "permission" in agent)
      agent.permission = withReturn(agent.permission)
  }
  settings.agent = agents
  const hidden =
    added.length === 0 ? {} : { task: { ...task, ...Object.fromEntries(added.map((name) => [name, "deny"])) } }
  settings.permission = { ...permissionWithResult(permission), ...hidden }
}

/**
 * The rules that decide on a pass to an agent, without the one that `registerAgents` adds. The ready-made agents return by a tool of
 * passes, so OpenCode's own task tool neither lists nor starts them.
 */
export const rulesForPasses = (
  rules: readonly PermissionRule[],
  { name, prompt }: AgentInfo,
): readonly PermissionRule[] => {
  const first = rules.findIndex(({ permission, pattern }) => permission === "task" && pattern === name)
  const isAdded = prompt === READY_MADE[name]?.prompt && rules[first]?.action === "deny"
  return isAdded ? rules.toSpliced(first, 1) : rules
}

const toRules = (given: unknown): Record<string, unknown> => {
  if (typeof given === "string") return { "*": given }
  return typeof given === "object" && given !== null ? { ...given } : {}
}

/** The user's own rules, plus the rules that the feature needs where the user has none. */
const permissionWithResult = (own: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  // A user who allows everything by an own rule wants no dialogs.
  const action = own[RESULT_PERMISSION] ?? (own["*"] === "allow" ? undefined : "ask")
  const asks = action === undefined ? {} : { [RESULT_PERMISSION]: action, [RESULT_QUESTION]: action }
  return { ...own, ...asks, ...(RETURN_TOOL in own ? {} : { [RETURN_TOOL]: "allow" }) }
}
