/** Baton adds at most this many characters to a request … */
export const MAX_ADDED_CHARACTERS = 12_000
/** … and at most this share of the model's context, so that no addition can start a compaction loop. */
const MAX_CONTEXT_SHARE = 0.1
/** Assumed while a model's context is unknown: small enough for any model that can do agent work. */
export const UNKNOWN_CONTEXT_TOKENS = 32_000

/** OpenCode's own estimate for Latin text. */
const CHARACTERS_PER_TOKEN = 4

/** What a text costs, as a share of everything that may be added: 1 is the whole budget. */
export type Budget = {
  cost(text: string): number
  head(text: string, share: number): string
  tail(text: string, share: number): string
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/**
 * A meter for a model with `contextTokens` of context.
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
      return text.slice(0, end > 0 && isHighSurrogate(text.charCodeAt(end - 1)) && end < text.length ? end - 1 : end)
    },
    tail: (text, share) => {
      let left = share
      let start = text.length
      while (start > 0) {
        left -= costOf(text.charCodeAt(start - 1))
        if (left < 0) break
        start--
      }
      return text.slice(start > 0 && isHighSurrogate(text.charCodeAt(start - 1)) ? start + 1 : start)
    },
  }
}

/** A piece of what Baton adds. Pieces stand in the order given; room goes to the lowest `rank` first. */
export type Section = {
  name: string
  text: string
  rank: number
  /** The largest share of the budget this piece may take while others still wait for room. */
  share: number
  /** Where the whole of it can be read, for the notice that names a cut. */
  source: string
}

const NOTICE_ROOM = 120

const cutNotice = (piece: Section, kept: number): string =>
  `[${piece.name} cut to ${kept} of ${piece.text.length} characters; the whole is in ${piece.source}]`

const shorten = (piece: Section, share: number, meter: Budget): string => {
  const room = share - meter.cost("x".repeat(NOTICE_ROOM))
  const head = meter.head(piece.text, Math.max(room, 0) * 0.7)
  const tail = meter.tail(piece.text.slice(head.length), Math.max(room, 0) * 0.3)
  const kept = head.length + tail.length
  if (kept === 0) return ""
  return tail === "" ? `${head}\n${cutNotice(piece, kept)}` : `${head}\n${cutNotice(piece, kept)}\n${tail}`
}

/**
 * Joins pieces within the budget. What had to be cut says so in place; what found no room at all is named in a last
 * line.
 *
 * @returns text whose cost is at most 1
 */
export const fitSections = (pieces: readonly Section[], meter: Budget): string => {
  const present = pieces.filter((piece) => piece.text.trim() !== "")
  const separator = meter.cost("\n\n")
  let left = 1 - separator * present.length
  if (present.length > 0) left -= meter.cost("x".repeat(Math.min(NOTICE_ROOM * 2, 240)))
  const ranked = present.toSorted((a, b) => a.rank - b.rank)
  const granted = new Map<Section, number>()
  for (const piece of ranked) {
    const grant = Math.max(0, Math.min(meter.cost(piece.text), piece.share, left))
    granted.set(piece, grant)
    left -= grant
  }
  for (const piece of ranked) {
    const grant = granted.get(piece) ?? 0
    const more = Math.max(0, Math.min(meter.cost(piece.text) - grant, left))
    granted.set(piece, grant + more)
    left -= more
  }
  const leftOut: string[] = []
  const texts = present.flatMap((piece) => {
    const grant = granted.get(piece) ?? 0
    if (meter.cost(piece.text) <= grant + Number.EPSILON * 1_000) return [piece.text]
    const short = shorten(piece, grant, meter)
    if (short === "") leftOut.push(`${piece.name} (${piece.source})`)
    return short === "" ? [] : [short]
  })
  if (leftOut.length > 0)
    texts.push(meter.head(`[left out for want of room: ${leftOut.join(", ")}]`, meter.cost("x".repeat(240))))
  return texts.join("\n\n")
}
