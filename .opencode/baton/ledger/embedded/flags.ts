import { CommandError, type Invocation } from "./command.ts"

// Flags and their values, as in pflag 1.0.5 (under cobra 1.8). Pure.

export type FlagSpec = {
  readonly name: string
  /** One letter. */
  readonly short?: string
  readonly kind: "text" | "list" | "switch" | "integer"
  readonly about: string
  /** The value of an integer that is not given. */
  readonly fallback?: number
}

type FlagValue = string | readonly string[] | boolean | number

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
  throw new SyntaxError("expected true or false")
}

const parseInteger = (text: string): number => {
  if (!INTEGER.test(text)) throw new SyntaxError("expected a whole number")
  const digits = text.replace(/^[+-]/, "")
  const size = Number(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits)
  const value = text.startsWith("-") ? -size : size
  if (Number.isSafeInteger(value)) return value
  throw new SyntaxError("the number is out of range")
}

/**
 * Adds one more text to a flag's value: lists grow, other values are replaced.
 *
 * @throws SyntaxError in the words of Go's strconv
 */
const readFlagValue = (spec: FlagSpec, text: string, before: FlagValue | undefined): FlagValue => {
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

const createFlags = (specs: readonly FlagSpec[], values: ReadonlyMap<string, FlagValue>): Flags => ({
  text: (name) => String(values.get(name) ?? ""),
  list: (name) => {
    const value = values.get(name)
    return Array.isArray(value) ? value : []
  },
  has: (name) => values.get(name) === true,
  integer: (name) => Number(values.get(name) ?? specs.find((spec) => spec.name === name)?.fallback ?? 0),
  given: (name) => values.has(name),
})

const bad = (message: string): CommandError => new CommandError("usage", message)

/**
 * Parses flags at any position; `--` ends them. Accepts `--name value`, `--name=value`, `-n value`, `-nvalue`, `-n=value` and
 * joined switches (`-eh`).
 *
 * @param words the words after the command's name
 * @throws CommandError in pflag's words for an unknown flag, a missing value or a wrong one
 */
export const parseFlags = (words: readonly string[], specs: readonly FlagSpec[]): Invocation => {
  const values = new Map<string, FlagValue>()
  const args: string[] = []
  const rest = [...words]

  const assign = (spec: FlagSpec, text: string): void => {
    try {
      values.set(spec.name, readFlagValue(spec, text, values.get(spec.name)))
    } catch (error) {
      const flag = spec.short === undefined ? `--${spec.name}` : `-${spec.short}, --${spec.name}`
      const reason = error instanceof Error ? error.message : String(error)
      throw new CommandError("usage", `invalid argument "${text}" for ${flag}: ${reason}`, error)
    }
  }

  /** Takes the next word as a flag's value. */
  const nextWord = (complaint: string): string => {
    const value = rest.shift()
    if (value === undefined) throw bad(`flag needs an argument: ${complaint}`)
    return value
  }

  const readLong = (word: string): void => {
    const [name = "", ...after] = word.slice(2).split("=")
    if (name === "" || name.startsWith("-")) throw bad(`bad flag syntax: ${word}`)
    const spec = specs.find((known) => known.name === name)
    if (spec === undefined) throw bad(`unknown flag: --${name}`)
    if (after.length > 0) assign(spec, after.join("="))
    else assign(spec, spec.kind === "switch" ? "true" : nextWord(word))
  }

  const readShort = (letters: string): void => {
    const [letter = "", ...others] = Array.from(letters)
    const after = others.join("")
    const spec = specs.find((known) => known.short === letter)
    if (spec === undefined) throw bad(`unknown shorthand flag: '${letter}' in -${letters}`)
    if (after.length > 1 && after.startsWith("=")) assign(spec, after.slice(1))
    else if (spec.kind !== "switch") assign(spec, after === "" ? nextWord(`'${letter}' in -${letters}`) : after)
    else {
      assign(spec, "true")
      if (after !== "") readShort(after)
    }
  }

  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--") {
      args.push(...rest)
      break
    }
    if (word.startsWith("--")) readLong(word)
    else if (word.startsWith("-") && word !== "-") readShort(word.slice(1))
    else args.push(word)
  }
  return { args, flags: createFlags(specs, values) }
}
