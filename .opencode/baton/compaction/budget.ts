import { cutText, cutTextStart } from "../host/text.ts"

/** Limit of what Baton adds to a request. */
export const MAX_ADDED_CHARACTERS = 16_000
/** The same as a share of the model's context, so that no addition can start a compaction loop. */
const MAX_CONTEXT_SHARE = 0.1
/** Assumed while a model's context is unknown: small enough for any model that can do agent work. */
export const UNKNOWN_CONTEXT_TOKENS = 32_000

/** OpenCode's own estimate for Latin text. */
const CHARACTERS_PER_TOKEN = 4

/** Cost of a text as a share of all that may be added: 1 is the whole budget. */
export type Budget = {
  cost(text: string): number
  head(text: string, share: number): string
  tail(text: string, share: number): string
}

/**
 * The budget for a model with `contextTokens` of context.
 *
 * Latin text counts four characters a token, anything else one character a token, which is never less than what
 * tokenizers make of it.
 */
export const createBudget = (contextTokens: number): Budget => {
  const tokens = Math.max(contextTokens, 1) * MAX_CONTEXT_SHARE
  const latin = Math.max(1 / MAX_ADDED_CHARACTERS, 1 / (tokens * CHARACTERS_PER_TOKEN))
  const other = Math.max(1 / MAX_ADDED_CHARACTERS, 1 / tokens)
  const costOf = (code: number): number => (code < 0x80 ? latin : other)
  const cost = (text: string): number => {
    let sum = 0
    for (let at = 0; at < text.length; at++) sum += costOf(text.charCodeAt(at))
    return sum
  }
  return {
    cost,
    head: (text, share) => {
      let left = share
      let end = 0
      while (end < text.length) {
        left -= costOf(text.charCodeAt(end))
        if (left < 0) break
        end++
      }
      return cutText(text, end)
    },
    tail: (text, share) => {
      let left = share
      let start = text.length
      while (start > 0) {
        left -= costOf(text.charCodeAt(start - 1))
        if (left < 0) break
        start--
      }
      return cutTextStart(text, text.length - start)
    },
  }
}

/** One section of an addition. Sections stand in the given order; room goes to the lowest `priority` first. */
export type Section = {
  name: string
  text: string
  priority: number
  /** Largest share of the budget that it may take while others still need room. */
  maxShare: number
  /** The text ends with a fence, which a cut must not open. */
  isFenced?: boolean
  /** Makes a text that fits, in place of a cut; "" where none does. */
  shrink?: (fits: (text: string) => boolean) => string
  /** Place of the whole text, for the notice about a cut. */
  source: string
}

/** Characters kept free for a notice about a cut, and for the line that names sections without room. */
const NOTICE_ROOM = 120
const LEFT_OUT_ROOM = 240

const cutNotice = (section: Section, kept: number): string =>
  `[${section.name} cut to ${kept} of ${section.text.length} characters; the whole is in ${section.source}]`

const shorten = (section: Section, share: number, budget: Budget): string => {
  const { text, isFenced = false, shrink } = section
  if (shrink) return shrink((shorter) => budget.cost(shorter) <= share)
  const end = isFenced ? text.slice(text.lastIndexOf("\n")) : ""
  const body = text.slice(0, text.length - end.length)
  const room = share - budget.cost("x".repeat(NOTICE_ROOM) + end)
  const head = budget.head(body, Math.max(room, 0) * 0.7)
  const tail = budget.tail(body.slice(head.length), Math.max(room, 0) * 0.3)
  const kept = head.length + tail.length
  if (kept === 0) return ""
  const closing = head.includes("\n```") ? end : ""
  return `${head}\n${cutNotice(section, kept)}${tail === "" ? "" : `\n${tail}`}${closing}`
}

/**
 * Joins sections within the budget. A cut is noted in place; sections without room are named in a last line.
 *
 * @returns text whose cost is at most 1
 */
export const fitSections = (sections: readonly Section[], budget: Budget): string => {
  const present = sections.filter((section) => section.text.trim() !== "")
  const leftOutRoom = budget.cost("x".repeat(LEFT_OUT_ROOM))
  let left = 1 - budget.cost("\n\n") * present.length - leftOutRoom
  const ranked = present.toSorted((a, b) => a.priority - b.priority)
  const granted = new Map<Section, number>()
  for (const section of ranked) {
    const grant = Math.max(0, Math.min(budget.cost(section.text), section.maxShare, left))
    granted.set(section, grant)
    left -= grant
  }
  for (const section of ranked) {
    const grant = granted.get(section) ?? 0
    const more = Math.max(0, Math.min(budget.cost(section.text) - grant, left))
    granted.set(section, grant + more)
    left -= more
  }
  const leftOut: string[] = []
  const texts = present.flatMap((section) => {
    const grant = granted.get(section) ?? 0
    if (budget.cost(section.text) <= grant + Number.EPSILON * 1_000) return [section.text]
    const short = shorten(section, grant, budget)
    if (short === "") leftOut.push(`${section.name} (${section.source})`)
    return short === "" ? [] : [short]
  })
  if (leftOut.length > 0)
    texts.push(budget.head(`[left out, since there is no room: ${leftOut.join(", ")}]`, leftOutRoom))
  return texts.join("\n\n")
}
