/** A permission rule of OpenCode. If several match, the last one wins. */
export type PermissionRule = {
  readonly permission: string
  readonly pattern: string
  readonly action: "allow" | "ask" | "deny"
}

/** OpenCode's wildcards: `*` is any text, `?` any character; `ls *` also matches `ls`. */
export const matches = (text: string, pattern: string): boolean => {
  const escaped = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".")
  const source = escaped.endsWith(" .*") ? `${escaped.slice(0, -3)}( .*)?` : escaped
  return new RegExp(`^${source}$`, "s").test(text)
}

/** Decides like OpenCode: the last matching rule, and `ask` without any. */
export const evaluate = (
  rules: readonly PermissionRule[],
  permission: string,
  value: string,
): PermissionRule["action"] =>
  rules.findLast((rule) => matches(permission, rule.permission) && matches(value, rule.pattern))?.action ?? "ask"
