import { parseArgs } from "node:util"

// The command line of `baton work`. Pure.

export type WorkOptions = {
  readonly slots: number
  /** prog's name of the project; undefined for that of the folder. */
  readonly project: string | undefined
  /** One task for each agent, then the end. */
  readonly once: boolean
  readonly worktrees: boolean
  readonly checks: boolean
  /** Counted attempts after which a task is blocked. */
  readonly attempts: number
  readonly stuckMs: number
  readonly maxRunMs: number
  /** The pause before a task that got stuck is handed out again. */
  readonly backoffMs: number
  /** Tokens of all runs together. */
  readonly budget: number | undefined
  /** The hour and minute of local time from which no task is begun. */
  readonly until: { readonly hours: number; readonly minutes: number } | undefined
  readonly json: boolean
  /** Further arguments for `opencode run`. */
  readonly args: readonly string[]
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 60 * 60_000 }

/** @throws Error for anything but a time such as 30s, 20m or 2h */
export const parseDuration = (name: string, text: string): number => {
  const [, count = "", unit = ""] = /^(\d+(?:\.\d+)?)([smh])$/.exec(text) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (ms >= 0) return ms
  throw new Error(`expected --${name} as a time such as 30s, 20m or 2h, received '${text}'`)
}

const parseCount = (name: string, text: string, most: number): number => {
  const count = /^\d+$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= most) return count
  throw new Error(`expected --${name} as a number from 1 to ${most}, received '${text}'`)
}

const THOUSANDS: Readonly<Record<string, number>> = { "": 1, k: 1_000, m: 1_000_000 }

/** @throws Error for anything but a number of tokens such as 500000, 500k or 2M */
const parseTokens = (text: string): number => {
  const [, count = "", unit = ""] = /^(\d+(?:\.\d+)?)([kM]?)$/.exec(text) ?? []
  const tokens = Number(count) * (THOUSANDS[unit.toLowerCase()] ?? Number.NaN)
  if (tokens > 0) return tokens
  throw new Error(`expected --budget as a number of tokens such as 500k or 2M, received '${text}'`)
}

const parseClock = (text: string): { hours: number; minutes: number } => {
  const [, hours = "", minutes = ""] = /^(\d{1,2}):(\d\d)$/.exec(text) ?? []
  if (hours !== "" && Number(hours) < 24 && Number(minutes) < 60)
    return { hours: Number(hours), minutes: Number(minutes) }
  throw new Error(`expected a time of the day such as 07:00, received '${text}'`)
}

/** The next moment with this time of the day, in local time. @returns milliseconds since 1970 */
export const nextClock = ({ hours, minutes }: { hours: number; minutes: number }, nowMs: number): number => {
  const at = new Date(nowMs)
  at.setHours(hours, minutes, 0, 0)
  if (at.getTime() <= nowMs) at.setDate(at.getDate() + 1)
  return at.getTime()
}

/** The last moment with this time of the day. @throws Error for anything but a time of the day or ISO 8601 */
export const lastClock = (text: string, nowMs: number): number => {
  if (/^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text))) return Date.parse(text)
  const at = new Date(nextClock(parseClock(text), nowMs))
  at.setDate(at.getDate() - 1)
  return at.getTime()
}

const MAX_SLOTS = 64

/** Parses the line after `baton work`. @throws Error in words for the user */
export const parseWorkOptions = (given: readonly string[]): WorkOptions => {
  const end = given.indexOf("--")
  const [own, args] = end < 0 ? [given, []] : [given.slice(0, end), given.slice(end + 1)]
  const { values } = parseArgs({
    args: [...own],
    options: {
      number: { type: "string", short: "n", default: "1" },
      project: { type: "string", short: "p" },
      once: { type: "boolean", default: false },
      worktrees: { type: "boolean", default: false },
      checks: { type: "boolean", default: false },
      attempts: { type: "string", default: "3" },
      stuck: { type: "string", default: "20m" },
      "max-run": { type: "string", default: "2h" },
      backoff: { type: "string", default: "1m" },
      budget: { type: "string" },
      until: { type: "string" },
      json: { type: "boolean", default: false },
    },
  })
  return {
    slots: parseCount("number", values.number, MAX_SLOTS),
    project: values.project,
    once: values.once,
    worktrees: values.worktrees,
    checks: values.checks,
    attempts: parseCount("attempts", values.attempts, 100),
    stuckMs: parseDuration("stuck", values.stuck),
    maxRunMs: parseDuration("max-run", values["max-run"]),
    backoffMs: parseDuration("backoff", values.backoff),
    budget: values.budget === undefined ? undefined : parseTokens(values.budget),
    until: values.until === undefined ? undefined : parseClock(values.until),
    json: values.json,
    args,
  }
}
