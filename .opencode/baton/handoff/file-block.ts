import { cutText } from "../host/log.ts"
import type { LineRange } from "./reference.ts"

/** As OpenCode's Read tool reads when it is not told otherwise. */
export const MAX_LINES = 2_000
export const MAX_LINE_CHARACTERS = 2_000
const NUMBER_DIGITS = 5

/** Two texts that look to the model like a call of the Read tool and its answer. */
export type FileBlock = { readonly header: string; readonly content: string }

const cutLine = (line: string): string =>
  line.length > MAX_LINE_CHARACTERS ? `${cutText(line, MAX_LINE_CHARACTERS)}...` : line

/** A final line end closes the last line and opens none. */
const toLines = (text: string): string[] => {
  const lines = text.split(/\r\n|\r|\n/)
  if (lines.at(-1) === "") lines.pop()
  return lines
}

const CLOSING_TAG = /<(?=\/file)/gi

/**
 * @param absolutePath as the Read tool is given it
 * @param lines the part that was asked for; the whole file without it
 */
export const renderFileBlock = (file: {
  readonly absolutePath: string
  readonly text: string
  readonly encoding: string
  readonly lines?: LineRange
}): FileBlock => {
  const all = toLines(file.text)
  const first = file.lines?.first ?? 1
  const limit = file.lines ? Math.min((file.lines.last ?? first) - first + 1, MAX_LINES) : MAX_LINES
  const shown = all.slice(first - 1, first - 1 + limit)
  const last = first - 1 + shown.length
  const input = { filePath: file.absolutePath, ...(file.lines ? { offset: first, limit } : {}) }
  const numbered = shown.map((line, index) => `${String(first + index).padStart(NUMBER_DIGITS, "0")}| ${cutLine(line)}`)
  const body = numbered.join("\n")
  const escaped = body.replace(CLOSING_TAG, "<\\")
  const notes = [
    ...(escaped === body ? [] : ["(The closing tag of this block is shown as <\\/file where the file has it.)"]),
    ...(file.encoding === "UTF-8" ? [] : [`(Read as ${file.encoding}.)`]),
    first > all.length && all.length > 0
      ? `(The file has only ${all.length} lines.)`
      : last < all.length
        ? `(File has more lines. Use 'offset' parameter to read beyond line ${last})`
        : `(End of file - ${all.length} lines)`,
  ]
  return {
    header: `Called the Read tool with the following input: ${JSON.stringify(input)}`,
    content: ["<file>", ...(body === "" ? [] : [escaped]), ...notes, "</file>"].join("\n"),
  }
}
