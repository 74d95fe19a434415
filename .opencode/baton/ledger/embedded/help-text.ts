/** Usage and help in cobra's layout, so that both ledgers read alike; the words are Baton's own. Pure. */
import type { Command } from "./command.ts"
import { HELP_FLAG, PROJECT_FLAG, ROOT_FLAGS } from "./find-command.ts"
import type { FlagSpec } from "./flags.ts"
import { padRight } from "./go-text.ts"

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

/** What follows an error: how the command is called. Ends with a line break. */
export const renderUsage = (path: readonly Command[], roots: readonly Command[]): string => {
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
export const renderHelp = (path: readonly Command[], roots: readonly Command[]): string => {
  const command = path.at(-1)
  const about = command === undefined ? ROOT_HELP : `${command.summary}\n`
  return `${about}\n${renderUsage(path, roots)}`
}
