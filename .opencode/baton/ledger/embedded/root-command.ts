/** What stands where no command does: help, version, and names that are none. */
import type { Command } from "./command.ts"
import { COMMAND_NAMES, loadAllCommands, OMITTED_COMMANDS } from "./command-table.ts"
import { findCommand, ROOT_FLAGS } from "./find-command.ts"
import { goQuote } from "./go-text.ts"
import { renderHelp, renderUsage } from "./help-text.ts"
import { fail, type LedgerResult, succeed } from "./ledger-result.ts"
import { parseFlags } from "./parse-flags.ts"
import { suggestCommands } from "./suggest-commands.ts"

/** The prog release and the schema this ledger follows. */
const FOLLOWED_VERSION = "0.17.0"
const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})\n`

/** How a command is called; of the whole program for an empty path. */
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
 * A line that names no command.
 * @throws CommandError for a bad flag
 */
export const runRoot = async (words: readonly string[], operands: readonly string[]): Promise<LedgerResult> => {
  const [first, ...topic] = operands
  if (first === "help") return helpOn(topic)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, ROOT_FLAGS)
  return succeed(flags.has("version") && !flags.has("help") ? VERSION_TEXT : await helpOf([]))
}
