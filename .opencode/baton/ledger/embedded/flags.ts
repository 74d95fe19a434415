/** What a flag is and what its values are, as pflag 1.0.5 (under cobra 1.8) has them. Pure. */
import { goQuote } from "./go-text.ts"

export type FlagSpec = {
  readonly name: string
  /** One letter. */
  readonly short?: string
  readonly kind: "text" | "list" | "switch" | "integer"
  readonly about: string
  /** Of an integer that is not given. */
  readonly fallback?: number
}

export type FlagValue = string | readonly string[] | boolean | number

/** Values by flag name; a flag that is not given has its empty value. */
export type Flags = {
  text(name: string): string
  list(name: string): readonly string[]
  has(name: string): boolean
  integer(name: string): number
  /** True when the flag was given, even with an empty value. */
  given(name: string): boolean
}

const TRUE_WORDS = ["1", "t", "T", "true", "TRUE", "True"]
const FALSE_WORDS = ["0", "f", "F", "false", "FALSE", "False"]
const INTEGER = /^[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/

const parseSwitch = (text: string): boolean => {
  if (TRUE_WORDS.includes(text)) return true
  if (FALSE_WORDS.includes(text)) return false
  throw new SyntaxError(`strconv.ParseBool: parsing ${goQuote(text)}: invalid syntax`)
}

const parseInteger = (text: string): number => {
  if (!INTEGER.test(text)) throw new SyntaxError(`strconv.ParseInt: parsing ${goQuote(text)}: invalid syntax`)
  const digits = text.replace(/^[+-]/, "")
  const size = Number(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits)
  const value = text.startsWith("-") ? -size : size
  if (Number.isSafeInteger(value)) return value
  throw new SyntaxError(`strconv.ParseInt: parsing ${goQuote(text)}: value out of range`)
}

/**
 * The flag's value after one more text for it: lists grow, everything else is replaced.
 * @throws SyntaxError in the words of Go's strconv
 */
export const readFlagValue = (spec: FlagSpec, text: string, before: FlagValue | undefined): FlagValue => {
  switch (spec.kind) {
    case "text":
      return text
    case "list":
      return [...(Array.isArray(before) ? before : []), text]
    case "switch":
      return parseSwitch(text)
    case "integer":
      return parseInteger(text)
  }
}

export const createFlags = (specs: readonly FlagSpec[], values: ReadonlyMap<string, FlagValue>): Flags => ({
  text: (name) => String(values.get(name) ?? ""),
  list: (name) => {
    const value = values.get(name)
    return Array.isArray(value) ? value : []
  },
  has: (name) => values.get(name) === true,
  integer: (name) => Number(values.get(name) ?? specs.find((spec) => spec.name === name)?.fallback ?? 0),
  given: (name) => values.has(name),
})
