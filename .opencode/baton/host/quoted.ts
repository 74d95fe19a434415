import { escapeCharacter, shorten } from "./text.ts"

/**
 * A text that neither the user nor Baton wrote: from the ledger, a file's name, another session. No string, so that it reaches a
 * model or a person only through `quoted` or a fence.
 */
export type Untrusted = { readonly untrusted: string }

export const untrusted = (text: string): Untrusted => ({ untrusted: text })

/** Characters that begin a line, reorder one or steer a terminal. JSON.stringify escapes only the first 32 of them. */
const UNSAFE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const BREAKS = /[\p{Cc}\s]+/gu
const PLAIN = /^[\p{L}\p{M}\p{N}._/@+~#=-]+$/u

const DEFAULT_CHARACTERS = 300

const shown = (value: Untrusted | string, characters: number): string =>
  shorten(typeof value === "string" ? value : value.untrusted, characters)

/** Gives a value in one line for a person: without quotes, its breaks as blanks. */
export const oneLine = (value: Untrusted | string, characters = DEFAULT_CHARACTERS): string =>
  shown(value, characters).replaceAll(BREAKS, " ").replaceAll(UNSAFE, "").trim()

/** Gives a value in one line for a model: as it is where it is a plain name or path, else in quotes, with escapes. */
export const quoted = (value: Untrusted | string, characters = DEFAULT_CHARACTERS): string => {
  const text = shown(value, characters)
  if (PLAIN.test(text)) return text
  return JSON.stringify(text).replaceAll(UNSAFE, escapeCharacter)
}
