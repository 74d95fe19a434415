import type { WriterCommand } from "./stream-writer.ts"

/** A JSON array of program and arguments; it comes before the settings. */
export const WRITER_VARIABLE = "BATON_STATE_WRITER"

export type ChosenWriter =
  | { readonly kind: "foreign" | "embedded"; readonly command: WriterCommand }
  | { readonly kind: "none"; readonly reason: string }

const parseArgv = (text: string): readonly [string, ...string[]] | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value) || !value.every((each): each is string => typeof each === "string")) return undefined
    const [program, ...args] = value
    return program ? [program, ...args] : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/**
 * Which program keeps the statefile: the variable's, the settings', c2c where it is on PATH, else the embedded one on
 * OpenCode's own binary, so that no Bun is needed.
 */
export const chooseWriter = ({
  variable,
  setting,
  c2c,
  runtime,
  script,
  directory,
}: {
  variable: string | undefined
  setting: readonly string[] | undefined
  /** Absolute path of c2c on PATH. */
  c2c: string | undefined
  /** OpenCode's binary where it can act as Bun; undefined on Desktop. */
  runtime: string | undefined
  /** Absolute path of state-writer.ts. */
  script: string
  /** The folder whose `.opencode/state/live` the statefile goes to. */
  directory: string
}): ChosenWriter => {
  if (variable) {
    const argv = parseArgv(variable)
    if (argv) return { kind: "foreign", command: { argv } }
    const expected = `expected a JSON array of program and arguments, received ${JSON.stringify(variable.slice(0, 80))}`
    return { kind: "none", reason: `${WRITER_VARIABLE}: ${expected}` }
  }
  const [program, ...args] = setting ?? []
  if (program !== undefined) return { kind: "foreign", command: { argv: [program, ...args] } }
  if (c2c !== undefined) return { kind: "foreign", command: { argv: [c2c, "oc-plugin", "stream-write-statefile"] } }
  if (runtime === undefined) return { kind: "none", reason: "this host has no runtime for the embedded state writer" }
  const argv = [runtime, "--no-env-file", "--config=/dev/null", "run", "--no-install", script, directory] as const
  const env = { BUN_BE_BUN: "1", BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0", DO_NOT_TRACK: "1" }
  return { kind: "embedded", command: { argv, env } }
}
