/** Which command a line names, as cobra 1.8 finds it: the first word that is no flag and no flag's value. Pure. */
import type { Command } from "./command.ts"
import type { FlagSpec } from "./flags.ts"

export const HELP_FLAG: FlagSpec = { name: "help", short: "h", kind: "switch", about: "show this help" }
export const PROJECT_FLAG: FlagSpec = { name: "project", short: "p", kind: "text", about: "the project to look at" }
export const VERSION_FLAG: FlagSpec = { name: "version", short: "v", kind: "switch", about: "say which ledger this is" }

/** Flags that may stand before any command. */
export const ROOT_FLAGS: readonly FlagSpec[] = [HELP_FLAG, PROJECT_FLAG, VERSION_FLAG]

export const flagsOfCommand = (command: Command): FlagSpec[] => [...command.flags, HELP_FLAG, PROJECT_FLAG]

export type FoundCommand = {
  /** From the root's child down; empty for the root itself. */
  readonly path: readonly Command[]
  /** The line without the commands' names. */
  readonly words: readonly string[]
  /** Words that are no flags, as cobra guesses before it parses. */
  readonly operands: readonly string[]
}

type Operand = { readonly word: string; readonly index: number }

/** A flag the command does not know is taken to have a value, as cobra takes it. */
const takesNextWord = (word: string, specs: readonly FlagSpec[]): boolean => {
  if (word.includes("=")) return false
  if (word.startsWith("--")) return specs.find((spec) => spec.name === word.slice(2))?.kind !== "switch"
  return word.length === 2 && word.startsWith("-") && specs.find((spec) => spec.short === word[1])?.kind !== "switch"
}

const operandsOf = (words: readonly string[], specs: readonly FlagSpec[]): Operand[] => {
  const operands: Operand[] = []
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? ""
    if (word === "--") break
    if (takesNextWord(word, specs)) {
      if (words.length - index - 1 <= 1) break
      index += 1
    } else if (word !== "" && !word.startsWith("-")) operands.push({ word, index })
  }
  return operands
}

/** The word that should name a command, if there is one. */
export const firstOperand = (line: readonly string[], rootFlags: readonly FlagSpec[]): string | undefined =>
  operandsOf(line, rootFlags)[0]?.word

/** @param roots commands that may stand first */
export const findCommand = (line: readonly string[], roots: readonly Command[]): FoundCommand => {
  const path: Command[] = []
  let words: readonly string[] = line
  for (;;) {
    const current = path.at(-1)
    const operands = operandsOf(words, current === undefined ? ROOT_FLAGS : flagsOfCommand(current))
    const first = operands[0]
    const candidates = current === undefined ? roots : (current.children ?? [])
    const next = candidates.find((command) => command.name === first?.word)
    if (first === undefined || next === undefined) return { path, words, operands: operands.map(({ word }) => word) }
    path.push(next)
    words = words.toSpliced(first.index, 1)
  }
}
