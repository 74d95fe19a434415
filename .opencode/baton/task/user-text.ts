/** The least a message part must have for its text to be judged. OpenCode's `Part` fits. */
export type TextPartLike = {
  readonly type: string
  readonly text?: string | undefined
  readonly synthetic?: boolean | undefined
  readonly ignored?: boolean | undefined
}

/**
 * What the user wrote in one message: its text parts, one below the other, without those that OpenCode or a plugin
 * added (`synthetic`) and those the model never sees (`ignored`). Empty when there are none.
 *
 * Pass the parts of a user message only: an assistant's text parts look the same.
 */
export const collectUserText = (parts: readonly TextPartLike[]): string =>
  parts
    .filter((part) => part.type === "text" && part.synthetic !== true && part.ignored !== true)
    .map((part) => part.text ?? "")
    .join("\n")

/** `opencode run "a b"` sends an argument with a blank in it as `"a b"`; a byte order mark comes with `$(cat file)`. */
const OPENING = /^\uFEFF?"?\uFEFF?/

/** A command's arguments without the quotes that `opencode run` puts around one that has a blank in it. */
export const unquoteArgument = (text: string): string => {
  const [, inner] = /^"((?:\\"|[^"])*)"$/s.exec(text.trim()) ?? []
  return inner === undefined ? text : inner.replaceAll('\\"', '"')
}

/** The lines of a text, whatever their line end: LF, CRLF or CR. */
export const splitLines = (text: string): string[] => text.split(/\r\n|\r|\n/)

/**
 * The lines of a user's text without the quote that `opencode run` puts in front of the first. The quote it puts at
 * the end stays, since it can end any line (stdin follows on the next).
 */
export const userLines = (text: string): string[] => splitLines(text.replace(OPENING, ""))

/** A line without trailing blanks and without the quote with which `opencode run` closes its argument. */
export const trimLineEnd = (line: string): string => {
  const trimmed = line.trimEnd()
  return trimmed.endsWith('"') ? trimmed.slice(0, -1).trimEnd() : trimmed
}
