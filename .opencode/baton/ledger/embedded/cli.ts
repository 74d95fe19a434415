import type { Command, CommandContext } from "./command.ts"
import {
  fail,
  findCommand,
  flagsOf,
  type LedgerResult,
  loadCommandsNear,
  operandsOf,
  ROOT_FLAGS,
  succeed,
} from "./command-tree.ts"
import { type Flags, parseFlags } from "./flags.ts"
import { LedgerError } from "./store.ts"

const checkArguments = (
  { operands = "", arguments: { least, most = Infinity } = { least: 0 } }: Command,
  given: number,
) => {
  if (given >= least && given <= most) return
  throw new LedgerError(`expected ${operands === "" ? "no argument" : operands}, received ${given} arguments`)
}

/** Programs get what prog gives them; a task that is named may be of any project. */
const showsAll = (flags: Flags): boolean =>
  flags.has("all") || flags.has("json") || ["parent", "blocking", "blocked-by"].some(flags.given)

/**
 * Runs one command line with the outcome that prog v0.17 gives for it. A refusal is an exit code and a text.
 *
 * @param line the arguments without the program's name
 * @throws only defects of the ledger itself
 */
export const runCommand = async (line: readonly string[], context: CommandContext): Promise<LedgerResult> => {
  const [first] = operandsOf(line, ROOT_FLAGS)
  const roots = await loadCommandsNear(first?.word ?? "")
  const { path, words, operands } = findCommand(line, roots)
  const command = path.at(-1)
  try {
    if (command === undefined) return await (await import("./help.ts")).runRoot(words, operands)
    const given = parseFlags(words, flagsOf(command))
    if (given.flags.has("help")) return succeed(await (await import("./help.ts")).helpOf(path))
    checkArguments(command, given.args.length)
    if (given.flags.given("project")) return succeed(command.run(given, context, ""))
    const shown = command.showsFolderProject && !showsAll(given.flags) ? await context.batonProject() : ""
    if (!command.usesFolderProject) return succeed(command.run(given, context, shown))
    const withProject = parseFlags(["-p", await context.folderProject(), ...words], flagsOf(command))
    return succeed(command.run(withProject, context, ""))
  } catch (error) {
    if (error instanceof LedgerError) return fail(error.message, path)
    throw error
  }
}
