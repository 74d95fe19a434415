import { LedgerError } from "./store.ts"

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

const TRUE_WORDS = ["1", "t", "true"]
const FALSE_WORDS = ["0", "f", "false"]

/** @returns what is wrong with a flag's value */
const complaintAbout = ({ kind }: FlagSpec, value: string): string | undefined => {
  if (kind === "switch" && ![...TRUE_WORDS, ...FALSE_WORDS].includes(value.toLowerCase()))
    return "expected true or false"
  const isInteger = value.trim() !== "" && Number.isSafeInteger(Number(value))
  return kind === "integer" && !isInteger ? "expected a whole number" : undefined
}

/**
 * Parses flags at any position; `--` ends them. Accepts `--name value`, `--name=value`, `-n value`, `-nvalue`, `-n=value` and
 * joined switches (`-eh`).
 *
 * @param words the words after the command's name
 * @throws LedgerError for an unknown flag, a missing value or a wrong one
 */
export const parseFlags = (words: readonly string[], specs: readonly FlagSpec[]) => {
  const values = new Map<string, readonly string[]>()
  const args: string[] = []
  const rest = [...words]

  const assign = (spec: FlagSpec, value: string): void => {
    const complaint = complaintAbout(spec, value)
    if (complaint !== undefined) throw new LedgerError(`invalid argument "${value}" for --${spec.name}: ${complaint}`)
    values.set(spec.name, [...(values.get(spec.name) ?? []), value])
  }

  const nextWord = (flag: string): string => {
    const value = rest.shift()
    if (value === undefined) throw new LedgerError(`flag needs an argument: ${flag}`)
    return value
  }

  const readLong = (word: string): void => {
    const [name = "", ...after] = word.slice(2).split("=")
    const spec = specs.find((known) => known.name === name)
    if (spec === undefined) throw new LedgerError(`unknown flag: --${name}`)
    if (after.length > 0) assign(spec, after.join("="))
    else assign(spec, spec.kind === "switch" ? "true" : nextWord(word))
  }

  const readShort = (letters: string): void => {
    const [letter = "", ...others] = Array.from(letters)
    const after = others.join("")
    const spec = specs.find((known) => known.short === letter)
    if (spec === undefined) throw new LedgerError(`unknown shorthand flag: '${letter}' in -${letters}`)
    if (after.length > 1 && after.startsWith("=")) assign(spec, after.slice(1))
    else if (spec.kind !== "switch") assign(spec, after === "" ? nextWord(`-${letters}`) : after)
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
  const last = (name: string): string => values.get(name)?.at(-1) ?? ""
  /** Values by flag name; a flag that is not given has its empty value. */
  const flags = {
    text: last,
    list: (name: string): readonly string[] => values.get(name) ?? [],
    has: (name: string): boolean => TRUE_WORDS.includes(last(name).toLowerCase()),
    integer: (name: string): number =>
      values.has(name) ? Number(last(name)) : (specs.find((spec) => spec.name === name)?.fallback ?? 0),
    /** True when the flag was given, even with an empty value. */
    given: (name: string): boolean => values.has(name),
  }
  return { args, flags }
}

/** The parsed command line: the arguments without flags, and the flags. */
export type Invocation = ReturnType<typeof parseFlags>
export type Flags = Invocation["flags"]
