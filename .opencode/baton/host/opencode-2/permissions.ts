import { relative, resolve, sep } from "node:path"
import type { Config } from "@opencode-ai/plugin"
import { matches, type PermissionRule } from "../permissions.ts"
import { isRecord } from "../schema.ts"
import type { Context } from "./context.ts"
import { toolName } from "./names.ts"

const ACTIONS: readonly unknown[] = ["allow", "ask", "deny"] satisfies readonly PermissionRule["action"][]

const isAction = (value: unknown): value is PermissionRule["action"] => ACTIONS.includes(value)

/** The rules of an agent in the configuration that features have set up. */
const rulesOf = (config: Config, agent: string): PermissionRule[] => {
  const setting: unknown = config.agent?.[agent]?.permission
  return Object.entries(isRecord(setting) ? setting : {}).flatMap(([permission, value]) =>
    Object.entries(isRecord(value) ? value : { "*": value }).flatMap(([pattern, action]) =>
      isAction(action) ? [{ permission, pattern, action }] : [],
    ),
  )
}

/** An agent of the user's own is judged like this one. */
const USUAL_AGENT = "build"

/**
 * Makes OpenCode's verdict stricter where a feature's rules say so. They come behind the user's own in OpenCode 2, of which Baton
 * knows the effect alone, so that a user's rule for one of the files does not count.
 */
export const hookPermissions = async (context: Context, config: Config): Promise<void> => {
  if (Object.keys(config.agent ?? {}).length === 0) return
  const { directory, project } = context.location
  /** OpenCode 2 names a file relative to the session's folder, features relative to the worktree. */
  const inWorktree = (file: string): string =>
    relative(project.directory, resolve(directory, file)).split(sep).join("/")
  await context.permission.hook("evaluate", async (asked) => {
    const own = rulesOf(config, asked.agent ?? USUAL_AGENT)
    const rules = own.length > 0 ? own : rulesOf(config, USUAL_AGENT)
    const action = toolName(asked.action)
    const resources = action === "edit" ? asked.resources.map(inWorktree) : asked.resources
    const verdicts = resources.map(
      (resource) =>
        rules.findLast((rule) => matches(action, rule.permission) && matches(resource, rule.pattern))?.action,
    )
    if (verdicts.includes("deny")) {
      asked.effect = "deny"
      asked.message = "This is one of Baton's own files, which no agent may change."
    } else if (verdicts.includes("ask") && asked.effect === "allow") asked.effect = "ask"
  })
}
