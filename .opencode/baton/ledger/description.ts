import { createHash } from "node:crypto"

/**
 * Maximum bytes of one text for the ledger. Linux allows 131,071 in one argument, and the process runner uses one of them;
 * Windows allows 32,767 characters in a whole command line.
 */
export const textLimit = (platform: NodeJS.Platform): number => (platform === "win32" ? 30_000 : 130_000)

/** Thrown if a text cannot be cut enough to fit; a retry does not help. */
export class TextTooLongError extends Error {
  override readonly name = "TextTooLongError"
}

/** The text as a program receives it: without NUL, and with U+FFFD for half a surrogate pair. */
export const toArgument = (text: string): string => Buffer.from(text.replaceAll("\0", "\u2400")).toString()

/** The first bytes of a text, without cutting a character. */
const takeBytes = (text: string, bytes: number): string => {
  const buffer = Buffer.from(text)
  let end = Math.max(0, bytes)
  // 10xxxxxx is inside a character.
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return buffer.subarray(0, end).toString()
}

type FittedText =
  | { readonly kind: "whole"; readonly text: string }
  | { readonly kind: "cut"; readonly text: string; readonly file: string; readonly full: string }
  /** Not even the pointer fits. */
  | { readonly kind: "no-room" }

/**
 * Cuts a text that is too long and appends a pointer to the full one. Pure; the same text and limit give the same result and
 * the same file name.
 *
 * @param maxBytes of UTF-8, pointer included
 */
export const truncateBytes = (taskID: string, text: string, maxBytes: number): FittedText => {
  const full = toArgument(text)
  const size = Buffer.byteLength(full)
  if (size <= maxBytes) return { kind: "whole", text: full }
  const digest = createHash("sha256").update(full).digest("hex").slice(0, 12)
  const file = `${taskID.toLowerCase().replaceAll(/[^a-z0-9-]/g, "_")}-${digest}.md`
  const pointer = `[cut: ${size} bytes in all; the full text is in .opencode/state/long-texts/${file}]`
  const room = maxBytes - Buffer.byteLength(pointer) - 2
  if (room < 0) return { kind: "no-room" }
  return { kind: "cut", text: `${takeBytes(full, room)}\n\n${pointer}`, file, full }
}

/**
 * A task's description is its specification followed by one handoff section between two marks, each on a line of its own. The
 * first mark has a digest of the section, which distinguishes a section that Baton wrote from an edited or quoted one.
 *
 *     the specification
 *
 *     <!-- baton:handoff 0123456789ab, replaced at each compaction -->
 *     the handoff
 *     <!-- /baton:handoff -->
 */
const SECTION =
  /(?:\r\n\r\n|\n\n|\r?\n)?^<!-- baton:handoff ([0-9a-f]{12})[^\r\n]*-->\r?\n((?:(?!<!-- \/?baton:handoff)[^\n]*\n)*)<!-- \/baton:handoff -->[ \t]*(?=\r?$)/gm
const MARK_IN_TEXT = /<!--(\s*\/?\s*baton:handoff)/g
const CLOSE = "<!-- /baton:handoff -->"
const OVERWRITTEN_BY = "<!-- baton: this was written over the specification, which is restored above -->"

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12)

/** A handoff as stored in a description: LF line ends, trimmed, without marks that could end it early. */
export const toHandoffBody = (section: string): string =>
  section.replaceAll("\r\n", "\n").trim().replaceAll(MARK_IN_TEXT, "&lt;!--$1")

const renderSection = (section: string): string => {
  const body = toHandoffBody(section)
  return `<!-- baton:handoff ${digest(body)}, replaced at each compaction -->\n${body}\n${CLOSE}`
}

type SplitDescription = {
  /** Everything but Baton's sections, byte for byte, including text after them. */
  readonly specification: string
  /** The handoff without its marks. */
  readonly handoff?: string
}

/**
 * Removes the handoff section from a description.
 *
 * Baton wrote the last section, edited or not, and all unedited ones before it; several come from writers that raced. Any
 * other text with a mark (half a pair, a mark inside a line or quoted without a digest) is the user's and stays.
 */
export const splitHandoff = (description: string): SplitDescription => splitBehind(description, 0)

/**
 * Like `splitHandoff`, but looks for sections only from this character on. It needs the whole description: a mark counts only
 * at the beginning of a line, and a cut would create such a beginning.
 */
const splitBehind = (description: string, start: number): SplitDescription => {
  const pattern = new RegExp(SECTION)
  pattern.lastIndex = start
  const found = [...description.matchAll(pattern)].map((match) => {
    const body = toHandoffBody(match[2] ?? "")
    return { start: match.index, end: match.index + match[0].length, body, unedited: digest(body) === match[1] }
  })
  const last = found.at(-1)
  if (!last) return { specification: description }
  const kept: string[] = []
  let from = 0
  for (const section of found.filter((candidate) => candidate.unedited || candidate === last)) {
    kept.push(description.slice(from, section.start))
    from = section.end
  }
  return { specification: [...kept, description.slice(from)].join(""), handoff: last.body }
}

const comparable = (text: string): string => text.replaceAll("\r\n", "\n").trim()

/**
 * Restores the specification. The current text stays if it contains the original. Otherwise it was overwritten, mostly by the
 * agent with `prog desc`: then the original comes first and the current text after it. Nothing in the ledger is dropped,
 * unless it is part of the original.
 */
const restore = (current: string, original: string): string => {
  if (comparable(current).includes(comparable(original))) return current
  if (comparable(original).includes(comparable(current))) return original
  return `${original}\n\n${OVERWRITTEN_BY}\n${current}`
}

/**
 * Replaces the handoff in a description. Merging the same handoff again changes nothing.
 *
 * @param description the current text in the ledger
 * @param section the handoff, Markdown
 * @param original the specification (as `splitHandoff` gives it) when the session first read the task, if known
 */
export const mergeHandoff = (description: string, section: string, original = ""): string => {
  // The known specification is not searched for marks: it may quote some.
  const specification = description.startsWith(original)
    ? splitBehind(description, original.length).specification
    : restore(splitHandoff(description).specification, original)
  return specification === "" ? renderSection(section) : `${specification}\n\n${renderSection(section)}`
}

/** Bytes that a merged description needs in addition to the handoff. */
export const handoffOverhead = (description: string, original = ""): number =>
  Buffer.byteLength(mergeHandoff(description, "", original))
