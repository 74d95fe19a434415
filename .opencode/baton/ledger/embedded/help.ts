import {
  COMMAND_NAMES,
  fail,
  findCommand,
  HELP_FLAG,
  type LedgerResult,
  loadAllCommands,
  OMITTED_COMMANDS,
  PROJECT_FLAG,
  ROOT_FLAGS,
  succeed,
} from "./cli.ts"
import type { Command } from "./command.ts"
import { type FlagSpec, parseFlags } from "./flags.ts"
import { goQuote, padRight } from "./format.ts"

const MAX_DISTANCE = 2

/** Levenshtein distance, ignoring case. */
const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [i, a] of Array.from(left.toLowerCase()).entries()) {
    const next = [i + 1]
    for (const [j, b] of Array.from(right.toLowerCase()).entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Names similar to the typed one: at most two edits away, or starting with it. */
const suggestCommands = (typed: string, names: readonly string[]): string[] =>
  names.filter((name) => distance(typed, name) <= MAX_DISTANCE || name.startsWith(typed.toLowerCase()))

/** The prog release and the schema this ledger follows. */
const FOLLOWED_VERSION = "0.17.0"
const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})\n`

/** Usage of a command; of the whole program for an empty path. */
export const usageOf = async (path: readonly Command[]): Promise<string> =>
  renderUsage(path, path.length === 0 ? await loadAllCommands() : [])

/** Help of a command; of the whole program for an empty path. */
export const helpOf = async (path: readonly Command[]): Promise<string> =>
  renderHelp(path, path.length === 0 ? await loadAllCommands() : [])

const unknownCommand = (word: string): LedgerResult => {
  const near = suggestCommands(word, COMMAND_NAMES)
  const hint = near.length === 0 ? "" : `\n\nDid you mean this?\n${near.map((name) => `\t${name}\n`).join("")}`
  const install = `install prog for it: go install github.com/baiirun/prog/cmd/prog@v${FOLLOWED_VERSION}`
  const message = OMITTED_COMMANDS.includes(word)
    ? `command ${goQuote(word)} is not part of Baton's embedded ledger; ${install}`
    : `unknown command ${goQuote(word)} for "prog"${hint}`
  return fail(message, "Run 'prog --help' for usage.\n")
}

const helpOn = async (topic: readonly string[]): Promise<LedgerResult> => {
  const { path, operands } = findCommand(topic, await loadAllCommands())
  if (path.length > 0 || operands.length === 0) return succeed(await helpOf(path))
  const words = topic.map((word) => `\`${word}\``).join(" ")
  return { exitCode: 0, stdout: "", stderr: `Unknown help topic [${words}]\n${await usageOf([])}` }
}

/**
 * Runs a line without a command.
 *
 * @throws CommandError for a bad flag
 */
export const runRoot = async (words: readonly string[], operands: readonly string[]): Promise<LedgerResult> => {
  const [first, ...topic] = operands
  if (first === "help") return helpOn(topic)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, ROOT_FLAGS)
  return succeed(flags.has("version") && !flags.has("help") ? VERSION_TEXT : await helpOf([]))
}

// Usage and help in cobra's layout, so that both ledgers look alike; the texts are Baton's own. Pure.

const PROGRAM = "prog"

const KIND_NAMES = { text: " string", list: " stringArray", switch: "", integer: " int" } as const

const byName = (left: { name: string }, right: { name: string }): number => (left.name < right.name ? -1 : 1)

const flagTable = (specs: readonly FlagSpec[]): string => {
  const heads = specs.toSorted(byName).map((spec) => ({
    head: `  ${spec.short === undefined ? "    " : `-${spec.short}, `}--${spec.name}${KIND_NAMES[spec.kind]}`,
    about: spec.fallback === undefined ? spec.about : `${spec.about} (default ${spec.fallback})`,
  }))
  const width = Math.max(...heads.map(({ head }) => head.length)) + 3
  return heads.map(({ head, about }) => padRight(head, width) + about).join("\n")
}

const commandTable = (commands: readonly Command[]): string => {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 1
  return commands
    .toSorted(byName)
    .map(({ name, summary }) => `  ${padRight(name, width)} ${summary}`)
    .join("\n")
}

const commandList = (commands: readonly Command[]): string =>
  commands.length === 0 ? "" : `\n\nAvailable Commands:\n${commandTable(commands)}`

const pointer = (path: string): string => `\n\nUse "${path} [command] --help" for more information about a command.`

/** The usage after an error message. Ends with a line break. */
const renderUsage = (path: readonly Command[], roots: readonly Command[]): string => {
  const command = path.at(-1)
  if (command === undefined) {
    return `Usage:\n  ${PROGRAM} [command]${commandList(roots)}\n\nFlags:\n${flagTable(ROOT_FLAGS)}${pointer(PROGRAM)}\n`
  }
  const words = [PROGRAM, ...path.map(({ name }) => name)].join(" ")
  const children = command.children ?? []
  const operands = command.operands === "" ? "" : ` ${command.operands}`
  return [
    `Usage:\n  ${words}${operands} [flags]`,
    children.length === 0 ? "" : `\n  ${words} [command]${commandList(children)}`,
    `\n\nFlags:\n${flagTable([...command.flags, HELP_FLAG])}`,
    `\n\nGlobal Flags:\n${flagTable([PROJECT_FLAG])}`,
    children.length === 0 ? "" : pointer(words),
    "\n",
  ].join("")
}

const ROOT_HELP = `Baton's embedded ledger: tasks, dependencies, logs and learnings in prog's own database.
It stands in for prog (github.com/baiirun/prog) where that is not installed; both can use the same file.

Database: $PROG_DB, or ~/.prog/prog.db; it is created when it is missing.

  prog add "Build feature X" -p myproject
  prog ready -p myproject
  prog start <id>
  prog log <id> "what happened"
  prog done <id>
`

/** Help of a command, or of the whole program for an empty path. */
const renderHelp = (path: readonly Command[], roots: readonly Command[]): string => {
  const command = path.at(-1)
  const about = command === undefined ? ROOT_HELP : `${command.summary}\n`
  return `${about}\n${renderUsage(path, roots)}`
}
