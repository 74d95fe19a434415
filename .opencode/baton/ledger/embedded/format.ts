/** Formats text as Go does, since readers of prog parse its output. */

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
}

/** encoding/json's MarshalIndent with two spaces: HTML characters are escaped. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/[<>&\u2028\u2029]/g, (character) => HTML_ESCAPES[character] ?? character)

/** The verb %-Ns: pads on the right to N code points. */
export const padRight = (text: string, width: number): string => text + " ".repeat(missing(text, width))

/** The verb %Ns. */
export const padLeft = (text: string, width: number): string => " ".repeat(missing(text, width)) + text

const missing = (text: string, width: number): number => Math.max(0, width - Array.from(text).length)

/** Cuts to 40 characters, for a table. */
export const tableSummary = (text: string): string => {
  const characters = Array.from(text)
  return characters.length <= 40 ? text : `${characters.slice(0, 37).join("")}...`
}

/**
 * prog stores times as text of Go's time.String(), `2026-02-09 22:17:02.123456 +0000 UTC`, in local time, and sorts them as
 * text, so the embedded ledger writes local time, too. Only logs have SQLite's `YYYY-MM-DD HH:MM:SS` in UTC.
 */
type Moment = { readonly epochMs: number; readonly offsetMinutes: number }

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const WEEK_DAYS = 7

const STORED =
  /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(\.\d+)?)?)?\s*(?:Z|([+-])(\d\d):?(\d\d)(?:\s+\S+)?)?(?:\s+m=\S+)?$/

const twoDigits = (value: number): string => String(value).padStart(2, "0")

const offsetText = (offsetMinutes: number, separator: string): string => {
  const size = Math.abs(offsetMinutes)
  return `${offsetMinutes < 0 ? "-" : "+"}${twoDigits(Math.floor(size / 60))}${separator}${twoDigits(size % 60)}`
}

/** Go reads a zone name of three letters or a signed hour. JavaScript has no abbreviations, so the hour is used. */
const zoneName = (offsetMinutes: number): string => {
  if (offsetMinutes === 0) return "UTC"
  return offsetMinutes % 60 === 0 ? offsetText(offsetMinutes, "").slice(0, 3) : "LMT"
}

const wallClock = ({ epochMs, offsetMinutes }: Moment): string =>
  new Date(epochMs + offsetMinutes * MINUTE_MS).toISOString()

/**
 * @param epochMicros microseconds since 1970
 * @param offsetMinutes of local time, east positive
 */
export const formatTimestamp = (epochMicros: number, offsetMinutes: number): string => {
  const epochMs = Math.floor(epochMicros / 1000)
  const [seconds = ""] = wallClock({ epochMs, offsetMinutes }).replace("T", " ").split(".")
  const fraction = String(epochMicros - Math.floor(epochMicros / 1e6) * 1e6)
    .padStart(6, "0")
    .replace(/0+$/, "")
  return `${seconds}${fraction === "" ? "" : `.${fraction}`} ${offsetText(offsetMinutes, "")} ${zoneName(offsetMinutes)}`
}

/** Reads all forms that prog's driver reads; 1970 for anything else, so that one bad row does not hide the others. */
export const parseTimestamp = (text: string): Moment => {
  const match = STORED.exec(text.trim())
  if (match === null) return { epochMs: 0, offsetMinutes: 0 }
  const [, day, clock = "00:00", seconds = "00", fraction = "", sign, hours = "0", minutes = "0"] = match
  const size = Number(hours) * 60 + Number(minutes)
  const offsetMinutes = sign === "-" ? -size : size
  const epochMs = Date.parse(`${day}T${clock}:${seconds}${fraction.slice(0, 4)}Z`) - offsetMinutes * MINUTE_MS
  return Number.isNaN(epochMs) ? { epochMs: 0, offsetMinutes: 0 } : { epochMs, offsetMinutes }
}

/** `2026-02-09 22:17`, in the zone the time was stored with. */
export const minuteText = (moment: Moment): string => wallClock(moment).slice(0, 16).replace("T", " ")

/** `2026-02-09 22:17` in local time. */
export const localMinute = (stored: string): string => {
  const { epochMs } = parseTimestamp(stored)
  return minuteText({ epochMs, offsetMinutes: -new Date(epochMs).getTimezoneOffset() })
}

/** RFC 3339 in whole seconds, `Z` for UTC. */
export const rfc3339 = (moment: Moment): string => {
  const zone = moment.offsetMinutes === 0 ? "Z" : offsetText(moment.offsetMinutes, ":")
  return `${wallClock(moment).slice(0, 19)}${zone}`
}

/** `just now`, `5m ago`, `3h ago`, `2d ago`, and from a week on the date. */
export const timeAgo = (moment: Moment, nowMs: number): string => {
  const age = nowMs - moment.epochMs
  if (age < MINUTE_MS) return "just now"
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)}m ago`
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)}h ago`
  if (age < WEEK_DAYS * DAY_MS) return `${Math.floor(age / DAY_MS)}d ago`
  return wallClock(moment).slice(0, 10)
}

/** `4d`, `7h`, `<1h`. */
export const shortAge = (ageMs: number): string => {
  if (ageMs >= DAY_MS) return `${Math.floor(ageMs / DAY_MS)}d`
  return ageMs >= HOUR_MS ? `${Math.floor(ageMs / HOUR_MS)}h` : "<1h"
}
