import type { Command } from "./command.ts"
import {
  fail,
  findCommand,
  flagsOf,
  type LedgerResult,
  loadAllCommands,
  OMITTED_COMMANDS,
  succeed,
} from "./command-tree.ts"
import { type FlagSpec, parseFlags } from "./flags.ts"

const FOLLOWED_VERSION = "0.17.0"
const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})`

const ROOT_HELP = `Baton's embedded ledger: tasks, dependencies, logs and learnings in prog's own database.
It stands in for prog (github.com/baiirun/prog) where that is not installed; both can use the same file.

Database: $PROG_DB, or ~/.prog/prog.db; add, learn and init create it when it is missing.

  prog add "Build feature X" -p myproject
  prog ready -p myproject
  prog start <id>
  prog log <id> "what happened"
  prog done <id>`

const VALUES = { text: " TEXT", list: " TEXT ...", switch: "", integer: " NUMBER" } as const
const FLAG_COLUMNS = 28
const COMMAND_COLUMNS = 12

const flagLine = ({ name, short, kind, about, fallback }: FlagSpec): string => {
  const head = `${short === undefined ? "    " : `-${short}, `}--${name}${VALUES[kind]}`
  return `  ${head.padEnd(FLAG_COLUMNS)} ${about}${fallback === undefined ? "" : ` (default ${fallback})`}`
}

const commandLines = (commands: readonly Command[]): string[] =>
  commands
    .map(({ name, summary }) => `  ${name.padEnd(COMMAND_COLUMNS)} ${summary}`)
    .toSorted((a, b) => (a < b ? -1 : 1))

/** Help of a command; of the whole program for an empty path. */
export const helpOf = async (path: readonly Command[]): Promise<string[]> => {
  const command = path.at(-1)
  const children = command === undefined ? await loadAllCommands() : (command.children ?? [])
  const operands = command === undefined ? "COMMAND" : command.operands
  const usage = ["prog", ...path.map(({ name }) => name), ...(operands ? [operands] : []), "[flags]"]
  return [
    command?.summary ?? ROOT_HELP,
    "",
    `Usage: ${usage.join(" ")}`,
    ...(children.length === 0 ? [] : ["", "Commands:", ...commandLines(children)]),
    "",
    "Flags:",
    ...flagsOf(command).map(flagLine),
  ]
}

const unknownCommand = (word: string): LedgerResult => {
  const install = `install prog for it: go install github.com/baiirun/prog/cmd/prog@v${FOLLOWED_VERSION}`
  return OMITTED_COMMANDS.includes(word)
    ? fail(`command "${word}" is not part of Baton's embedded ledger; ${install}`, [])
    : fail(`unknown command "${word}" for "prog"`, [])
}

const helpOn = async (topic: readonly string[]): Promise<LedgerResult> => {
  const { path, operands } = findCommand(topic, await loadAllCommands())
  const [unknown] = path.length > 0 ? [] : operands
  return unknown === undefined ? succeed(await helpOf(path)) : unknownCommand(unknown)
}

/**
 * Runs a line that names no command.
 * @throws LedgerError for a bad flag
 */
export const runRoot = async (words: readonly string[], operands: readonly string[]): Promise<LedgerResult> => {
  const [first, ...topic] = operands
  if (first === "help") return helpOn(topic)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, flagsOf(undefined))
  return succeed(flags.has("version") && !flags.has("help") ? [VERSION_TEXT] : await helpOf([]))
}
