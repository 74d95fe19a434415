import type { RunState } from "./ledger.ts"

// Stops a night whose provider fails, before it uses up the queue. Pure.

/** Ends in a row that stop the work. */
const LIMIT = 3

export type Verdict =
  | { readonly kind: "go on" }
  | { readonly kind: "stop"; readonly reason: string }
  /** The provider named a time: then it is asked once. */
  | { readonly kind: "wait"; readonly until: string; readonly reason: string }

type End = Pick<RunState, "kind" | "detail" | "session" | "next_try">

/** The agent came to nothing, and so may the next one. */
const isFailure = ({ kind, session }: End): boolean =>
  kind === "provider" || kind === "idle" || (session === "" && kind !== "stopped")

export const createBreaker = (nowMs: () => number) => {
  let ends: End[] = []
  /** It was waited for, and no run came to anything since. */
  let hasWaited = false
  return {
    /** Takes the end of a run. */
    add: (end: End): Verdict => {
      if (end.kind === "stopped") return { kind: "go on" }
      if (!isFailure(end)) {
        ends = []
        hasWaited = false
        return { kind: "go on" }
      }
      ends.push(end)
      if (ends.length < LIMIT) return { kind: "go on" }
      const reason = `${ends.length} runs in a row came to nothing, the last one: ${[end.kind, end.detail].filter((part) => part !== "").join(": ")}`
      const until = end.kind === "provider" ? end.next_try : ""
      return !hasWaited && Date.parse(until) > nowMs() ? { kind: "wait", until, reason } : { kind: "stop", reason }
    },
    /** The provider answers again. */
    reset: (): void => {
      ends = []
      hasWaited = true
    },
  }
}
