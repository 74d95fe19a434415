import { isObject, mergePatch } from "./merge.ts"
import type { JSONValue } from "./protocol.ts"

type JSONObject = { readonly [key: string]: JSONValue }

/** What the statefile holds: the last line's event and time, and the whole state. */
export type Envelope = { readonly event: string; readonly ts: string; readonly state: JSONObject }

export type Reduction = {
  readonly envelope?: Envelope
  /** Lines that could not be used. */
  readonly skipped: number
}

export const EMPTY_REDUCTION: Reduction = { skipped: 0 }

const MAX_CLOCK_TEXT = 40

const parse = (line: string): JSONObject | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Never back: two lines may carry one time, and a clock may be set. */
const later = (ts: string, before: string | undefined): string => (before !== undefined && before > ts ? before : ts)

/**
 * Takes one line of the stream in. Skipped and counted: what is not JSON or not an object, an unknown event, a patch before
 * any snapshot, one that is nested too deep, and a line that could not be read at all (undefined).
 */
export const reduceLine = (reduction: Reduction, line: string | undefined): Reduction => {
  const skip: Reduction = { ...reduction, skipped: reduction.skipped + 1 }
  const parsed = line === undefined ? undefined : parse(line)
  const ts = parsed?.ts
  if (!parsed || typeof ts !== "string" || ts.length > MAX_CLOCK_TEXT) return skip
  const before = reduction.envelope
  if (parsed.event === "state.snapshot" && isObject(parsed.state))
    return { ...reduction, envelope: { event: parsed.event, ts: later(ts, before?.ts), state: parsed.state } }
  if (parsed.event !== "state.patch" || !isObject(parsed.patch) || !before) return skip
  try {
    const state = mergePatch(before.state, parsed.patch)
    return { ...reduction, envelope: { event: parsed.event, ts: later(ts, before.ts), state } }
  } catch (error) {
    if (error instanceof RangeError) return skip
    throw error
  }
}
