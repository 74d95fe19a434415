import { counted } from "../../host/text.ts"

// What becomes of a task when a run on it ends. Pure.

/** A task is handed out again, waits for a person, or stays as the agent left it. */
type Outcome = "open" | "blocked" | "as it is"

type Rule = {
  readonly becomes: Outcome
  /** It counts against the number of attempts. */
  readonly counts: boolean
  /** It is not handed out again at once. */
  readonly waits?: boolean
}

/** The kinds of end; docs/workers.md shows them to people. */
export const ENDS = {
  done: { becomes: "as it is", counts: false },
  reviewing: { becomes: "as it is", counts: false },
  canceled: { becomes: "as it is", counts: false },
  provider: { becomes: "open", counts: false },
  stopped: { becomes: "open", counts: false },
  killed: { becomes: "open", counts: true },
  stuck: { becomes: "open", counts: true, waits: true },
  context: { becomes: "open", counts: true },
  idle: { becomes: "open", counts: true, waits: true },
  unfinished: { becomes: "open", counts: true },
  "check red": { becomes: "open", counts: true },
  "not checked": { becomes: "open", counts: false },
  question: { becomes: "blocked", counts: false },
  "permission refused": { becomes: "blocked", counts: false },
} as const satisfies Record<string, Rule>

export type EndKind = keyof typeof ENDS

export const isEndKind = (text: unknown): text is EndKind => typeof text === "string" && Object.hasOwn(ENDS, text)

export const ruleOf = (kind: EndKind): Rule => ENDS[kind]

const BY_STATUS: Readonly<Record<string, EndKind>> = { done: "done", reviewing: "reviewing", canceled: "canceled" }

/** Said of a run that has ended, by the check after it: it opens what the agent said to be done. */
export const isOfCheck = (kind: EndKind): boolean => kind === "check red" || kind === "not checked"

/** The task's status counts for more than what was seen of the run, except for a check that came after it. */
export const kindOfEnd = (status: string, seen: EndKind): EndKind =>
  isOfCheck(seen) ? seen : (BY_STATUS[status] ?? seen)

/** A run that no session has begun is no attempt of an agent. */
export const isAttempt = ({ kind, session_id }: { readonly kind: string; readonly session_id: string }): boolean =>
  isEndKind(kind) && ruleOf(kind).counts && session_id !== ""

/** `3 runs: killed, stuck, killed` */
export const attemptsText = (kinds: readonly string[]): string => `${counted(kinds.length, "run")}: ${kinds.join(", ")}`
