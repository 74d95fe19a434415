import { parseArgs } from "node:util"

export type Request =
  | {
      readonly action: "list" | "export"
      readonly directory: string | undefined
      readonly json: boolean
      readonly all: boolean
    }
  | { readonly action: "show"; readonly id: string; readonly directory: string | undefined; readonly json: boolean }
  | {
      readonly action: "forget"
      readonly id: string
      readonly reason: string
      readonly directory: string | undefined
      readonly json: boolean
    }

/** Reads `[list | show ID | forget ID | export] [DIR] [OPTIONS]`. @throws Error for anything else, in words for a person */
export const readArguments = (args: readonly string[]): Request => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      all: { type: "boolean", default: false },
      reason: { type: "string", default: "" },
    },
  })
  const { json, all, reason } = values
  const [action = "list", ...rest] = positionals
  const checked = (words: readonly string[]): string | undefined => {
    if (words.length > 1) throw new Error(`expected one project folder, received ${words.length}`)
    return words[0]
  }
  if (action === "list" || action === "export") return { action, directory: checked(rest), json, all }
  if (action !== "show" && action !== "forget")
    throw new Error(`expected list, show, forget or export, received '${action}'`)
  const [id, ...folders] = rest
  if (id === undefined) throw new Error(`${action} needs the id of a learning; baton learned lists them`)
  const directory = checked(folders)
  if (action === "show") return { action, id, directory, json }
  if (reason.trim() === "") throw new Error("forget needs --reason: why it is wrong or no longer true")
  return { action, id, reason, directory, json }
}
