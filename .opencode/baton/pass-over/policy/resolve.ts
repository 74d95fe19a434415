import { type PassOverError, passOverError } from "../errors.ts"

import { BUILT_IN_POLICY, type Policy, type PolicyFile, type PolicyKey, type PolicyPart } from "./policy.ts"
import { POLICY_FILE } from "./policy-path.ts"

/** Sources of a value, the first with a value wins; `originator` removes rights that the originator itself lacks. */
export const POLICY_LEVELS = ["originator", "override", "pair", "subagent", "global", "built-in"] as const
type PolicyLevel = (typeof POLICY_LEVELS)[number]

/** The policy of one pass, fixed while the pass runs. */
export type ResolvedPolicy = {
  readonly name: string
  readonly values: Policy
  readonly levels: { readonly [Key in PolicyKey]: PolicyLevel }
}

type Resolution =
  /** @property note tells the originator which value of its override was reduced */
  | { readonly kind: "resolved"; readonly policy: ResolvedPolicy; readonly note?: string }
  | { readonly kind: "refused"; readonly error: PassOverError }

export type ResolutionInput = {
  readonly file: Pick<PolicyFile, "defaults" | "pairs" | "subagents">
  readonly originator: string
  readonly subagent: string
  /** The override of the originator's call, checked by its schema. */
  readonly override?: PolicyPart | undefined
  /** The limits of the originator, when it is a subagent itself. */
  readonly inherited?: (Pick<Policy, "can_modify_files" | "can_run_tools"> & Pick<PolicyPart, "sandbox">) | undefined
}

type Bound<Value> = {
  /** The levels whose value an override cannot exceed; the built-in values are presets, not the user's words. */
  readonly holds: "every level" | "the file"
  readonly isWider: (value: Value, limit: Value) => boolean
  /** A value beyond it becomes the limit, since no right depends on it. */
  readonly isReduced?: true
}

const isAllowedInstead = (value: boolean, limit: boolean): boolean => value && !limit
const isMore = (value: number, limit: number): boolean => value > limit

/** An override is written by a model: it never lifts what the user wrote in the file, and no built-in limit of rights and cost. */
const BOUNDS: { readonly [Key in PolicyKey]?: Bound<Policy[Key]> } = {
  can_receive_passes: { holds: "every level", isWider: isAllowedInstead },
  can_modify_files: { holds: "every level", isWider: isAllowedInstead },
  can_run_tools: { holds: "every level", isWider: isAllowedInstead },
  sandbox: { holds: "the file", isWider: (value, limit) => value === "copy" && limit === "os" },
  max_time_ms: { holds: "every level", isWider: isMore },
  max_chain_depth: { holds: "every level", isWider: isMore },
  max_passes_per_session: { holds: "every level", isWider: isMore },
  max_context_tokens: { holds: "every level", isWider: isMore },
  max_retries: { holds: "every level", isWider: isMore },
  auto_return: { holds: "the file", isWider: isAllowedInstead },
  auto_apply: { holds: "the file", isWider: isAllowedInstead },
  timeout_ms: { holds: "the file", isWider: isMore, isReduced: true },
  on_timeout: { holds: "the file", isWider: (value, limit) => value === "continue" && limit === "stop" },
}

const POLICY_KEYS = Object.keys(BUILT_IN_POLICY) as readonly PolicyKey[]

type Layer = { readonly level: PolicyLevel; readonly name: string; readonly part: PolicyPart }

const ownPart = (parts: Readonly<Record<string, PolicyPart>>, name: string): PolicyPart =>
  Object.hasOwn(parts, name) ? (parts[name] ?? {}) : {}

const layersOf = ({ file, originator, subagent }: ResolutionInput): Layer[] => {
  const pairs = [`${originator}->${subagent}`, `${originator}->*`, `*->${subagent}`, "*->*"]
  return [
    ...pairs.map((pair): Layer => ({ level: "pair", name: `pair ${pair}`, part: ownPart(file.pairs, pair) })),
    { level: "subagent", name: `subagent ${subagent}`, part: ownPart(file.subagents, subagent) },
    { level: "global", name: "defaults", part: file.defaults },
    { level: "built-in", name: "built-in", part: BUILT_IN_POLICY },
  ]
}

const findLayer = (layers: readonly Layer[], key: PolicyKey): Layer => {
  const found = layers.find(({ part }) => part[key] !== undefined)
  if (!found) throw new Error(`the built-in policy has no ${key}`)
  return found
}

const findWidening = <Key extends PolicyKey>(
  key: Key,
  value: Policy[Key],
  layers: readonly Layer[],
): { layer: Layer; limit: Policy[Key] } | undefined => {
  const bound = BOUNDS[key]
  if (!bound) return undefined
  const layer = findLayer(layers, key)
  const isBinding = bound.holds === "every level" || layer.level !== "built-in"
  const limit = layer.part[key]
  return isBinding && limit !== undefined && bound.isWider(value, limit) ? { layer, limit } : undefined
}

const refuseOverride = (key: PolicyKey, value: unknown, limit: unknown, layer: Layer): PassOverError =>
  passOverError("E030", {
    message: `The override ${key}: ${JSON.stringify(value)} goes beyond what ${layer.name} allows`,
    cause: `${layer.level === "built-in" ? "The built-in policy" : POLICY_FILE} has ${key}: ${JSON.stringify(limit)}`,
    nextStep: `Pass again without ${key} in the override.`,
  })

/**
 * Resolves the policy of a pass: per key the first value of override, pair, subagent, global, built-in, with its source. An
 * override of rights or cost beyond its bounds is refused (E030), since the originator asked for something else; a time-out is reduced.
 */
export const resolvePolicy = (input: ResolutionInput): Resolution => {
  const layers = layersOf(input)
  const override = { ...input.override }
  const notes: string[] = []
  for (const key of POLICY_KEYS) {
    const value = override[key]
    const widening = value === undefined ? undefined : findWidening(key, value, layers)
    if (!widening) continue
    const { layer, limit } = widening
    if (!BOUNDS[key]?.isReduced) return { kind: "refused", error: refuseOverride(key, value, limit, layer) }
    delete override[key]
    notes.push(`The override ${key}: ${value} was reduced to ${limit}, which ${POLICY_FILE} has (${layer.name}).`)
  }
  const all: readonly Layer[] = [{ level: "override", name: "override", part: override }, ...layers]
  const chosen = POLICY_KEYS.map((key) => ({ key, layer: findLayer(all, key) }))
  const inherited: PolicyPart = input.inherited ?? {}
  const limited: PolicyPart = {
    ...(inherited.can_modify_files === false ? { can_modify_files: false } : {}),
    ...(inherited.can_run_tools === false ? { can_run_tools: false } : {}),
    ...(inherited.sandbox === "os" ? { sandbox: "os" } : {}),
  }
  const pairs = chosen.map(({ key, layer }) => [key, limited[key] ?? layer.part[key]])
  const levels = chosen.map(({ key, layer }) => [
    key,
    limited[key] !== undefined && layer.part[key] !== limited[key] ? "originator" : layer.level,
  ])
  const spoke = layers.find((layer) => chosen.some((each) => each.layer === layer))
  const isOverridden = chosen.some(({ layer }) => layer.level === "override")
  return {
    kind: "resolved",
    policy: {
      name: `${spoke?.name ?? "override"}${isOverridden && spoke ? " with override" : ""}`,
      values: Object.fromEntries(pairs) as Policy,
      levels: Object.fromEntries(levels) as ResolvedPolicy["levels"],
    },
    ...(notes.length === 0 ? {} : { note: notes.join("\n") }),
  }
}

/** Renders a pass's policy by source level, the strongest level first. */
export const renderPolicy = ({ name, values, levels }: ResolvedPolicy): string => {
  const lines = POLICY_LEVELS.flatMap((level) => {
    const said = POLICY_KEYS.filter((key) => levels[key] === level).map((key) => `${key} ${values[key]}`)
    return said.length === 0 ? [] : [`- ${level}: ${said.join(", ")}`]
  })
  return [`Policy: ${name}`, ...lines].join("\n")
}
