export type JSONPath = readonly (string | number)[]

export type LocatedJSON =
  | {
      readonly kind: "value"
      readonly value: unknown
      /** The line, from 1, on which what stands at a path begins; that of the nearest thing around it when it is not there. */
      readonly lineOf: (path: JSONPath) => number
    }
  | { readonly kind: "malformed"; readonly line: number; readonly reason: string }

/** Deeper than any settings; a file that is nested deeper is refused rather than followed. */
const MAX_DEPTH = 64
const SHOWN_CHARACTERS = 20
/** The pieces of JSON, each where the last one ended (RFC 8259); what a text may hold, `JSON.parse` knows. */
const BLANK = /[ \t\r\n]*/y
const TEXT = /"(?:[^"\\\n\r]|\\.)*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y

class Malformed extends Error {
  readonly at: number
  constructor(at: number, reason: string) {
    super(reason)
    this.at = at
  }
}

const keyOf = (path: JSONPath): string => JSON.stringify(path)

const parse = (text: string, starts: Map<string, number>): unknown => {
  let at = 0

  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const [found] = pattern.exec(text) ?? []
    at += found?.length ?? 0
    return found
  }
  const skipBlanks = (): void => void take(BLANK)
  const shown = (): string =>
    at >= text.length ? "the end of the file" : JSON.stringify(text.slice(at, at + SHOWN_CHARACTERS))
  const refuse = (expected: string): never => {
    throw new Malformed(at, `expected ${expected}, received ${shown()}`)
  }
  /** @returns whether it goes on */
  const takeSeparator = (end: string): boolean => {
    skipBlanks()
    if (text[at] !== "," && text[at] !== end) return refuse(`"," or "${end}"`)
    return text[at++] === ","
  }
  const takeText = (): string | undefined => {
    const start = at
    const quoted = take(TEXT)
    if (quoted === undefined) return undefined
    try {
      return JSON.parse(quoted) as string
    } catch {
      throw new Malformed(start, `expected a text as JSON has it, received ${quoted.slice(0, SHOWN_CHARACTERS)}`)
    }
  }
  const isEmpty = (end: string): boolean => {
    skipBlanks()
    if (text[at] !== end) return false
    at++
    return true
  }

  const readObject = (path: JSONPath): Record<string, unknown> => {
    const entries = new Map<string, unknown>()
    if (isEmpty("}")) return {}
    do {
      skipBlanks()
      const start = at
      const key = takeText() ?? refuse("a key in double quotes")
      if (entries.has(key)) throw new Malformed(start, `the key ${JSON.stringify(key)} is there twice`)
      starts.set(keyOf([...path, key]), start)
      skipBlanks()
      if (text[at] !== ":") refuse('":"')
      at++
      entries.set(key, readValue([...path, key]))
    } while (takeSeparator("}"))
    // A key such as __proto__ is a key like any other.
    return Object.fromEntries(entries)
  }

  const readArray = (path: JSONPath): unknown[] => {
    const values: unknown[] = []
    if (isEmpty("]")) return values
    do values.push(readValue([...path, values.length]))
    while (takeSeparator("]"))
    return values
  }

  const readValue = (path: JSONPath): unknown => {
    if (path.length > MAX_DEPTH) throw new Malformed(at, `it is nested more than ${MAX_DEPTH} deep`)
    skipBlanks()
    if (!starts.has(keyOf(path))) starts.set(keyOf(path), at)
    if (text[at] === "{") {
      at++
      return readObject(path)
    }
    if (text[at] === "[") {
      at++
      return readArray(path)
    }
    const plain = take(NUMBER) ?? take(WORD)
    return plain === undefined ? (takeText() ?? refuse("a value")) : JSON.parse(plain)
  }

  const value = readValue([])
  skipBlanks()
  if (at < text.length) refuse("the end of the file")
  return value
}

/**
 * Parses JSON and knows where each thing stands, which `JSON.parse` does not tell, and on Bun not even for its errors.
 * Stricter in one point: a key that is there twice is refused, since the last one would win unseen.
 */
export const parseLocatedJSON = (text: string): LocatedJSON => {
  const lineAt = (offset: number): number => text.slice(0, offset).split("\n").length
  const starts = new Map<string, number>()
  try {
    const value = parse(text, starts)
    const lineOf = (path: JSONPath): number => {
      for (let length = path.length; length > 0; length--) {
        const start = starts.get(keyOf(path.slice(0, length)))
        if (start !== undefined) return lineAt(start)
      }
      return lineAt(starts.get(keyOf([])) ?? 0)
    }
    return { kind: "value", value, lineOf }
  } catch (error) {
    if (error instanceof Malformed) return { kind: "malformed", line: lineAt(error.at), reason: error.message }
    throw error
  }
}
