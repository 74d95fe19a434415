import type { Command } from "./command.ts"

type CommandGroup = { readonly names: readonly string[]; load(): Promise<readonly Command[]> }

/** A file costs Bun half a millisecond to load, so a command line loads its own group and no other. */
const GROUPS: readonly CommandGroup[] = [
  {
    names: ["log", "append", "desc", "edit"],
    load: async () => (await import("./commands/task-text.ts")).taskTextCommands,
  },
  { names: ["show", "projects"], load: async () => (await import("./commands/task-details.ts")).taskDetailCommands },
  {
    names: ["start", "done", "open", "review", "cancel", "draft"],
    load: async () => (await import("./commands/status-changes.ts")).statusChangeCommands,
  },
  { names: ["init", "add", "delete"], load: async () => (await import("./commands/tasks.ts")).taskCommands },
  { names: ["list", "ready"], load: async () => (await import("./commands/task-lists.ts")).taskListCommands },
  { names: ["status", "graph"], load: async () => (await import("./commands/overview.ts")).overviewCommands },
  {
    names: ["parent", "blocks", "project", "label", "unlabel"],
    load: async () => (await import("./commands/task-links.ts")).taskLinkCommands,
  },
  { names: ["labels"], load: async () => (await import("./commands/labels.ts")).labelCommands },
  { names: ["learn"], load: async () => (await import("./commands/learn.ts")).learnCommands },
  { names: ["concepts"], load: async () => (await import("./commands/concepts.ts")).conceptCommands },
  {
    names: ["context"],
    load: async () => (await import("./commands/learnings-context.ts")).learningContextCommands,
  },
  { names: ["prime"], load: async () => (await import("./commands/prime.ts")).primeCommands },
]

/** Names of every command the embedded ledger has. */
export const COMMAND_NAMES: readonly string[] = GROUPS.flatMap(({ names }) => names)

/** The named command and its neighbours; nothing when there is no such command. */
export const loadCommandsNear = async (name: string): Promise<readonly Command[]> =>
  (await GROUPS.find(({ names }) => names.includes(name))?.load()) ?? []

export const loadAllCommands = async (): Promise<readonly Command[]> =>
  (await Promise.all(GROUPS.map((group) => group.load()))).flat()

/** Commands of prog that only a person at a terminal needs; the embedded ledger names them and says so. */
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
