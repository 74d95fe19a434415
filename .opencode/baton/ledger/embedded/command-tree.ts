import type { Command } from "./command.ts"
import type { FlagSpec } from "./flags.ts"

// The commands of the embedded `prog`, and how a command line names one.

export type LedgerResult = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

export const succeed = (lines: readonly string[]): LedgerResult => ({
  exitCode: 0,
  stdout: lines.map((line) => `${line}\n`).join(""),
  stderr: "",
})

/** The first line is the one that readers look at. @param path the command's names */
export const fail = (message: string, path: readonly Command[]): LedgerResult => {
  const words = ["prog", ...path.map(({ name }) => name)].join(" ")
  return { exitCode: 1, stdout: "", stderr: `Error: ${message}\nRun '${words} --help' for usage.\n` }
}

type CommandGroup = { readonly names: readonly string[]; load(): Promise<readonly Command[]> }

/** Each file takes Bun half a millisecond to load, so a command line loads only its own group. */
const GROUPS: readonly CommandGroup[] = [
  {
    names: [
      "init",
      "add",
      "delete",
      "log",
      "append",
      "desc",
      "edit",
      "start",
      "done",
      "open",
      "review",
      "cancel",
      "draft",
    ],
    load: async () => (await import("./commands/write-tasks.ts")).writeCommands,
  },
  {
    names: ["list", "ready", "show", "projects", "graph"],
    load: async () => (await import("./commands/read-tasks.ts")).readCommands,
  },
  {
    names: ["status", "prime"],
    load: async () => (await import("./commands/overview.ts")).overviewCommands,
  },
  {
    names: ["parent", "blocks", "project", "label", "unlabel", "labels"],
    load: async () => (await import("./commands/links.ts")).linkCommands,
  },
  {
    names: ["learn", "context", "concepts"],
    load: async () => (await import("./commands/knowledge.ts")).knowledgeCommands,
  },
  {
    names: ["claim", "release", "claims"],
    load: async () => (await import("./commands/claims.ts")).claimCommands,
  },
  {
    names: ["runs", "unblock", "queue", "run-end"],
    load: async () => (await import("./commands/runs.ts")).runCommands,
  },
  {
    names: ["worker-beat", "worker-want", "workers"],
    load: async () => (await import("./commands/workers.ts")).workerCommands,
  },
  {
    names: ["copies"],
    load: async () => (await import("./commands/copies.ts")).copyCommands,
  },
]

export const COMMAND_NAMES: readonly string[] = GROUPS.flatMap(({ names }) => names)

/** Loads the named command and its group; empty if there is no such command. */
export const loadCommandsNear = async (name: string): Promise<readonly Command[]> =>
  (await GROUPS.find(({ names }) => names.includes(name))?.load()) ?? []

export const loadAllCommands = async (): Promise<readonly Command[]> =>
  (await Promise.all(GROUPS.map((group) => group.load()))).flat()

/** Commands of prog that only a user at a terminal needs; the embedded ledger names them as not included. */
export const OMITTED_COMMANDS: readonly string[] = [
  "backup",
  "backups",
  "compact",
  "completion",
  "onboard",
  "restore",
  "tui",
  "ui",
]

const HELP_FLAG: FlagSpec = { name: "help", short: "h", kind: "switch", about: "show this help" }
const PROJECT_FLAG: FlagSpec = { name: "project", short: "p", kind: "text", about: "the project to look at" }
const VERSION_FLAG: FlagSpec = { name: "version", short: "v", kind: "switch", about: "say which ledger this is" }

export const ROOT_FLAGS: readonly FlagSpec[] = [HELP_FLAG, PROJECT_FLAG, VERSION_FLAG]

/** @param command none for the root */
export const flagsOf = (command: Command | undefined): readonly FlagSpec[] =>
  command === undefined ? ROOT_FLAGS : [...(command.flags ?? []), HELP_FLAG, PROJECT_FLAG]

type FoundCommand = {
  /** The command with its parents, outermost first; empty for the root itself. */
  readonly path: readonly Command[]
  /** The line without the commands' names. */
  readonly words: readonly string[]
  /** Words that are no flags, by cobra's guess before parsing. */
  readonly operands: readonly string[]
}

type Operand = { readonly word: string; readonly index: number }

/** An unknown flag is assumed to have a value, as in cobra. */
const takesNextWord = (word: string, specs: readonly FlagSpec[]): boolean => {
  if (word.includes("=")) return false
  if (word.startsWith("--")) return specs.find((spec) => spec.name === word.slice(2))?.kind !== "switch"
  return word.length === 2 && word.startsWith("-") && specs.find((spec) => spec.short === word[1])?.kind !== "switch"
}

export const operandsOf = (words: readonly string[], specs: readonly FlagSpec[]): Operand[] => {
  const operands: Operand[] = []
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? ""
    if (word === "--") break
    if (takesNextWord(word, specs)) index += 1
    else if (word !== "" && !word.startsWith("-")) operands.push({ word, index })
  }
  return operands
}

/** @param roots the top-level commands */
export const findCommand = (line: readonly string[], roots: readonly Command[]): FoundCommand => {
  const path: Command[] = []
  let words: readonly string[] = line
  for (;;) {
    const current = path.at(-1)
    const operands = operandsOf(words, flagsOf(current))
    const first = operands[0]
    const candidates = current === undefined ? roots : (current.children ?? [])
    const next = candidates.find((command) => command.name === first?.word)
    if (first === undefined || next === undefined) return { path, words, operands: operands.map(({ word }) => word) }
    path.push(next)
    words = words.toSpliced(first.index, 1)
  }
}
