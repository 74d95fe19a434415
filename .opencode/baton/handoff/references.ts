import { fenceAfter } from "../task/parse.ts"

/** A range of a text, `end` not included. */
type Region = { readonly start: number; readonly end: number }

/** Indentation and list marks, behind which a fence may begin. */
const BEFORE_FENCE = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*/

/** The code spans of a line: from a run of backticks to the next run of the same length. */
const spansIn = (line: string): Region[] => {
  const runs = [...line.matchAll(/`+/g)].map(({ 0: run, index }) => ({ start: index, end: index + run.length }))
  const nextOfLength = new Map<number, number>()
  const closers = runs
    .toReversed()
    .map(({ start, end }, at) => {
      const closer = nextOfLength.get(end - start)
      nextOfLength.set(end - start, runs.length - 1 - at)
      return closer
    })
    .reverse()
  const spans: Region[] = []
  for (let at = 0; at < runs.length; at++) {
    const closer = closers[at]
    if (closer === undefined) continue
    spans.push({ start: runs[at]?.start ?? 0, end: runs[closer]?.end ?? 0 })
    at = closer
  }
  return spans
}

const scan = (text: string): { regions: Region[]; open: string } => {
  const regions: Region[] = []
  let open = ""
  let start = 0
  let fenceStart = 0
  for (const line of text.split("\n")) {
    const end = start + line.length
    const now = fenceAfter(line.replace(BEFORE_FENCE, ""), open)
    if (open === "" && now !== "") fenceStart = start
    else if (open !== "" && now === "") regions.push({ start: fenceStart, end })
    else if (open === "")
      for (const span of spansIn(line)) regions.push({ start: start + span.start, end: start + span.end })
    open = now
    start = end + 1
  }
  if (open !== "") regions.push({ start: fenceStart, end: text.length })
  return { regions, open }
}

/**
 * Finds the code of a Markdown text, in order: fences, of which an open one reaches to the end, and spans, which end with their line. Linear in
 * the length of the text.
 */
export const findCode = (text: string): Region[] =>
  text.includes("`") || text.includes("~~~") ? scan(text).regions : []

/** Closes the code fence that the text may have left open. */
export const closeFence = (text: string): string => {
  const { open } = scan(text)
  return open === "" ? text : `${text}\n${open}`
}

/** Lines of a file, counted from 1, both ends included; one line without `last`. */
export type LineRange = { readonly first: number; readonly last?: number }

/** A file that a text names with `@`. */
export type FileReference = {
  /** As written, not resolved; without the `@`, quotes, closing punctuation and line range. */
  readonly path: string
  readonly lines?: LineRange
}

/** A reference as it stands in a text. */
export type WrittenReference = FileReference & {
  /** All up to the next blank: the name may end earlier. Absent in quotes, which say where it ends. */
  readonly written?: string
}

/**
 * Before an `@`, letters and digits make an e-mail address, except in scripts without spaces between words, and slashes a part of a path
 * or an address.
 */
const JOINS = /[\p{L}\p{Mn}\p{Mc}\p{N}`/\\]$|[\p{L}\p{N}]_$/u
const SPACELESS =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{VS}]$/u

/** The end of a reference in prose. Two dots end a sentence, unless they belong to a path: `../a`, `[...slug].tsx`. */
const END_UNQUOTED = /[\s`,]|(?<![@./\\[(])\.(?=\.)/g
const BRACKETS = "()[]{}<>（）【】「」『』《》"
const PUNCTUATION = /[\p{P}\p{S}]/u
/** Signs that names end with. */
const IN_NAMES = new Set("/\\_-~+=#$%&^@")

const RANGE_BEHIND = /(?::(\d{1,9})(?:-(\d{1,9})|:\d{1,9})?|#L(\d{1,9})(?:-L?(\d{1,9}))?)$/
/** As people write it in a sentence: `:L10`, `:10–20`. */
const RANGE_AFTER = /^(?:[:：]L?(\d{1,9})(?:[-–—]L?(\d{1,9})|:\d{1,9})?|#L(\d{1,9})(?:[-–—]L?(\d{1,9}))?)/
const RANGE_AHEAD = /(?::(\d{1,9})(?:-(\d{1,9}))?|#L(\d{1,9})(?:-L?(\d{1,9}))?)/y

/** PATH_MAX of Linux. */
const MAX_PATH_CHARACTERS = 4_096
/** Far more than is ever loaded; it bounds a text that consists of references. */
const MAX_REFERENCES = 1_000
const MAX_READINGS = 10_000

const toRange = ([, colon, colonEnd, hash, hashEnd]: readonly (string | undefined)[]): LineRange | undefined => {
  const from = Number(colon ?? hash)
  const to = Number(colonEnd ?? hashEnd ?? from)
  const first = Math.min(from, to)
  if (first < 1) return undefined
  return (colonEnd ?? hashEnd) === undefined ? { first } : { first, last: Math.max(from, to) }
}

const toReference = (path: string, lines: LineRange | undefined): FileReference | undefined =>
  path === "" ? undefined : { path, ...(lines ? { lines } : {}) }

const openerOf = (closer: string): string | undefined =>
  BRACKETS.indexOf(closer) % 2 === 1 ? BRACKETS[BRACKETS.indexOf(closer) - 1] : undefined

/** Removes what belongs to the sentence: punctuation, and closing brackets without an opening one in the path. */
const trimSentence = (token: string): string => {
  const unopened = new Map<string, number>()
  let end = token.length
  for (; end > 0; end--) {
    const last = token[end - 1] ?? ""
    const opener = openerOf(last)
    if (opener !== undefined) {
      const count = unopened.get(last) ?? token.split(last).length - token.split(opener).length
      if (count <= 0) break
      unopened.set(last, count - 1)
    } else if (!PUNCTUATION.test(last) || IN_NAMES.has(last)) break
  }
  return token.slice(0, end)
}

/** `end`: the place from which the text is read on. */
type Reading = { readonly reference?: WrittenReference | undefined; readonly end: number }

/** The place of an `@` that begins another reference behind a name, as in `a.ts;@b.ts`. */
const nextStart = (written: string): number => {
  for (let at = written.indexOf("@", 1); at >= 0; at = written.indexOf("@", at + 1))
    if (isReferenceStart(written, at) && !IN_NAMES.has(written[at - 1] ?? "")) return at
  return written.length
}

const readUnquoted = (text: string, start: number): Reading => {
  // With the mark before it, which tells about the first sign.
  const near = text.slice(start - 1, start + MAX_PATH_CHARACTERS + 1)
  END_UNQUOTED.lastIndex = 1
  const written = near.slice(1, END_UNQUOTED.exec(near)?.index)
  const end = start + written.length
  const next = nextStart(written)
  if (next > MAX_PATH_CHARACTERS) {
    END_UNQUOTED.lastIndex = end
    return { end: END_UNQUOTED.exec(text)?.index ?? text.length }
  }
  const token = trimSentence(written.slice(0, next))
  const range = RANGE_BEHIND.exec(token)
  const lines = range ? toRange(range) : undefined
  const path = range && lines ? token.slice(0, range.index) : token
  const reference = toReference(path, lines)
  const after = next < written.length ? start + next : end
  return { end: after, reference: reference && { ...reference, written } }
}

/** Far more than the places in a sentence where a name may end. */
const MAX_SHORTER = 64
const LETTER = /[\p{L}\p{M}\p{N}]/u

/** For each place of a name: a dot behind a sign stands before it, in the same folder. */
const endingsIn = (written: string): boolean[] => {
  let isEnded = false
  return Array.from({ length: written.length }, (_, at) => {
    const [last = "", before = "/"] = [written[at - 1], written[at - 2]]
    isEnded = last !== "/" && (isEnded || (last === "." && before !== "/" && before !== "."))
    return isEnded
  })
}

/**
 * The names that a reference has if it ends earlier, the longest first: before a sign, or where the script changes to or from one without
 * spaces. A name without an ending does not end before a slash, a dot, a dash or an underscore.
 */
export const shorterReadings = (written: string): FileReference[] => {
  const readings: FileReference[] = []
  const isEnded = endingsIn(written)
  for (let at = written.length - 1; at > 0 && readings.length < MAX_SHORTER; at--) {
    // Two code units, since one may be half a character.
    const before = written.slice(Math.max(0, at - 2), at)
    const next = written[at] ?? ""
    if (before.endsWith("/") || /[\ud800-\udbff]$/.test(before)) continue
    if (/[._/\\-]/.test(next) && !isEnded[at]) continue
    const isScriptChange = SPACELESS.test(before) !== SPACELESS.test(next)
    if (LETTER.test(next) && !isScriptChange) continue
    const range = RANGE_AFTER.exec(written.slice(at, at + 40))
    const lines = range ? toRange(range) : undefined
    readings.push({ path: written.slice(0, at), ...(lines ? { lines } : {}) })
  }
  return readings
}

const ESCAPE = /\\(?:x([0-9a-f]{2})|([^\n]))/y
const ESCAPED: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" }

/** Reads from `start`, behind the opening quote. Without a closing quote on the same line there is no reference. */
const readQuoted = (text: string, start: number): Reading => {
  let path = ""
  for (let at = start; at < text.length && path.length <= MAX_PATH_CHARACTERS; at++) {
    const character = text[at] ?? ""
    if (character === "\n") break
    if (character === '"') {
      RANGE_AHEAD.lastIndex = at + 1
      const range = RANGE_AHEAD.exec(text)
      return { reference: toReference(path, range ? toRange(range) : undefined), end: RANGE_AHEAD.lastIndex || at + 1 }
    }
    ESCAPE.lastIndex = at
    const [sequence = character, hex, letter = ""] = character === "\\" ? (ESCAPE.exec(text) ?? []) : []
    if (hex !== undefined) path += String.fromCharCode(Number.parseInt(hex, 16))
    else path += letter === "" ? character : (ESCAPED[letter] ?? letter)
    at += sequence.length - 1
  }
  return { end: start }
}

const isReferenceStart = (text: string, at: number): boolean => {
  // Two code units, since one may be half a character.
  const before = text.slice(Math.max(0, at - 2), at)
  return !JOINS.test(before) || SPACELESS.test(before)
}

/**
 * Returns the files that a text names, in order, each spelling once.
 *
 * `@src/a.ts`, `@./a.ts:10-20`, `@src/a.ts#L10-L20`, `(@src/a.ts)`, `@"a file.ts":3`. Quoted, `\"`, `\\`, `\n` and `\x60` are
 * escapes. References in code spans and fences do not count, nor an `@` joined to a word (an e-mail address) or to a path. Linear in the
 * length of the text; stops after 1,000 references, or 10,000 with repetitions. Rules: docs/handoff.md.
 */
export const readReferences = (text: string): WrittenReference[] => {
  if (!text.includes("@")) return []
  const code = findCode(text)
  const found = new Map<string, WrittenReference>()
  let region = 0
  let readings = 0
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at)) {
    while ((code[region]?.end ?? Number.POSITIVE_INFINITY) <= at) region++
    const covering = code[region]
    if (covering && covering.start <= at) {
      at = covering.end
      continue
    }
    if (!isReferenceStart(text, at)) {
      at++
      continue
    }
    if (found.size === MAX_REFERENCES || readings++ === MAX_READINGS) break
    const { reference, end } = text[at + 1] === '"' ? readQuoted(text, at + 2) : readUnquoted(text, at + 1)
    if (reference) {
      const key = `${reference.path}\0${reference.lines?.first}-${reference.lines?.last}\0${reference.written ?? ""}`
      if (!found.has(key)) found.set(key, reference)
    }
    at = end
  }
  return [...found.values()]
}

/** The files that a text names, by the text alone: each name is taken to end with its word. */
export const parseReferences = (text: string): FileReference[] => {
  const named = readReferences(text).map(({ path, lines }) => ({ path, ...(lines ? { lines } : {}) }))
  return [...new Map(named.map((each) => [JSON.stringify(each), each])).values()]
}

const PLAIN_PATH = /^(?!.*[^./]\.\.)[\p{L}\p{N}_/.+=~-]*[\p{L}\p{N}_/+=~-]$/u
// Characters that cannot be in quotes on one line, and the backtick, which would turn the references behind it into code.
const UNQUOTABLE = /[\\"`\p{Cc}]/gu
const escapeCharacter = (character: string): string =>
  /["\\]/.test(character) ? `\\${character}` : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`

/** Renders a reference so that `parseReferences` reads it back, with any characters in the path. */
export const renderReference = ({ path, lines }: FileReference): string => {
  const range = lines ? `:${lines.first}${lines.last === undefined ? "" : `-${lines.last}`}` : ""
  return PLAIN_PATH.test(path) ? `@${path}${range}` : `@"${path.replaceAll(UNQUOTABLE, escapeCharacter)}"${range}`
}
