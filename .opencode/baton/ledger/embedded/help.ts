import {
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

/** The prog release and the schema that this ledger follows. */
const FOLLOWED_VERSION = "0.17.0"
const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})\n`

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
export const helpOf = async (path: readonly Command[]): Promise<string> => {
  const command = path.at(-1)
  const children = command === undefined ? await loadAllCommands() : (command.children ?? [])
  const words = ["prog", ...path.map(({ name }) => name)].join(" ")
  const operands = command === undefined ? "COMMAND" : command.operands
  const flags = command === undefined ? ROOT_FLAGS : [...command.flags, HELP_FLAG, PROJECT_FLAG]
  return [
    command?.summary ?? ROOT_HELP,
    "",
    `Usage: ${[words, operands, "[flags]"].filter((part) => part !== "").join(" ")}`,
    ...(children.length === 0 ? [] : ["", "Commands:", ...commandLines(children)]),
    "",
    "Flags:",
    ...flags.map(flagLine),
    "",
  ].join("\n")
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
 * @throws CommandError for a bad flag
 */
export const runRoot = async (words: readonly string[], operands: readonly string[]): Promise<LedgerResult> => {
  const [first, ...topic] = operands
  if (first === "help") return helpOn(topic)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, ROOT_FLAGS)
  return succeed(flags.has("version") && !flags.has("help") ? VERSION_TEXT : await helpOf([]))
}
