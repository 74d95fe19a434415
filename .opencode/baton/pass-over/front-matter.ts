/** A value of the little YAML that front matter of skills and agents is made of. */
export type FrontMatterValue = string | boolean | { readonly [key: string]: FrontMatterValue }

export type Markdown = { readonly data: Readonly<Record<string, FrontMatterValue>>; readonly body: string }

const PAIR = /^( *)("[^"]*"|'[^']*'|[^\s"'#:][^:]*?)\s*:(?:\s+(.*?))?\s*$/
const IGNORED = /^\s*(?:#.*)?$/

const unquote = (text: string): string => /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text

const scalar = (text: string): FrontMatterValue => {
  if (text === "true" || text === "false") return text === "true"
  return /^["']/.test(text) ? unquote(text) : text.replace(/\s+#.*$/, "")
}

type Open = { readonly indent: number; readonly into: Record<string, FrontMatterValue> }

/**
 * Front matter between `---` lines, as maps of texts and booleans; the rest is the body.
 *
 * @returns undefined for a text without front matter, and for YAML beyond maps and one-line values
 */
export const parseFrontMatter = (text: string): Markdown | undefined => {
  const found = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---(?:\r?\n([\s\S]*))?$/.exec(text)
  if (!found) return undefined
  const data: Record<string, FrontMatterValue> = {}
  const open: Open[] = [{ indent: 0, into: data }]
  let parent: { readonly indent: number; readonly into: Record<string, FrontMatterValue> } | undefined
  for (const line of (found[1] ?? "").split(/\r?\n/)) {
    if (IGNORED.test(line)) continue
    const [matched, spaces = "", key = "", value] = PAIR.exec(line) ?? []
    if (matched === undefined || /^[>|&*![{]/.test(value ?? "")) return undefined
    const indent = spaces.length
    if (parent && indent > parent.indent) open.push({ indent, into: parent.into })
    parent = undefined
    while (open.length > 1 && (open.at(-1)?.indent ?? 0) > indent) open.pop()
    const level = open.at(-1)
    if (!level || level.indent !== indent) return undefined
    if (value === undefined || value === "") {
      const into = {}
      level.into[unquote(key)] = into
      parent = { indent, into }
    } else {
      level.into[unquote(key)] = scalar(value)
    }
  }
  return { data, body: (found[2] ?? "").trim() }
}
