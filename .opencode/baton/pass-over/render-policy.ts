import { POLICY_KEYS, POLICY_LEVELS, type ResolvedPolicy } from "./policy-resolution.ts"

/** A pass's policy with the level that each value came from, the level with the last word first. */
export const renderPolicy = ({ name, values, levels }: ResolvedPolicy): string => {
  const lines = POLICY_LEVELS.flatMap((level) => {
    const said = POLICY_KEYS.filter((key) => levels[key] === level).map((key) => `${key} ${values[key]}`)
    return said.length === 0 ? [] : [`- ${level}: ${said.join(", ")}`]
  })
  return [`Policy: ${name}`, ...lines].join("\n")
}
