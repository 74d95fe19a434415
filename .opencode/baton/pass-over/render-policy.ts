import { BUILT_IN_POLICY, type PolicyKey } from "./policy.ts"
import { POLICY_LEVELS, type ResolvedPolicy } from "./policy-resolution.ts"

const KEYS = Object.keys(BUILT_IN_POLICY) as readonly PolicyKey[]

/** A pass's policy with the level that each value came from, the level with the last word first. */
export const renderPolicy = ({ name, values, levels }: ResolvedPolicy): string => {
  const lines = POLICY_LEVELS.flatMap((level) => {
    const said = KEYS.filter((key) => levels[key] === level).map((key) => `${key} ${values[key]}`)
    return said.length === 0 ? [] : [`- ${level}: ${said.join(", ")}`]
  })
  return [`Policy: ${name}`, ...lines].join("\n")
}
