import type { Config, Hooks } from "@opencode-ai/plugin"
import type { Part } from "@opencode-ai/sdk"
import type { CommandOutput } from "../port.ts"
import { sharedMap } from "../shared.ts"
import type { Attached, Context } from "./context.ts"

type Commands = NonNullable<Config["command"]>

/** The commands of all copies of the bundle. Of two with one name OpenCode takes that of the copy which is set up last: the project's. */
const own = sharedMap<true>("opencode-2-commands")

const keyOf = ({ location }: Context, name: string): string => `${location.directory}\n${name}`

/** The commands that are not Baton's, for a feature that takes a name which is free. */
export const readCommands = async (context: Context): Promise<Commands> => {
  const { data } = await context.command.list({})
  const others = data.filter(({ name }) => !own.has(keyOf(context, name)))
  return Object.fromEntries(others.map(({ name }) => [name, { template: "" }]))
}

/** Takes what OpenCode 1 tells all plugins before a command's message is sent; they may change its parts, or answer it. */
type Tell = (...given: Parameters<NonNullable<Hooks["command.execute.before"]>>) => Promise<void>

/** Shows an answer as a lasting line, for which no model is asked; the model reads it with the user's next message. */
const showAnswer = (context: Context, sessionID: string, typed: string, answer: string): Promise<unknown> =>
  context.session.synthetic({
    sessionID,
    text: `The user typed ${typed}, and Baton answered:\n\n${answer}`,
    description: `${typed}\n${answer}`,
    resume: false,
  })

const withoutMention = (attached: object): object =>
  Object.fromEntries(Object.entries(attached).filter(([key]) => key !== "mention"))

/** Drops the places in what was typed: the text that is sent has others. */
const withoutPlaces = ({ files, agents, skills }: Attached): Attached =>
  Object.fromEntries(
    Object.entries({ files, agents, skills }).flatMap(([kind, list]) =>
      list ? [[kind, list.map(withoutMention)]] : [],
    ),
  )

/**
 * Adds commands whose template is sent as the user's message, as in OpenCode 1. The template is read at each use.
 *
 * @returns to be called when OpenCode takes them away
 */
export const addCommands = async (
  context: Context,
  commands: Commands,
  names: readonly string[],
  tell: Tell,
): Promise<() => void> => {
  const forget = (): void => {
    for (const name of names) own.delete(keyOf(context, name))
  }
  if (names.length === 0) return forget
  for (const name of names) own.set(keyOf(context, name), true)
  await context.command.transform((draft) => {
    for (const name of names)
      draft.add({
        name,
        description: commands[name]?.description ?? "",
        execute: async ({ sessionID, prompt, delivery }) => {
          const given = prompt.text ?? ""
          const text = (commands[name]?.template ?? "").replaceAll("$ARGUMENTS", () => given)
          const part = { id: "prt_command", sessionID, messageID: "", type: "text" as const, text }
          const parts: Part[] = [part]
          const output: CommandOutput = { parts }
          await tell({ command: name, sessionID, arguments: given }, output)
          if (output.answer === undefined)
            await context.session.prompt({
              ...withoutPlaces(prompt),
              sessionID,
              text: part.text,
              ...(delivery === undefined ? {} : { delivery }),
            })
          else await showAnswer(context, sessionID, `/${name} ${given}`.trim(), output.answer)
        },
      })
  })
  return forget
}
