import { quoted } from "../../.opencode/baton/host/quoted.ts"
import { parseHandoffTitle, splitHandoffs } from "../../.opencode/baton/ledger/description.ts"
import { isCompacted, type ModelRequest } from "../../test/support/model/scripted-model.ts"
import type { Line } from "./line.ts"
import { BEGIN, CONSTRAINT, LATER, TASK, UNDONE } from "./slug-project.ts"

/** `at` is RFC 3339 as prog prints it. */
export type RecordedCompaction = { number: number; at: string; line: string }

/** The compactions in a task's log, oldest first. */
export const readCompactions = (logs: readonly { message: string; created_at: string }[]): RecordedCompaction[] =>
  logs.flatMap(({ message, created_at }) => {
    const [, number, line = ""] = /^Compaction (\d+): (.*)/s.exec(message) ?? []
    return number ? [{ number: Number(number), at: created_at, line }] : []
  })

/** Headings in a new session's first request that describe the state of the work, by name. */
export const STANDING = {
  "last handoff": "The last handoff",
  "user's words": "The user's own words, newest first",
  log: "Last lines of the log (from prog, where agents write, too)",
  git: "Where the work stood",
} as const

/** Facts that an agent needs before it can work, and whether a request tells them. */
export const FACTS: readonly (readonly [name: string, isTold: (conversation: string, taskID: string) => boolean])[] = [
  ["task ID", (conversation, taskID) => conversation.includes(taskID)],
  ["role", (conversation) => /\brole: worker\b|^# worker\b/im.test(conversation)],
  ["spec", (conversation) => conversation.includes(TASK.specification)],
  ["done when", (conversation) => conversation.includes(TASK.definitionOfDone)],
  ["constraint", (conversation) => conversation.includes(CONSTRAINT)],
  // Said after the first message: before it, among the newest of them.
  [
    "later word",
    (conversation) => {
      const words = conversation.slice(Math.max(0, conversation.lastIndexOf(STANDING["user's words"])))
      const isFirst = words.indexOf(LATER) < words.indexOf(CONSTRAINT) || !isCompacted({ conversation })
      return !conversation.includes(BEGIN) || (words.includes(LATER) && isFirst)
    },
  ],
  ["undone gone", (conversation) => !conversation.includes(UNDONE)],
]

/** On OpenCode 2 no message of the demo is undone. */
export const factsOf = ({ number }: Pick<Line, "number">): typeof FACTS => (number === 1 ? FACTS : FACTS.slice(0, -1))

/** A request without any conversation before it: it is all the model can know at that moment. */
export type FirstRequest = { after: "nothing" | "compaction"; conversation: string; isTold: readonly boolean[] }

/** The first turn request of each session, and the one after each compaction, in order. */
export const firstRequests = (
  requests: readonly Pick<ModelRequest, "kind" | "conversation" | "messages">[],
  taskID: string,
  facts = FACTS,
): FirstRequest[] =>
  requests
    .filter(({ kind }) => kind !== "title")
    .flatMap(({ kind, conversation, messages }, at, all) => {
      if (kind !== "turn") return []
      const isAfter = all[at - 1]?.kind === "compaction"
      if (!isAfter && messages.some(({ role }) => role === "assistant")) return []
      const after = isAfter ? "compaction" : "nothing"
      return [{ after, conversation, isTold: facts.map(([, isTold]) => isTold(conversation, taskID)) }]
    })

/** Ledger entries of a session that ended in the middle of its work; the description as it is once they are all delivered. */
export type LeftBehind = { sessionID: string; description: string; logs: readonly { message: string }[] }

/** The lines below a heading of a request, without fences; empty if it is missing. */
export const linesBelow = (conversation: string, heading: string): string[] => {
  const parts = conversation.split(/\n###? /)
  const [, ...lines] = parts.find((part) => part.startsWith(`${heading}\n`))?.split("\n") ?? []
  return lines.filter((line) => line !== "" && !line.startsWith("```"))
}

/** Names of these parts that a request lacks or tells differently from the ledger. */
export const untoldIn = (conversation: string, { sessionID, description, logs }: LeftBehind): string[] => {
  const handoff =
    splitHandoffs(description).handoffs.find((section) => parseHandoffTitle(section)?.sessionID === sessionID) ?? ""
  const [, text = "no handoff"] = handoff.split("\n").filter((line) => line !== "")
  const below = (part: keyof typeof STANDING): string[] => linesBelow(conversation, STANDING[part])
  const [written = "", ...told] = below("last handoff")
  const holds: Record<keyof typeof STANDING, boolean> = {
    "last handoff":
      new RegExp(`^Written [\\d-]+ [\\d:]+ UTC by session ${sessionID}\\b`).test(written) && told.includes(text),
    "user's words": [LATER, CONSTRAINT].every((words) => below("user's words").includes(words)),
    log: logs
      .filter(({ message }) => !message.startsWith("Compaction "))
      .slice(-2)
      .every(({ message }) => below("log").some((line) => line.includes(quoted(message)))),
    // Without git this part is empty.
    git: !handoff.includes("\n- Git: ") || /, \d+ commits? since$/.test(below("git").at(-1) ?? ""),
  }
  return Object.entries(holds).flatMap(([part, isTold]) => (isTold ? [] : [part]))
}

/** Results of one demo run that can be seen from outside. */
export type Evidence = {
  exitCode: number | null
  /** Compactions that OpenCode made. */
  compactions: number
  recorded: readonly RecordedCompaction[]
  specification: { ordered: string; inLedger: string }
  /** Whether each session's first request and each after a compaction tells the facts; undefined if the demo does not see them. */
  told?: readonly (readonly boolean[])[] | undefined
  /** Parts about the state of the work that the session after the crash lacked; undefined without such a session. */
  untold?: readonly string[] | undefined
  test: { passes: boolean; summary: string }
  isFrozenFileUntouched: boolean
  status: string
  /** Files of this run elsewhere; undefined if OpenCode runs in the user's own home, where it keeps its log. */
  traces?: readonly string[] | undefined
  root: string
}

/** A reported claim depends on the user's own model and does not fail the demo. */
export type Claim = { weight: "asserted" | "reported"; holds: boolean; text: string }

/** Number of compactions in the scripted work; with fewer, the demo does not show everything it claims. */
export const EXPECTED_COMPACTIONS = 4

/** @param scripted the demo's own model was used: only then are claims about the agent asserted */
export const judge = (evidence: Evidence, scripted: boolean): Claim[] => {
  const { exitCode, compactions, recorded, specification, told, untold, test, status, traces, root } = evidence
  const claims: Claim[] = []
  const assert = (holds: boolean, text: string) => claims.push({ weight: "asserted", holds, text })
  const ofAgent = (holds: boolean, text: string) =>
    claims.push({ weight: scripted ? "asserted" : "reported", holds, text })
  if (scripted) {
    const isEnough = exitCode === 0 && compactions >= EXPECTED_COMPACTIONS
    const text = `OpenCode went through ${EXPECTED_COMPACTIONS} compactions and ended well`
    assert(isEnough, `${text} (${compactions} seen, exit code ${exitCode})`)
  } else {
    assert(exitCode === 0, `OpenCode ended well (exit code ${exitCode})`)
    ofAgent(compactions > 0, `The conversation was compacted (${compactions} times)`)
  }
  const isInOrder = recorded.length === compactions && recorded.every(({ number }, index) => number === index + 1)
  assert(isInOrder, `Each compaction stands in the ledger exactly once (${recorded.length} of ${compactions})`)
  const bytes = Buffer.byteLength(specification.ordered)
  const isKept = specification.inLedger === specification.ordered
  ofAgent(isKept, `The specification in the ledger is as it was ordered (${bytes} bytes, compared one by one)`)
  if (told) {
    const complete = told.filter((facts) => facts.every(Boolean)).length
    const expected = (untold ? 2 : 1) + compactions
    const undone = told[0]?.length === FACTS.length ? ", and nothing undone" : ""
    const text = `Each request above tells all of it, the user's later word, too${undone}`
    assert(complete === expected && compactions > 0, `${text} (${complete} of ${expected})`)
    const remark = untold?.map((part) => `, but not the ${part}`).join("") ?? " (it never came to that)"
    const crash = "After kill -9 a new session is told the last handoff, the user's words, the log and git"
    assert(untold?.length === 0, `${crash}${remark}`)
  }
  const isDone = test.passes && status === "done"
  ofAgent(isDone, `The test passes (${test.summary}) and the task is done (status: ${status})`)
  ofAgent(evidence.isFrozenFileUntouched, "The user's constraint was obeyed: slugify.test.js is unchanged")
  if (traces) {
    const found = traces.length > 0 ? `, but ${traces.slice(0, 3).join(", ")}` : ""
    assert(traces.length === 0, `Nothing of this run is outside ${root} (home, checkout, temporary files)${found}`)
  }
  return claims
}

export const hasFailed = (claims: readonly Claim[]): boolean =>
  claims.some(({ weight, holds }) => weight === "asserted" && !holds)
