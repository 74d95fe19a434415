/** The parts of /task and of the tools for agents without a shell that OpenCode needs at its start. */
import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import { disableTools } from "../host/messages.ts"
import { ARGUMENT_TYPES, validated } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { CompactionFeature } from "./feature.ts"

/** The second is for a project or a user that already has a command named task. */
const COMMANDS = ["task", "baton-task"] as const
const COMMAND_DESCRIPTION = "this session's task [ts-… | WORD | new TITLE | queue | done | off]"
/** Replaced before the message is sent. */
const COMMAND_TEMPLATE = `/task $ARGUMENTS

(Baton did not carry this out in time. Tell the user so, and do nothing else.)`

const SHOW_TOOL = "task_show"
const LOG_TOOL = "task_log"

const SHOW_DESCRIPTION =
  "Shows this session's task as it is now in the ledger: title, status, definition of done, specification, handoffs and log. In place of `prog show`, as you have no shell."
const LOG_DESCRIPTION =
  "Appends a line to the log of this session's task: a step that is done, a decision, a checkpoint, what blocks. In place of `prog log`, as you have no shell."

/** @returns the command's name; undefined when both are taken */
export const registerCommand = (config: Config, log: Log): string | undefined => {
  config.command ??= {}
  const { command } = config
  const name = COMMANDS.find((each) => command[each] === undefined)
  if (name === undefined) log.warn("neither /task nor /baton-task is registered: both names are taken")
  else command[name] = { description: COMMAND_DESCRIPTION, template: COMMAND_TEMPLATE }
  return name
}

export const createTools = (
  load: () => Promise<Pick<CompactionFeature, "showTask" | "logToTask">>,
): Record<string, ToolDefinition> => ({
  [SHOW_TOOL]: {
    description: SHOW_DESCRIPTION,
    args: {},
    execute: async (_args, { sessionID }) => (await load()).showTask(sessionID),
  },
  [LOG_TOOL]: {
    description: LOG_DESCRIPTION,
    args: { message: ARGUMENT_TYPES.string("The line") },
    execute: validated(
      (z) => z.object({ message: z.string().min(1) }),
      async ({ message }, { sessionID }) => (await load()).logToTask(sessionID, message),
    ),
  },
})

/** Leaves the tools out of a request. */
export const hideTools = (messages: readonly StoredMessage[]): void => disableTools(messages, [SHOW_TOOL, LOG_TOOL])
