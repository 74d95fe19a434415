/** A stretch of a text, `end` not included. */
export type Region = { readonly start: number; readonly end: number }

/** `indent` is the column at which the text of the list item around the fence begins, 0 outside lists. */
type Fence = { readonly start: number; readonly mark: string; readonly indent: number }

/** How every line begins that is more than the text of a paragraph. */
const SPECIAL = new Set("-*+#`~0123456789")
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/s
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/
/** Marks of nested lists may follow one another on a line. */
const LIST_MARKS = /^(?: *(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)){1,8}/
const TAB_COLUMNS = 4

/** What follows three backticks on their line may be a language, but no more backticks: that is a code span. */
const openedBy = (line: string): string | undefined => {
  const found = FENCE.exec(line)
  return found?.[1]?.startsWith("`") && found[2]?.includes("`") ? undefined : found?.[1]
}

const MAX_FENCE_INDENT = 3
const MIN_FENCE_MARKS = 3

/** The run of marks that a line begins with, told without a pattern: hostile texts consist of them. */
const readMarks = (text: string, { start, end }: Region): { mark: string; rest: string } => {
  let at = start
  while (at < end && text[at] === text[start]) at++
  return { mark: text.slice(start, at), rest: text.slice(at, end) }
}

const isEscaped = (text: string, at: number): boolean => {
  let backslashes = 0
  while (text[at - 1 - backslashes] === "\\") backslashes++
  return backslashes % 2 === 1
}

/** Code spans of one paragraph: a run of backticks up to the next run of the same length. */
const addSpans = (regions: Region[], text: string, { start, end }: Region): void => {
  const paragraph = text.slice(start, end)
  // Two lists of numbers, since objects would triple the time for a text of backticks.
  const starts: number[] = []
  const ends: number[] = []
  for (let at = paragraph.indexOf("`"); at >= 0; at = paragraph.indexOf("`", at)) {
    starts.push(at)
    while (paragraph[at] === "`") at++
    ends.push(at)
  }
  const closers = new Int32Array(starts.length)
  const nextOfLength = new Map<number, number>()
  for (let run = starts.length - 1; run >= 0; run--) {
    const from = starts[run] ?? 0
    const length = (ends[run] ?? 0) - from
    // A backslash takes the first backtick off a run that would open a span; inside a span it means nothing.
    closers[run] = nextOfLength.get(isEscaped(paragraph, from) ? length - 1 : length) ?? -1
    nextOfLength.set(length, run)
  }
  for (let run = 0; run < starts.length; run++) {
    const closer = closers[run] ?? -1
    if (closer < 0) continue
    regions.push({ start: start + (starts[run] ?? 0), end: start + (ends[closer] ?? 0) })
    run = closer
  }
}

/** Where the first character of a line stands that is no blank; `at` is the line's end for a line without one. */
const findFirst = (text: string, { start, end }: Region): { at: number; column: number } => {
  let column = 0
  for (let at = start; at < end; at++) {
    const character = text[at]
    if (character !== " " && character !== "\t" && character !== "\r") return { at, column }
    column += character === "\t" ? TAB_COLUMNS : 1
  }
  return { at: end, column }
}

const scan = (text: string): { regions: Region[]; open: Fence | undefined } => {
  const regions: Region[] = []
  let fence: Fence | undefined
  let paragraph: Region | undefined
  let indent = 0
  const endParagraph = (): void => {
    if (paragraph) addSpans(regions, text, paragraph)
    paragraph = undefined
  }
  const endFence = (end: number): void => {
    if (fence) regions.push({ start: fence.start, end })
    fence = undefined
  }
  for (let start = 0, end = 0; start <= text.length; start = end + 1) {
    const newline = text.indexOf("\n", start)
    end = newline < 0 ? text.length : newline
    const { at, column } = findFirst(text, { start, end })
    if (at === end) {
      endParagraph()
      continue
    }
    // A fence ends with the list item that it stands in.
    if (fence && column < fence.indent) endFence(start)
    if (!fence) indent = Math.min(indent, column)
    if (!SPECIAL.has(text[at] ?? "")) {
      if (!fence) paragraph = { start: paragraph?.start ?? start, end }
      continue
    }
    if (text[at] === "`" || text[at] === "~") {
      const { mark, rest } = readMarks(text, { start: at, end })
      const isFence = mark.length >= MIN_FENCE_MARKS && column - indent <= MAX_FENCE_INDENT
      if (fence) {
        if (isFence && mark.startsWith(fence.mark) && rest.trim() === "") endFence(end)
      } else if (isFence && !(mark.startsWith("`") && rest.includes("`"))) {
        endParagraph()
        fence = { start, mark, indent }
      } else {
        paragraph = { start: paragraph?.start ?? start, end }
      }
      continue
    }
    if (fence) continue
    /** The line from where its list item's text begins. */
    const content = " ".repeat(column - indent) + text.slice(at, end)
    const marks = LIST_MARKS.exec(content)?.[0].length ?? 0
    indent += marks
    const mark = openedBy(content.slice(marks))
    const isHeading = mark === undefined && HEADING.test(content.slice(marks))
    if (marks > 0 || mark !== undefined || isHeading) endParagraph()
    if (mark !== undefined) fence = { start, mark, indent }
    else paragraph = { start: paragraph?.start ?? start, end }
    if (isHeading) endParagraph()
  }
  endParagraph()
  return { regions, open: fence }
}

const mayHaveCode = (text: string): boolean => text.includes("`") || text.includes("~~~")

/**
 * The code fences and code spans of a Markdown text, in order, as CommonMark has them: a fence that is not closed
 * reaches to the end of its list item or of the text, a span ends with its paragraph. Linear in the length of the text.
 */
export const findCode = (text: string): Region[] => {
  if (!mayHaveCode(text)) return []
  const { regions, open } = scan(text)
  return open ? [...regions, { start: open.start, end: text.length }] : regions
}

/** The text, with the code fence closed that it may have left open. */
export const closeFence = (text: string): string => {
  const { open } = scan(text)
  return open ? `${text}\n${" ".repeat(open.indent)}${open.mark}` : text
}
