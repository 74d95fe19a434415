import { evaluate, matches, type PermissionRule } from "./permissions.ts"

type Globs = ReadonlySet<string>

/** More globs than this for one intersection come from no honest rule. */
const MOST_GLOBS = 64

/** The globs that together match what both match, without the rule for ` *` at the end; undefined for too many. */
const intersectGlobs = (one: string, other: string): Globs | undefined => {
  const known = new Map<number, Globs>()
  let isTooMany = false
  const from = (i: number, j: number): Globs => {
    const key = i * (other.length + 1) + j
    const before = known.get(key)
    if (before) return before
    const [a, b] = [one[i], other[j]]
    const found = new Set<string>()
    const add = (first: string, rest: Globs) => {
      for (const glob of rest) found.add(first === "*" && glob.startsWith("*") ? glob : first + glob)
    }
    if (a === undefined && b === undefined) found.add("")
    else if (a === "*" && b === "*") for (const rest of [from(i + 1, j), from(i, j + 1)]) add("*", rest)
    else if (a === "*") {
      add("", from(i + 1, j))
      if (b !== undefined) add(b, from(i, j + 1))
    } else if (b === "*") {
      add("", from(i, j + 1))
      if (a !== undefined) add(a, from(i + 1, j))
    } else if (a !== undefined && b !== undefined && (a === b || a === "?" || b === "?"))
      add(a === "?" ? b : a, from(i + 1, j + 1))
    if (found.size > MOST_GLOBS) isTooMany = true
    const kept = isTooMany ? new Set<string>() : found
    known.set(key, kept)
    return kept
  }
  const globs = from(0, 0)
  return isTooMany ? undefined : globs
}

/** The globs of a pattern without the rule for ` *` at the end. */
const globsOf = (pattern: string): string[] => {
  const glob = pattern.replaceAll(/\*+/g, "*")
  return glob.endsWith(" *") ? [glob.slice(0, -2), glob] : [glob]
}

/** Texts that a pattern matches, with nothing in place of `*`, and with more than another pattern could name. */
const samplesOf = (pattern: string): string[] =>
  globsOf(pattern).flatMap((glob) => {
    const text = glob.replaceAll("?", "\u0001")
    return [text.replaceAll("*", ""), text.replaceAll("*", "\u0002".repeat(200))]
  })

/** The common beginning of all texts that a pattern matches. */
const beginningOf = (pattern: string): string => pattern.replace(/ ?[*?].*$/s, "")

/** Tells cheaply that no text can match both. */
const areApart = (one: string, other: string): boolean => {
  const [first, second] = [beginningOf(one), beginningOf(other)]
  return !first.startsWith(second) && !second.startsWith(first)
}

const includes = (wide: string, narrow: string): boolean =>
  wide === narrow || wide === "*" || (!areApart(wide, narrow) && samplesOf(narrow).every((text) => matches(text, wide)))

/** The patterns that together match what both match; undefined for too many. */
const intersectPatterns = (one: string, other: string): string[] | undefined => {
  if (areApart(one, other)) return []
  if (includes(one, other)) return [other]
  if (includes(other, one)) return [one]
  const found = new Set<string>()
  for (const first of globsOf(one)) {
    for (const second of globsOf(other)) {
      const globs = intersectGlobs(first, second)
      if (!globs) return undefined
      for (const glob of globs) found.add(glob)
    }
  }
  const isCommon = (text: string) => matches(text, one) && matches(text, other)
  return [...found].flatMap((glob) => {
    // As a pattern it also matches what stands before the blank.
    if (!glob.endsWith(" *") || isCommon(glob.slice(0, -2))) return [glob]
    return [glob.slice(0, -1), `${glob.slice(0, -1)}?*`]
  })
}

const ruleIncludes = (wide: PermissionRule, narrow: PermissionRule): boolean =>
  !areApart(wide.pattern, narrow.pattern) &&
  includes(wide.permission, narrow.permission) &&
  includes(wide.pattern, narrow.pattern)

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const

const stricter = (one: PermissionRule["action"], other: PermissionRule["action"]) =>
  STRICTNESS[one] > STRICTNESS[other] ? one : other

/** Rules for the uses that both rules decide on, by the stricter of them. */
const intersectRules = (one: PermissionRule, other: PermissionRule): PermissionRule[] => {
  if (areApart(one.permission, other.permission) || areApart(one.pattern, other.pattern)) return []
  const permissions = intersectPatterns(one.permission, other.permission)
  if (permissions?.length === 0) return []
  const patterns = intersectPatterns(one.pattern, other.pattern)
  if (!permissions || !patterns) return [{ ...one, action: "deny" }]
  const action = stricter(one.action, other.action)
  return permissions.flatMap((permission) => patterns.map((pattern) => ({ permission, pattern, action })))
}

const overlap = (one: PermissionRule, other: PermissionRule): boolean => intersectRules(one, other).length > 0

/** Leaves out the rules that a later one replaces. */
const withoutReplaced = (rules: readonly PermissionRule[]): PermissionRule[] =>
  rules.filter((rule, at) => !rules.slice(at + 1).some((later) => ruleIncludes(later, rule)))

/** Leaves out the rules that decide nothing: those that a later one replaces, and those that repeat an earlier one. */
const withoutIdle = (rules: readonly PermissionRule[]): PermissionRule[] => {
  const kept: PermissionRule[] = []
  for (const rule of withoutReplaced(rules)) {
    const before = kept.findLast((earlier) => overlap(earlier, rule))
    if (before?.action !== rule.action || !ruleIncludes(before, rule)) kept.push(rule)
  }
  return kept
}

/** The decision of `evaluate` where no rule matches. */
const UNRULED: PermissionRule = { permission: "*", pattern: "*", action: "ask" }

/** Builds the rules that decide on everything like the stricter of both. */
export const intersectRuleSets = (
  one: readonly PermissionRule[],
  other: readonly PermissionRule[],
): PermissionRule[] => {
  const [first, second] = [one, other].map((rules) => withoutIdle([UNRULED, ...rules]))
  // The last pair that matches is that of the last rule of each.
  const pairs = (first ?? []).flatMap((rule) =>
    withoutReplaced((second ?? []).flatMap((own) => intersectRules(rule, own))),
  )
  return withoutIdle(pairs)
}

/** Decides like `evaluate`, and compiles the patterns only that may match. */
const decide = (rules: readonly PermissionRule[], permission: string, value: string): number => {
  const mayMatch = (text: string, pattern: string) => text.startsWith(beginningOf(pattern))
  const isFor = (rule: PermissionRule) => mayMatch(value, rule.pattern) && mayMatch(permission, rule.permission)
  return STRICTNESS[evaluate(rules.filter(isFor), permission, value)]
}

/** Finds what rules allow beyond others, by permission and pattern; undefined where they nowhere do. */
export const findBeyond = (
  rules: readonly PermissionRule[],
  limit: readonly PermissionRule[],
): Pick<PermissionRule, "permission" | "pattern"> | undefined => {
  const [own, others] = [withoutIdle([UNRULED, ...rules]), withoutIdle([UNRULED, ...limit])]
  const isBeyond = ({ permission, pattern }: PermissionRule): boolean =>
    samplesOf(permission).some((name) =>
      samplesOf(pattern).some((value) => decide(own, name, value) < decide(others, name, value)),
    )
  for (const rule of own) {
    const found = others.flatMap((other) => intersectRules(rule, other)).find(isBeyond)
    if (found) return found
  }
  return undefined
}
