/** A command's words as pflag 1.0.5 reads them. Pure. */
import { CommandError, type Invocation } from "./command.ts"
import { createFlags, type FlagSpec, type FlagValue, readFlagValue } from "./flags.ts"
import { goQuote } from "./go-text.ts"

const bad = (message: string): CommandError => new CommandError("usage", message)

/**
 * Flags may stand anywhere; `--` ends them. Takes `--name value`, `--name=value`, `-n value`, `-nvalue`, `-n=value` and
 * joined switches (`-eh`).
 * @param words what follows the command's name
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
      throw new CommandError("usage", `invalid argument ${goQuote(text)} for ${goQuote(flag)} flag: ${reason}`, error)
    }
  }

  /** The value of a flag that has none of its own: the next word. */
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
