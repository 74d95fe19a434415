import { type Command, type CommandContext, CommandError } from "./command.ts"
import { COMMAND_NAMES, loadAllCommands, loadCommandsNear, OMITTED_COMMANDS } from "./command-table.ts"
import { findCommand, firstOperand, flagsOfCommand, ROOT_FLAGS, suggestCommands } from "./find-command.ts"
import { goQuote } from "./go-text.ts"
import { parseFlags } from "./parse-flags.ts"
import { StoreError } from "./store.ts"

/** What a command line ends with. */
export type LedgerResult = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

/** The prog release and the schema this ledger follows. */
const FOLLOWED_VERSION = "0.17.0"
const FOLLOWED_SCHEMA = 3

const VERSION_TEXT = `prog version ${FOLLOWED_VERSION} (Baton's embedded ledger, prog schema ${FOLLOWED_SCHEMA})\n`

const succeed = (stdout: string): LedgerResult => ({ exitCode: 0, stdout, stderr: "" })

/** prog prints a failure twice, by cobra and by its own main; readers look at the first line. */
const fail = (message: string, usage: string): LedgerResult => ({
  exitCode: 1,
  stdout: "",
  stderr: `Error: ${message}\n${usage}${message}\n`,
})

const usageOf = async (path: readonly Command[]): Promise<string> => {
  const { renderUsage } = await import("./help-text.ts")
  return renderUsage(path, path.length === 0 ? await loadAllCommands() : [])
}

const helpOf = async (path: readonly Command[]): Promise<string> => {
  const { renderHelp } = await import("./help-text.ts")
  return renderHelp(path, path.length === 0 ? await loadAllCommands() : [])
}

const checkArguments = ({ arguments: rule }: Command, received: number): void => {
  if (rule.kind === "exactly" && received !== rule.count) {
    throw new CommandError("usage", `accepts ${rule.count} arg(s), received ${received}`)
  }
  if (rule.kind === "atLeast" && received < rule.count) {
    throw new CommandError("usage", `requires at least ${rule.count} arg(s), only received ${received}`)
  }
}

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

const runRoot = async (words: readonly string[], operands: readonly string[]): Promise<LedgerResult> => {
  const [first, ...topic] = operands
  if (first === "help") return helpOn(topic)
  if (first !== undefined) return unknownCommand(first)
  const { flags } = parseFlags(words, ROOT_FLAGS)
  return succeed(flags.has("version") && !flags.has("help") ? VERSION_TEXT : await helpOf([]))
}

const isExpected = (error: unknown): error is Error => error instanceof CommandError || error instanceof StoreError

/**
 * Runs one command line, with the outcome prog v0.17 gives for it. A refusal is an exit code and a text.
 * @param line the arguments without the program's name
 * @throws only what is a defect of the ledger itself
 */
export const runCommand = async (line: readonly string[], context: CommandContext): Promise<LedgerResult> => {
  const roots = await loadCommandsNear(firstOperand(line, ROOT_FLAGS) ?? "")
  const { path, words, operands } = findCommand(line, roots)
  const command = path.at(-1)
  try {
    if (command === undefined) return await runRoot(words, operands)
    const invocation = parseFlags(words, flagsOfCommand(command))
    if (invocation.flags.has("help")) return succeed(await helpOf(path))
    checkArguments(command, invocation.args.length)
    return succeed(command.run(invocation, context))
  } catch (error) {
    if (isExpected(error)) return fail(error.message, `${await usageOf(path)}\n`)
    throw error
  }
}
