/**
 * SQLite's FTS5 for the memory store, as far as people use it: words, "phrases", prefixes*, AND, OR, NOT, parentheses,
 * `column:`; ranked by BM25. NEAR, ^ and sets of columns are refused. https://sqlite.org/fts5.html
 */
import { parseSearch, type SearchNode } from "./memory-search-query.ts"

type Texts = { readonly summary: string; readonly detail: string }
type Phrase = Extract<SearchNode, { kind: "phrase" }>

/** The unicode61 tokenizer: letters and digits, without case and diacritics. */
const searchTokens = (text: string): string[] =>
  text
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .match(/[\p{L}\p{N}\p{Co}]+/gu) ?? []

const COLUMNS = ["summary", "detail"] as const

const countIn = (tokens: readonly string[], phrase: Phrase): number => {
  const words = searchTokens(phrase.text)
  if (words.length === 0) return 0
  const fits = (at: number): boolean =>
    words.every((word, offset) => {
      const token = tokens[at + offset] ?? ""
      return phrase.prefix && offset === words.length - 1 ? token.startsWith(word) : token === word
    })
  return tokens.filter((_, at) => fits(at)).length
}

const occurrences = (texts: Texts, phrase: Phrase): number =>
  COLUMNS.filter((column) => phrase.column === undefined || phrase.column === column)
    .map((column) => countIn(searchTokens(texts[column]), phrase))
    .reduce((sum, count) => sum + count, 0)

const matches = (texts: Texts, node: SearchNode): boolean => {
  switch (node.kind) {
    case "phrase":
      return occurrences(texts, node) > 0
    case "and":
      return matches(texts, node.left) && matches(texts, node.right)
    case "or":
      return matches(texts, node.left) || matches(texts, node.right)
    case "not":
      return matches(texts, node.left) && !matches(texts, node.right)
  }
}

const phrasesOf = (node: SearchNode): Phrase[] =>
  node.kind === "phrase" ? [node] : [...phrasesOf(node.left), ...phrasesOf(node.right)]

const BM25_K1 = 1.2
const BM25_B = 0.75
const SMALLEST_WEIGHT = 1e-6

const sizeOf = (texts: Texts): number => COLUMNS.flatMap((column) => searchTokens(texts[column])).length

const scorer = (rows: readonly Texts[], phrases: readonly Phrase[]): ((texts: Texts) => number) => {
  const averageSize = rows.reduce((sum, row) => sum + sizeOf(row), 0) / Math.max(1, rows.length)
  const weights = phrases.map((phrase) => {
    const hits = rows.filter((row) => occurrences(row, phrase) > 0).length
    return Math.max(SMALLEST_WEIGHT, Math.log((rows.length - hits + 0.5) / (hits + 0.5)))
  })
  return (texts) => {
    const length = BM25_K1 * (1 - BM25_B + (BM25_B * sizeOf(texts)) / averageSize)
    return phrases
      .map((phrase, at) => {
        const count = occurrences(texts, phrase)
        return ((weights[at] ?? 0) * (count * (BM25_K1 + 1))) / (count + length)
      })
      .reduce((sum, score) => sum + score, 0)
  }
}

/**
 * The rows that match, the best first.
 * @throws StoreError in FTS5's words when the query does not parse
 */
export const searchTexts = <Row extends Texts>(rows: readonly Row[], query: string): Row[] => {
  const node = parseSearch(query)
  if (node === undefined) return []
  const score = scorer(rows, phrasesOf(node))
  return rows.filter((row) => matches(row, node)).toSorted((left, right) => score(right) - score(left))
}
