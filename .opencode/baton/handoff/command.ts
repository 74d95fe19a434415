import type { Config } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import type { PromptFile, PromptFiles } from "../task/prompts.ts"
import { BUILT_IN_COMMAND } from "./built-in-command.ts"

const COMMAND_NAME = "handoff"
/** For a project or a user with a command of their own by the first name. */
const OTHER_COMMAND_NAME = "baton-handoff"

const DESCRIPTION = "continue this work in a new session, with the right context and files [goal]"

/**
 * Registers /handoff, unless there is such a command already: then /baton-handoff.
 *
 * OpenCode reads `template` anew at each use (seen on 1.2.15 and 1.18.33), so that an edit of the file counts at once.
 */
export const registerCommand = (config: Config, prompts: Pick<PromptFiles, "readNow">, log: Log): void => {
  config.command ??= {}
  const name = config.command[COMMAND_NAME] === undefined ? COMMAND_NAME : OTHER_COMMAND_NAME
  if (config.command[name] !== undefined) {
    log.warn("neither /handoff nor /baton-handoff is registered: both names are taken")
    return
  }
  if (name !== COMMAND_NAME) log.info("there is a command named handoff already: /baton-handoff is registered instead")
  const tell = (file: Exclude<PromptFile, { kind: "text" }>): void => {
    if (file.kind === "foreign") log.info(`${file.path} is the project's own (no contract comment): built-in text used`)
    else log.warn("handoff command prompt unusable: built-in text used", { path: file.path, reason: file.reason })
  }
  let told: string | undefined
  config.command[name] = {
    description: DESCRIPTION,
    get template() {
      const file = prompts.readNow("handoff-command")
      if (file.kind === "text") {
        told = undefined
        return file.text
      }
      // OpenCode asks at each listing of the commands too; once is enough.
      const reason = file.kind === "foreign" ? "foreign" : file.reason
      if (told !== reason) tell(file)
      told = reason
      return BUILT_IN_COMMAND
    },
  }
}
