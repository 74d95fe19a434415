/** FTS5's query language, as far as memory-search.ts needs it. Pure. */
import { type StoreError, storeError } from "../../../.opencode/baton/ledger/embedded/store-error.ts"

export type SearchNode =
  | { readonly kind: "phrase"; readonly text: string; readonly prefix: boolean; readonly column: string | undefined }
  | { readonly kind: "and" | "or" | "not"; readonly left: SearchNode; readonly right: SearchNode }

type Token = { readonly kind: "word" | "string" | "sign" | "end"; readonly text: string }

const SQL_ERROR = 1
const TOKEN = /\s*(?:"((?:[^"]|"")*)"|([A-Za-z0-9_\u0080-\u{10ffff}]+)|([():*+,{}^-]))/uy

const failure = (detail: string): StoreError => storeError(detail, SQL_ERROR)
const syntaxError = (near: string): StoreError => failure(`fts5: syntax error near "${near}"`)

const tokenize = (query: string): Token[] => {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  while (query.slice(TOKEN.lastIndex).trim() !== "") {
    const rest = query.slice(TOKEN.lastIndex).trimStart()
    const match = TOKEN.exec(query)
    if (match === null) throw rest.startsWith('"') ? failure("unterminated string") : syntaxError(rest.slice(0, 1))
    const [, quoted, word, sign] = match
    if (quoted !== undefined) tokens.push({ kind: "string", text: quoted.replaceAll('""', '"') })
    else if (word !== undefined) tokens.push({ kind: "word", text: word })
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign })
  }
  return tokens
}

const COLUMNS = ["summary", "detail"]
const OPERATORS = ["AND", "OR", "NOT"]
const END: Token = { kind: "end", text: "" }

/** OR binds least, then AND, then NOT; words side by side are joined by AND before everything else. */
class Parser {
  readonly tokens: Token[]

  constructor(query: string) {
    this.tokens = tokenize(query)
  }

  private peek(ahead = 0): Token {
    return this.tokens[ahead] ?? END
  }

  private isOperator(name: string): boolean {
    return this.peek().kind === "word" && this.peek().text === name
  }

  private take(sign: string): boolean {
    if (this.peek().kind !== "sign" || this.peek().text !== sign) return false
    this.tokens.shift()
    return true
  }

  private binary(name: string, kind: "and" | "or" | "not", operand: () => SearchNode): SearchNode {
    let left = operand()
    while (this.isOperator(name)) {
      this.tokens.shift()
      left = { kind, left, right: operand() }
    }
    return left
  }

  private readonly group = (): SearchNode => {
    let left = this.factor()
    while (this.startsFactor()) left = { kind: "and", left, right: this.factor() }
    return left
  }

  private startsFactor(): boolean {
    const { kind, text } = this.peek()
    if (kind === "sign") return text === "(" || text === "-"
    return kind === "string" || (kind === "word" && !OPERATORS.includes(text))
  }

  private factor(): SearchNode {
    if (this.take("(")) {
      const inner = this.expression()
      if (!this.take(")")) throw syntaxError(this.peek().text)
      return inner
    }
    const column = this.columnFilter()
    const phrase = this.peek()
    if (!this.startsFactor() || phrase.kind === "sign") throw syntaxError(phrase.text)
    this.tokens.shift()
    return { kind: "phrase", text: phrase.text, prefix: this.take("*"), column }
  }

  private columnFilter(): string | undefined {
    const excluded = this.take("-")
    const name = this.peek()
    const isFilter = this.peek(1).kind === "sign" && this.peek(1).text === ":"
    if (!isFilter && !excluded) return undefined
    if (!COLUMNS.includes(name.text.toLowerCase())) throw failure(`no such column: ${name.text}`)
    if (!isFilter) throw syntaxError(this.peek(1).text)
    this.tokens.splice(0, 2)
    const other = COLUMNS.find((column) => column !== name.text.toLowerCase())
    return excluded ? other : name.text.toLowerCase()
  }

  readonly expression = (): SearchNode =>
    this.binary("OR", "or", () => this.binary("AND", "and", () => this.binary("NOT", "not", this.group)))
}

/**
 * The query as a tree; nothing for an empty query.
 * @throws StoreError in FTS5's words: `SQL logic error: fts5: syntax error near "'" (1)`
 */
export const parseSearch = (query: string): SearchNode | undefined => {
  const parser = new Parser(query)
  if (parser.tokens.length === 0) return undefined
  const node = parser.expression()
  const [left] = parser.tokens
  if (left !== undefined) throw syntaxError(left.text)
  return node
}
