import { judgeEnd, NO_FACTS } from "../compaction/run-facts.ts"
import { redactedLine } from "../host/secrets.ts"
import type { EndKind } from "../ledger/embedded/run-ends.ts"
import type { RunRow } from "../ledger/embedded/store.ts"
import type { Taken } from "./ledger.ts"

// How a run ended, and how the next one begins. Pure.

/** The facts about an agent's process. */
export type Seen = {
  readonly session: string
  /** The newest error that OpenCode printed. */
  readonly error: { readonly name: string; readonly message: string; readonly status: number } | undefined
  readonly tools: number
  readonly tokens: number
  readonly cost: number
  /** The agent's newest words. */
  readonly words: string
  /** The end of what it printed on standard error. */
  readonly complaint: string
}

export const NOTHING_SEEN: Seen = {
  session: "",
  error: undefined,
  tools: 0,
  tokens: 0,
  cost: 0,
  words: "",
  complaint: "",
}

/** The reason for which `baton work` ended an agent. */
export type Stopped = { readonly kind: EndKind; readonly detail: string; readonly next_try?: string }

type Exit = { readonly exitCode: number | null; readonly signal: string | null }

const DETAIL_CHARACTERS = 200

/** The judgement from outside, for an end that the plugin in the agent's process did not see. */
export const judgeExit = (seen: Seen, stopped: Stopped | undefined, { exitCode, signal }: Exit): Stopped => {
  if (stopped) return stopped
  if (signal !== null) return { kind: "killed", detail: `its process was ended by ${signal}` }
  const judged = judgeEnd({ ...NO_FACTS, ...seen, error: seen.error && { ...seen.error, nextTry: "" } })
  if (seen.error !== undefined || exitCode === 0 || seen.tools > 0) return judged
  const last = redactedLine(seen.complaint.trim().split("\n").at(-1) ?? "", DETAIL_CHARACTERS)
  return { ...judged, detail: last === "" ? `opencode exited with ${exitCode}` : last }
}

/** Kinds after which the session goes on. */
const RESUMED: ReadonlySet<string> = new Set([
  "killed",
  "unfinished",
  "idle",
  "check red",
  "not checked",
  "question",
  "permission refused",
  "provider",
  "stopped",
])
/** Of them, those after which it does so once. */
const ONCE: ReadonlySet<string> = new Set(["killed", "idle"])

/** The session that the next run resumes: in its own folder, on its own host, once where it may be to blame. */
export const sessionToResume = (
  earlier: readonly RunRow[],
  place: { host: string; directory: string },
): string | undefined => {
  const [last, before] = [earlier.at(-1), earlier.at(-2)]
  if (!last || last.session_id === "" || !RESUMED.has(last.kind)) return undefined
  if (last.host !== place.host || last.directory !== place.directory) return undefined
  const wasResumed = before?.session_id === last.session_id && before.kind === last.kind
  return ONCE.has(last.kind) && wasResumed ? undefined : last.session_id
}

const asked = (taken: Taken): string => (taken.answer === "" ? "" : `A person answers: ${taken.answer}`)

const HOW_TO_END = (task: string): string =>
  `End with \`prog done ${task}\` or \`prog review ${task}\`, or say what you need with \`prog log ${task} "Blocked: …"\`.`

const WHY: Readonly<Record<string, (taken: Taken, last: RunRow) => string>> = {
  killed: () =>
    "Your process was ended in the middle of the work. Look at `git status` and at what your last command did before you go on.",
  unfinished: ({ task }) => `You stopped before the task was done. ${HOW_TO_END(task)}`,
  idle: ({ task }) => `You stopped without using a tool. Begin with \`prog show ${task}\`. ${HOW_TO_END(task)}`,
  "check red": (_taken, { detail }) =>
    `The check of your work failed: ${detail}\nIts output is in the task's log. The task is open again.`,
  "not checked": ({ task }, { detail }) =>
    `The work was stopped before the check of yours had ended: ${detail}\nThe task is open again. ${HOW_TO_END(task)}`,
  "permission refused": () =>
    "You asked for a permission that nobody could give. Find another way, or say what you need.",
  question: () => "",
  provider: () => "The model's provider failed in the middle.",
  stopped: () => "The work was stopped by a person, who has started it again.",
}

/** The message to a session that goes on. */
export const resumeMessage = (taken: Taken): string => {
  const last = taken.earlier.at(-1)
  const why = last ? (WHY[last.kind]?.(taken, last) ?? "") : ""
  return [`Go on.`, `Task: ${taken.task}`, why, asked(taken)].filter((part) => part !== "").join("\n\n")
}

/** The first message of a session. @param prompt of prompts/worker.md, with `{{task_id}}` */
export const firstMessage = (taken: Taken, prompt: string, notes: readonly string[]): string => {
  const brief = [...notes, asked(taken)].filter((part) => part !== "")
  return [prompt.replaceAll("{{task_id}}", taken.task).trim(), ...brief].join("\n\n")
}
