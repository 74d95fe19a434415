import type { JSONValue } from "./protocol.ts"

type JSONObject = { readonly [key: string]: JSONValue }

/** A patch may come from anywhere; deeper than this it is refused rather than followed. */
const MAX_DEPTH = 64

export const isObject = (value: unknown): value is JSONObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The protocol's deep merge: objects merge, scalars and arrays replace, null clears to null, what is left out stays.
 * Neither argument is changed.
 *
 * @throws RangeError when the patch is nested more than 64 deep
 */
export const mergePatch = (state: JSONObject, patch: JSONObject, depth = 0): JSONObject => {
  if (depth > MAX_DEPTH) throw new RangeError(`the patch is nested more than ${MAX_DEPTH} deep`)
  // Without a prototype a key such as __proto__ is a key like any other.
  const merged: Record<string, JSONValue> = Object.assign(Object.create(null), state)
  for (const [key, value] of Object.entries(patch)) {
    const before = merged[key]
    merged[key] = isObject(value) ? mergePatch(isObject(before) ? before : {}, value, depth + 1) : value
  }
  return merged
}

const NO_KEYS: ReadonlySet<string> = new Set()

export type Difference =
  | { readonly kind: "none" }
  | { readonly kind: "patch"; readonly patch: JSONObject }
  /** A merge cannot take a key away: only the whole state says it. */
  | { readonly kind: "replaced" }

/**
 * The smallest patch that `mergePatch` makes the second state of the first with.
 *
 * @param whole keys whose value is given as a whole when anything in it changes: its fields mean nothing on their own
 */
export const diffStates = (before: JSONObject, after: JSONObject, whole: ReadonlySet<string> = NO_KEYS): Difference => {
  if (Object.keys(before).some((key) => !Object.hasOwn(after, key))) return { kind: "replaced" }
  const patch: Record<string, JSONValue> = Object.create(null)
  for (const [key, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (isObject(value) && isObject(old)) {
      const inner = diffStates(old, value, whole)
      if (inner.kind === "replaced") return inner
      if (inner.kind === "patch") patch[key] = whole.has(key) ? value : inner.patch
    } else if (old === undefined || JSON.stringify(old) !== JSON.stringify(value)) patch[key] = value
  }
  return Object.keys(patch).length > 0 ? { kind: "patch", patch } : { kind: "none" }
}
