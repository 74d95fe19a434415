import { stat } from "node:fs/promises"
import { resolve } from "node:path"
import { splitLines } from "../host/messages.ts"
import { type ProjectFile, readProjectFile } from "../host/project-file.ts"
import { cutText } from "../host/text.ts"
import { type FileReference, type LineRange, shorterReadings, type WrittenReference } from "./references.ts"

/** The defaults of OpenCode's Read tool. */
export const MAX_LINES = 2_000
export const MAX_LINE_CHARACTERS = 2_000
const NUMBER_DIGITS = 5

/** Two texts that look to the model like a call of the Read tool and its answer. */
type FileBlock = { readonly header: string; readonly content: string }

const cutLine = (line: string): string =>
  line.length > MAX_LINE_CHARACTERS ? `${cutText(line, MAX_LINE_CHARACTERS)}...` : line

/** A final line end adds no empty line. */
const toLines = (text: string): string[] => {
  const lines = splitLines(text)
  if (lines.at(-1) === "") lines.pop()
  return lines
}

const CLOSING_TAG = /<(?=\/file)/gi

/**
 * @param absolutePath in the form the Read tool takes
 * @param lines the requested part; the whole file without it
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

/** Files opened per file that may be loaded: a message may name a thousand that are too large or not text. */
const OPENED_PER_FILE = 4

export type LoadedFiles = {
  readonly blocks: readonly FileBlock[]
  /** The loaded files, in order, each file and range once. */
  readonly references: readonly FileReference[]
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[]
}

/** Endings of names that are files of a project, and of few other things. */
const FILE_ENDING = new RegExp(
  `\\.(?:${[
    "[cm]?[jt]sx?|json[c5l]?|mdx?|txt|rst|adoc|tex|pyi?|ipynb|rb|erb|go|rs|java|kts?|scala|swift|[ch]|cc|cpp|cxx|hh|hpp|cs|fs|vb",
    "php|p[lm]|lua|exs?|erl|hs|ml|clj[cs]?|dart|zig|nim|sh|bash|zsh|fish|ps1|bat|cmd|sql|graphql|gql|proto|s?css|sass|less",
    "html?|vue|svelte|astro|xml|svg|ya?ml|toml|ini|cfg|conf|properties|gradle|lock|csv|tsv|log|tf|tfvars|hcl|nix|cmake|mk|diff|patch",
  ].join("|")})$`,
  "i",
)
/** `lodash@4.17.21`, `types/node@latest` */
const VERSIONED = /[^/]@(?:[\d^~*]|latest\b|next\b)/

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    // Nothing there, or it may not be looked at.
    return false
  }
}

/**
 * Decorators, packages, scopes and people are named with an `@`, too. A name without quotes is meant as a file if it has a file's ending, or
 * its first folder exists.
 */
const isMeantAsFile = async (base: string, { path, written }: WrittenReference): Promise<boolean> => {
  if (written === undefined || /^\.{1,2}\//.test(path)) return true
  if (VERSIONED.test(path)) return false
  const [, root = "", folder] = /^(\/?)([^/]+)\//.exec(path) ?? []
  if (folder === undefined || root !== "") {
    if (!FILE_ENDING.test(path)) return false
    if (folder === undefined) return true
  }
  return await isFolder(resolve(base, `${root}${folder}`))
}

type Places = { readonly root: string; readonly base: string }
type Named = { readonly file: Awaited<ReturnType<typeof readProjectFile>>; readonly lines: LineRange | undefined }

/** Reads the file, or if there is none the longest beginning of the name that is one. */
const readNamed = async (places: Places, reference: WrittenReference): Promise<Named> => {
  const whole = await readProjectFile(places, reference.path)
  if (whole.kind === "missing" && reference.written !== undefined)
    for (const { path, lines } of shorterReadings(reference.written)) {
      const file = await readProjectFile(places, path)
      if (file.kind === "file" || (file.kind === "refused" && !file.isFolder)) return { file, lines }
    }
  return { file: whole, lines: reference.lines }
}

const keyOf = (file: ProjectFile, lines: LineRange | undefined): string =>
  `${file.realPath}\n${lines?.first}-${lines?.last}`

/**
 * Loads the files that can be read, in order, within the budget. A name that is no file is reported as missing only if it is meant as one.
 */
export const loadFiles = async (
  places: Places,
  references: readonly WrittenReference[],
  { budget }: { budget: { maxFiles: number; maxBytes: number } },
): Promise<LoadedFiles> => {
  const blocks: FileBlock[] = []
  const loaded: FileReference[] = []
  const leftOut: { path: string; reason: string }[] = []
  const seen = new Set<string>()
  let bytes = 0
  let opened = 0
  const beyondFiles = `it is beyond the budget of ${budget.maxFiles} files`
  for (const reference of references) {
    if (blocks.length >= budget.maxFiles || opened >= budget.maxFiles * OPENED_PER_FILE) {
      if (await isMeantAsFile(places.base, reference)) leftOut.push({ path: reference.path, reason: beyondFiles })
      continue
    }
    const { file, lines: range } = await readNamed(places, reference)
    if (file.kind !== "missing" || reference.written !== undefined) opened++
    if (file.kind !== "file") {
      if (file.kind === "refused" || (await isMeantAsFile(places.base, reference)))
        leftOut.push({ path: file.path, reason: file.reason })
      continue
    }
    const key = keyOf(file, range)
    if (seen.has(key)) continue
    seen.add(key)
    const lines = range ? { lines: range } : {}
    const block = renderFileBlock({ absolutePath: file.realPath, text: file.text, encoding: file.encoding, ...lines })
    const size = Buffer.byteLength(block.header) + Buffer.byteLength(block.content)
    if (bytes + size > budget.maxBytes) {
      leftOut.push({ path: file.path, reason: `it is beyond the budget of ${budget.maxBytes / 1024} KB` })
    } else {
      bytes += size
      blocks.push(block)
      loaded.push({ path: file.path, ...lines })
    }
  }
  return { blocks, references: loaded, leftOut }
}

/** @returns one line per file; empty for none */
export const renderLeftOut = (leftOut: LoadedFiles["leftOut"]): string =>
  leftOut.map(({ path, reason }) => `- ${JSON.stringify(path)}: ${reason}`).join("\n")
