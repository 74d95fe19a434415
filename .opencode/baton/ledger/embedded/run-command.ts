import { type Command, type CommandContext, CommandError } from "./command.ts"
import { COMMANDS, OMITTED_COMMANDS } from "./command-table.ts"
import { findCommand, flagsOfCommand, suggestCommands } from "./find-command.ts"
import { goQuote } from "./go-text.ts"
import { ROOT_FLAGS, renderHelp, renderUsage } from "./help-text.ts"
import { parseFlags } from "./parse-flags.ts"

/** What a command line ends with; `stderr` is empty when `exitCode` is 0. */
export type LedgerResult = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

/** The prog release and schema this ledger follows. */
export const FOLLOWED_VERSION = "0.17.0"
export const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})\n`

const succeed = (stdout: string): LedgerResult => ({ exitCode: 0, stdout, stderr: "" })

/** prog prints a failure twice, by cobra and by its own main; readers look at the first line. */
const fail = (message: string, usage: string): LedgerResult => ({
  exitCode: 1,
  stdout: "",
  stderr: `Error: ${message}\n${usage}${message}\n`,
})

const checkArguments = ({ arguments: rule }: Command, received: number): void => {
  if (rule.kind === "exactly" && received !== rule.count) {
    throw new CommandError("usage", `accepts ${rule.count} arg(s), received ${received}`)
  }
  if (rule.kind === "atLeast" && received < rule.count) {
    throw new CommandError("usage", `requires at least ${rule.count} arg(s), only received ${received}`)
  }
}

const unknownCommand = (word: string): LedgerResult => {
  const known = COMMANDS.map(({ name }) => name)
  const near = suggestCommands(word, known)
  const hint = near.length === 0 ? "" : `\n\nDid you mean this?\n${near.map((name) => `\t${name}\n`).join("")}`
  const omitted = OMITTED_COMMANDS.includes(word)
    ? `command ${goQuote(word)} is not part of Baton's embedded ledger; install prog for it: go install github.com/baiirun/prog/cmd/prog@v${FOLLOWED_VERSION}`
    : `unknown command ${goQuote(word)} for "prog"${hint}`
  return fail(omitted, "Run 'prog --help' for usage.\n")
}

const helpOn = (topic: readonly string[]): LedgerResult => {
  const found = findCommand(topic, COMMANDS, ROOT_FLAGS)
  const unknown = found.path.length === 0 && found.operands.length > 0
  if (!unknown) return succeed(renderHelp(found.path, COMMANDS))
  const words = topic.map((word) => `\`${word}\``).join(" ")
  return { exitCode: 0, stdout: "", stderr: `Unknown help topic [${words}]\n${renderUsage([], COMMANDS)}` }
}

const runRoot = (words: readonly string[], operands: readonly string[]): LedgerResult => {
  const [first, ...rest] = operands
  if (first === "help") return helpOn(rest)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, ROOT_FLAGS)
  return succeed(flags.has("version") && !flags.has("help") ? VERSION_TEXT : renderHelp([], COMMANDS))
}

const runFound = (path: readonly Command[], words: readonly string[], context: CommandContext): LedgerResult => {
  const command = path.at(-1)
  if (command === undefined) return succeed(renderHelp([], COMMANDS))
  const invocation = parseFlags(words, flagsOfCommand(command))
  if (invocation.flags.has("help")) return succeed(renderHelp(path, COMMANDS))
  checkArguments(command, invocation.args.length)
  return succeed(command.run(invocation, context))
}

const isExpected = (error: unknown): error is Error =>
  error instanceof Error && (error.name === "CommandError" || error.name === "StoreError")

/**
 * Runs one command line, with the outcome prog v0.17 gives for it.
 * @param line the arguments without the program's name
 * @throws only what is a defect of the ledger itself
 */
export const runCommand = (line: readonly string[], context: CommandContext): LedgerResult => {
  const { path, words, operands } = findCommand(line, COMMANDS, ROOT_FLAGS)
  try {
    return path.length === 0 ? runRoot(words, operands) : runFound(path, words, context)
  } catch (error) {
    if (isExpected(error)) return fail(error.message, `${renderUsage(path, COMMANDS)}\n`)
    throw error
  }
}
