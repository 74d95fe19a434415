import type { Command } from "./command.ts"
import { conceptCommands } from "./commands/concepts.ts"
import { labelCommands } from "./commands/labels.ts"
import { learnCommands } from "./commands/learn.ts"
import { learningContextCommands } from "./commands/learnings-context.ts"
import { overviewCommands } from "./commands/overview.ts"
import { primeCommands } from "./commands/prime.ts"
import { statusChangeCommands } from "./commands/status-changes.ts"
import { taskDetailCommands } from "./commands/task-details.ts"
import { taskLinkCommands } from "./commands/task-links.ts"
import { taskListCommands } from "./commands/task-lists.ts"
import { taskTextCommands } from "./commands/task-text.ts"
import { taskCommands } from "./commands/tasks.ts"

/** Every command of the embedded ledger. */
export const COMMANDS: readonly Command[] = [
  ...taskCommands,
  ...taskListCommands,
  ...taskDetailCommands,
  ...overviewCommands,
  ...statusChangeCommands,
  ...taskTextCommands,
  ...taskLinkCommands,
  ...labelCommands,
  ...learnCommands,
  ...conceptCommands,
  ...learningContextCommands,
  ...primeCommands,
]

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
