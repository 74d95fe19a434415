import { createHash } from "node:crypto"
import { FACTS_HEADING } from "../task/activity.ts"

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
export const takeBytes = (text: string, bytes: number): string => {
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
 * A task's description is its specification followed by handoff sections, one for each of the last sessions that worked on it,
 * the newest first. Each is between two marks on lines of their own. The first mark has a digest of the section, which
 * distinguishes a section that Baton wrote from an edited or quoted one.
 *
 *     the specification
 *
 *     <!-- baton:handoff 0123456789ab, replaced at each compaction -->
 *     # Handoff after compaction 2 (session ses_…, summary msg_…, 2026-01-01T00:00:00.000Z)
 *     …
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

/** The writer of a handoff section, from its title. */
export type HandoffTitle = {
  /** The session's compactions so far, this one included; 0 for work in progress before the first. */
  readonly number: number
  readonly sessionID: string
  /** Id of the message that holds the summary; empty before the first compaction. */
  readonly summaryID: string
  /** Time of writing: ISO 8601, UTC. */
  readonly at: string
}

const HANDOFF_TITLE = /^# Handoff after compaction (\d+) \(session (\w+), summary (\w+), ([0-9T:.-]+Z)\)/
const PROGRESS_TITLE = /^# Work in progress \(session (\w+), ([0-9T:.-]+Z)\)/

/** Reads the title of a section; undefined for text without one. */
export const parseHandoffTitle = (section: string): HandoffTitle | undefined => {
  const [, session, time] = PROGRESS_TITLE.exec(section) ?? []
  if (session !== undefined && time !== undefined) return { number: 0, sessionID: session, summaryID: "", at: time }
  const [, number, sessionID, summaryID, at] = HANDOFF_TITLE.exec(section) ?? []
  if (number === undefined || sessionID === undefined || summaryID === undefined || at === undefined) return undefined
  return { number: Number(number), sessionID, summaryID, at }
}

/** The first step under a handoff's heading "Next", without its bullet; undefined if there is none. */
export const parseNextStep = (handoff: string): string | undefined => {
  const lines = handoff.split("\n")
  const heading = lines.findIndex((line) => /^#+\s*next\b/i.test(line))
  const step = heading < 0 ? undefined : lines.slice(heading + 1).find((line) => line.trim() !== "")
  return step === undefined || step.startsWith("#") ? undefined : step.trim().replace(/^(?:[-*+]|\d+[.)])\s+/, "")
}

type SplitDescription = {
  /** Everything but Baton's sections, byte for byte, including text after them. */
  readonly specification: string
  /** The handoffs without their marks, one for each session, the newest first. */
  readonly handoffs: readonly string[]
}

const sessionOf = (section: string): string => parseHandoffTitle(section)?.sessionID ?? ""
const timeOf = (section: string): string => parseHandoffTitle(section)?.at ?? ""

/** A session's handoff with the facts of its work since then. */
const withFactsOf = (work: string, handoff: string): string => {
  const [start, end] = [work.indexOf(FACTS_HEADING), handoff.lastIndexOf(FACTS_HEADING)]
  if (start < 0 || timeOf(work) <= timeOf(handoff)) return handoff
  const said = (end < 0 ? handoff : handoff.slice(0, end)).replace(timeOf(handoff), timeOf(work))
  return `${said.trimEnd()}\n\n${work.slice(start)}`
}

/** Of two handoffs of one session the newer one: by their compactions, since a clock may go back, then by time. */
const newerOf = (known: string, section: string): string => {
  const [before, own] = [parseHandoffTitle(known), parseHandoffTitle(section)]
  if (!before || !own || before.number === own.number) return timeOf(section) >= timeOf(known) ? section : known
  if (own.number === 0) return withFactsOf(section, known)
  return own.number > before.number ? section : known
}

/** Each session's newest handoff, sorted by time, the newest first; of two that are equally old the later in the list counts. */
export const newestOfEach = (sections: readonly string[]): readonly string[] => {
  const newest = new Map<string, string>()
  for (const section of sections) {
    const session = sessionOf(section)
    const known = newest.get(session)
    newest.set(session, known === undefined ? section : newerOf(known, section))
  }
  return [...newest.values()].sort((a, b) => (timeOf(a) > timeOf(b) ? -1 : timeOf(a) < timeOf(b) ? 1 : 0))
}

/**
 * Separates the handoff sections from the rest of a description.
 *
 * Baton wrote the last section, edited or not, those with a title right before it, and all unedited ones; several of one
 * session come from writers that raced. Any other text with a mark (half a pair, a mark inside a line or quoted without a
 * digest) is the user's and stays.
 */
export const splitHandoffs = (description: string): SplitDescription => splitBehind(description, 0)

/**
 * Like `splitHandoffs`, but looks for sections only from this character on. It needs the whole description: a mark counts only
 * at the beginning of a line, and a cut would create such a beginning.
 */
const splitBehind = (description: string, start: number): SplitDescription => {
  const pattern = new RegExp(SECTION)
  pattern.lastIndex = start
  const found = [...description.matchAll(pattern)].map((match) => {
    const body = toHandoffBody(match[2] ?? "")
    return { start: match.index, end: match.index + match[0].length, body, isOurs: digest(body) === match[1] }
  })
  for (let at = found.length - 1, end = description.length; at >= 0; at--) {
    const section = found[at]
    if (!section) break
    const isLast = at === found.length - 1
    if (!isLast && (description.slice(section.end, end).trim() !== "" || sessionOf(section.body) === "")) break
    section.isOurs = true
    end = section.start
  }
  const ours = found.filter(({ isOurs }) => isOurs)
  const kept: string[] = []
  let from = 0
  for (const section of ours) {
    kept.push(description.slice(from, section.start))
    from = section.end
  }
  return {
    specification: [...kept, description.slice(from)].join(""),
    handoffs: newestOfEach(ours.map(({ body }) => body)),
  }
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

/** Sessions whose handoff a description keeps. */
const MAX_HANDOFFS = 3

type MergedDescription = {
  readonly description: string
  /** The session's handoff there. */
  readonly own: string
  /** Handoffs that have no place in the description any more, the newest first. */
  readonly dropped: readonly string[]
}

/**
 * Puts a session's handoff into a description, in place of its earlier one. Merging the same handoff again, or one that is
 * older than the session's there, changes nothing.
 *
 * @param description the current text in the ledger
 * @param section the handoff, Markdown
 * @param options `original`: the specification (as `splitHandoffs` gives it) when the session first read the task, if known;
 *   `maxBytes`: of the whole description; the handoffs of other sessions take at most half of what the specification leaves
 */
export const mergeHandoff = (
  description: string,
  section: string,
  { original = "", maxBytes = Number.POSITIVE_INFINITY }: { original?: string | undefined; maxBytes?: number } = {},
): MergedDescription => {
  // The known specification is not searched for marks: it may quote some.
  const split = description.startsWith(original)
    ? splitBehind(description, original.length)
    : splitHandoffs(description)
  const specification = description.startsWith(original) ? split.specification : restore(split.specification, original)
  const given = toHandoffBody(section)
  const isOwn = (handoff: string): boolean => sessionOf(handoff) === sessionOf(given)
  const [own = given] = newestOfEach([...split.handoffs.filter(isOwn), given])
  const others = split.handoffs.filter((handoff) => !isOwn(handoff))
  let room = (maxBytes - Buffer.byteLength(specification)) / 2
  const fitting = others.filter((other) => {
    room -= Buffer.byteLength(renderSection(other)) + 2
    return room >= 0
  })
  const kept = newestOfEach([own, ...fitting]).slice(0, MAX_HANDOFFS)
  const all = newestOfEach([own, ...others])
  const parts = [...(specification === "" ? [] : [specification]), ...kept.map(renderSection)]
  return { description: parts.join("\n\n"), own, dropped: all.filter((one) => !kept.includes(one)) }
}
