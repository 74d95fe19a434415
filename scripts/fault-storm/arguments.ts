import { parseArgs } from "node:util"

export type StormArguments =
  | {
      readonly kind: "run"
      readonly runs: number
      /** Of the first run; the others follow it. */
      readonly seed: number
      readonly atOnce: number
      readonly keep: boolean
    }
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly reason: string }

const DEFAULTS = { runs: "200", seed: "1", "at-once": "2" }

const wholeNumber = (name: string, text: string, least: number): number => {
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw new Error(`--${name} takes a whole number from ${least} on, received '${text}'`)
  return Number(text)
}

/** Reads `[--runs N] [--seed N] [--at-once N] [--keep] [--help]`. */
export const parseArguments = (argv: readonly string[]): StormArguments => {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        runs: { type: "string", default: DEFAULTS.runs },
        seed: { type: "string", default: DEFAULTS.seed },
        "at-once": { type: "string", default: DEFAULTS["at-once"] },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    })
    if (values.help) return { kind: "help" }
    return {
      kind: "run",
      runs: wholeNumber("runs", values.runs, 1),
      seed: wholeNumber("seed", values.seed, 0),
      atOnce: wholeNumber("at-once", values["at-once"], 1),
      keep: values.keep,
    }
  } catch (error) {
    return { kind: "wrong", reason: error instanceof Error ? error.message : String(error) }
  }
}
