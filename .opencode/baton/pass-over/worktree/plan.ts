import { isSameSide } from "./disk.ts"
import type { HeldFile, Side } from "./stored.ts"

/** State of a path in the worktree: missing, a file or link, or something that a pass never overwrites. */
export type Current = Side | null | { readonly other: string }

/** One write: the path, and its content before and after. */
export type Step = { readonly path: string; readonly base: Side | null; readonly next: Side | null }

type StepVerdict =
  | { readonly kind: "write" }
  | { readonly kind: "already" }
  /** Changed on both sides; a merge of the three contents may succeed without a conflict. */
  | { readonly kind: "merge"; readonly reason: string; readonly current: Side }
  | { readonly kind: "conflict"; readonly reason: string }

/** A rename is two writes; both or none are done. */
export const stepsOf = ({ path, previous_path, base, next }: HeldFile): readonly Step[] =>
  previous_path === null
    ? [{ path, base, next }]
    : [
        { path: previous_path, base, next: null },
        { path, base: null, next },
      ]

const describe = (side: Side | null): string =>
  side === null ? "not there" : `${side.mode === "120000" ? "a link" : "a file"} of ${side.size} bytes`

const isFile = (side: Side | null): side is Side => side !== null && side.mode !== "120000"

/** Tells whether a write is allowed: only over the content that the pass began with, never over other changes. */
export const judgeStep = ({ path, base, next }: Step, current: Current): StepVerdict => {
  if (current !== null && "other" in current) return { kind: "conflict", reason: `${path} is ${current.other} now` }
  if (isSameSide(current, next)) return { kind: "already" }
  if (isSameSide(current, base)) return { kind: "write" }
  const reason = `${path} changed meanwhile: the pass began with ${describe(base)}, now there is ${describe(current)}`
  if (isFile(base) && isFile(next) && isFile(current)) return { kind: "merge", reason, current }
  return { kind: "conflict", reason: base === null ? `${path} was made by somebody else meanwhile` : reason }
}

/** Merges modes: the side that changed wins; undefined when both changed differently. */
export const mergeMode = (base: Side, current: Side, next: Side): Side["mode"] | undefined => {
  if (current.mode === base.mode || current.mode === next.mode) return next.mode
  return next.mode === base.mode ? current.mode : undefined
}
