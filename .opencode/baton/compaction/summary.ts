import { splitLines } from "../host/messages.ts"
import { FACTS_HEADING } from "../task/activity.ts"

/** The worth of a summary beside the handoff before it. */
export type SummaryVerdict = {
  /** It must not take the place of the handoff before it. */
  readonly saysLess: boolean
  /** The fault, as a sentence without its full stop; undefined for a good one. */
  readonly remark?: string
}

/** A shorter one than this part of the handoff before it has lost most of it. */
const LEAST_SHARE = 1 / 4
/** Headings of any name that make a text a summary: a prompt may be the user's, and a model may translate. */
const LEAST_HEADINGS = 2

const HEADING = /^#{1,6}\s+(\S.*)$/
const titleOf = (line: string): string =>
  line
    .trim()
    .replace(/^#{1,6}\s+/, "")
    .replace(/^\*\*(.*)\*\*:?$/, "$1")
    .replace(/[:：]$/, "")
    .trim()
    .toLowerCase()

/** The headings that a prompt asks for: those below its title. */
const headingsIn = (instructions: string): string[] =>
  splitLines(instructions).flatMap((line) => (/^#{2,6}\s/.test(line) ? [titleOf(line)] : []))

const hasHeadings = (text: string, wanted: readonly string[]): boolean => {
  const lines = splitLines(text)
  return (
    lines.filter((line) => HEADING.test(line)).length >= LEAST_HEADINGS ||
    lines.some((line) => wanted.includes(titleOf(line)))
  )
}

/** The part of a recorded handoff that a summariser wrote. */
export const summaryPart = (handoff = ""): string => {
  const end = handoff.indexOf(`\n${FACTS_HEADING}\n`)
  return end < 0 ? handoff : handoff.slice(0, end).trimEnd()
}

/** The words by which models begin to decline; they count only in a text without headings. */
const DECLINES =
  /^\W*(?:(?:i['’]?m|i am) (?:really |very |so )?(?:sorry|afraid|unable|not able)|sorry|unfortunately|i (?:can['’]?t|cannot|won['’]?t)|as an ai|(?:es tut mir )?leid|entschuldigung|ich kann|lo siento|no puedo|(?:je suis )?désolé|je ne peux|mi dispiace|desculpe|抱歉|对不起|很抱歉|我无法|申し訳|すみません|죄송|извините|к сожалению)/iu

/** Tells whether a text declines to be a summary. Pure. @param instructions the prompt it was made by */
export const isRefusal = (summary: string, instructions: string): boolean =>
  DECLINES.test(summary) && !hasHeadings(summary, headingsIn(instructions))

/**
 * Judges a new summary. Pure.
 *
 * @param summary trimmed; empty when the summariser wrote nothing
 * @param previous the handoff before it, if there is one
 * @param instructions the prompt it was made by
 */
export const judgeSummary = (summary: string, previous = "", instructions = ""): SummaryVerdict => {
  if (summary === "") return { saysLess: true, remark: "The summary of this compaction was empty" }
  const wanted = headingsIn(instructions)
  const isPlain = !hasHeadings(summary, wanted)
  if (isPlain && (hasHeadings(previous, wanted) || (previous !== "" && DECLINES.test(summary))))
    return { saysLess: true, remark: "The summary of this compaction has none of the headings of a handoff" }
  if (summary.length < previous.length * LEAST_SHARE) {
    const [own, before] = [summary.length, previous.length].map((length) => length.toLocaleString("en"))
    return {
      saysLess: true,
      remark: `The summary of this compaction has ${own} characters, the handoff before it ${before}`,
    }
  }
  if (isPlain && (wanted.length > 0 || DECLINES.test(summary)))
    return { saysLess: false, remark: "The summary of this compaction has none of the headings of a handoff" }
  return { saysLess: false }
}

/**
 * Judges a new summary beside the session's last handoff. Pure.
 *
 * @param last work in progress of an earlier session, which has no summary's id, is nothing to compare with
 * @param summaryID undefined for one that is not stored yet
 */
export const judgeBeside = (
  last: { readonly summaryID: string; readonly text: string } | undefined,
  { summaryID, summary }: { readonly summaryID?: string; readonly summary: string },
  instructions: string,
): SummaryVerdict => {
  const isOther = last !== undefined && last.summaryID !== "" && last.summaryID !== summaryID
  return judgeSummary(summary, isOther ? summaryPart(last.text) : "", instructions)
}
