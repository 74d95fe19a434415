import { type Command, type CommandContext, CommandError } from "./command.ts"
import { loadCommandsNear } from "./command-table.ts"
import { findCommand, firstOperand, flagsOfCommand, ROOT_FLAGS } from "./find-command.ts"
import { fail, type LedgerResult, succeed } from "./ledger-result.ts"
import { parseFlags } from "./parse-flags.ts"
import { StoreError } from "./store-error.ts"

const checkArguments = ({ arguments: rule }: Command, received: number): void => {
  if (rule.kind === "exactly" && received !== rule.count) {
    throw new CommandError("usage", `accepts ${rule.count} arg(s), received ${received}`)
  }
  if (rule.kind === "atLeast" && received < rule.count) {
    throw new CommandError("usage", `requires at least ${rule.count} arg(s), only received ${received}`)
  }
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
  const root = () => import("./root-command.ts")
  try {
    if (command === undefined) return await (await root()).runRoot(words, operands)
    const invocation = parseFlags(words, flagsOfCommand(command))
    if (invocation.flags.has("help")) return succeed(await (await root()).helpOf(path))
    checkArguments(command, invocation.args.length)
    return succeed(command.run(invocation, context))
  } catch (error) {
    if (isExpected(error)) return fail(error.message, `${await (await root()).usageOf(path)}\n`)
    throw error
  }
}
