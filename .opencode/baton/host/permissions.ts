/** A permission rule of OpenCode. If several match, the last one wins. */
export type PermissionRule = {
  readonly permission: string
  readonly pattern: string
  readonly action: "allow" | "ask" | "deny"
}

/** The last `*` takes more, a character at a time: never a search within a search, which several of them would be as an expression. */
const matchesWhole = (text: string, pattern: string): boolean => {
  let [at, place, star, taken] = [0, 0, -1, 0]
  while (at < text.length) {
    const sign = pattern[place]
    if (sign === "*") {
      star = place++
      taken = at
    } else if (sign === "?" || sign === text[at]) {
      at++
      place++
    } else if (star >= 0) {
      place = star + 1
      at = ++taken
    } else return false
  }
  while (pattern[place] === "*") place++
  return place === pattern.length
}

/** OpenCode's wildcards: `*` is any text, `?` any character; `ls *` also matches `ls`. */
export const matches = (text: string, pattern: string): boolean =>
  matchesWhole(text, pattern) || (pattern.endsWith(" *") && matchesWhole(text, pattern.slice(0, -2)))

/** Decides like OpenCode: the last matching rule, and `ask` without any. */
export const evaluate = (
  rules: readonly PermissionRule[],
  permission: string,
  value: string,
): PermissionRule["action"] =>
  rules.findLast((rule) => matches(permission, rule.permission) && matches(value, rule.pattern))?.action ?? "ask"
