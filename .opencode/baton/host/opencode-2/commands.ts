import type { Config, Hooks } from "@opencode-ai/plugin"
import type { Part } from "@opencode-ai/sdk"
import type { Context } from "./context.ts"

type Commands = NonNullable<Config["command"]>

/** The commands that there are, for a feature that takes a name which is free. */
export const readCommands = async (context: Context): Promise<Commands> => {
  const { data } = await context.command.list({})
  return Object.fromEntries(data.map(({ name }) => [name, { template: "" }]))
}

/** Takes what OpenCode 1 tells all plugins before a command's message is sent; they may change its parts. */
type Tell = (...given: Parameters<NonNullable<Hooks["command.execute.before"]>>) => Promise<void>

/** Adds commands whose template is sent as the user's message, as in OpenCode 1. The template is read at each use. */
export const addCommands = async (
  context: Context,
  commands: Commands,
  names: readonly string[],
  tell: Tell,
): Promise<void> => {
  if (names.length === 0) return
  await context.command.transform((draft) => {
    for (const name of names)
      draft.add({
        name,
        description: commands[name]?.description ?? "",
        execute: async ({ sessionID, prompt }) => {
          const given = prompt.text ?? ""
          const text = (commands[name]?.template ?? "").replaceAll("$ARGUMENTS", () => given)
          const part = { id: "prt_command", sessionID, messageID: "", type: "text" as const, text }
          const parts: Part[] = [part]
          await tell({ command: name, sessionID, arguments: given }, { parts })
          await context.session.prompt({ sessionID, text: part.text })
        },
      })
  })
}
