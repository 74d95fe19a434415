import { splitHandoff } from "../../.opencode/baton/ledger/description.ts"
import type { ModelRequest } from "../../test/support/model/scripted-model.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"

/** A task as `prog show --json` prints it. */
export type LedgerTask = {
  id: string
  status: string
  description: string
  logs: readonly { message: string; created_at: string }[]
}

/** `at` is RFC 3339 as prog gives it. */
export type RecordedCompaction = { number: number; at: string; line: string }

/** The compactions in a task's log, oldest first. */
export const recordedCompactions = ({ logs }: Pick<LedgerTask, "logs">): RecordedCompaction[] =>
  logs.flatMap(({ message, created_at }) => {
    const found = /^Compaction (\d+): (.*)/s.exec(message)
    return found ? [{ number: Number(found[1]), at: created_at, line: found[2] ?? "" }] : []
  })

/** What an agent has to know before it can work, and whether a request tells it. */
export type Knowledge = Record<"task" | "role" | "specification" | "definitionOfDone" | "constraint", boolean>

export const knowledgeIn = (conversation: string, taskID: string): Knowledge => ({
  task: conversation.includes(taskID),
  role: /\brole: worker\b|^# worker\b/im.test(conversation),
  specification: conversation.includes(TASK.specification),
  definitionOfDone: conversation.includes(TASK.definitionOfDone),
  constraint: conversation.includes(CONSTRAINT),
})

/** A request that is all the model can know at that moment: nothing of the conversation comes before it. */
export type FirstRequest = { after: "nothing" | "compaction"; conversation: string; knowledge: Knowledge }

/** The first request for a turn of each session, and the one after each compaction, in order. */
export const firstRequests = (
  requests: readonly Pick<ModelRequest, "kind" | "conversation" | "messages">[],
  taskID: string,
): FirstRequest[] =>
  requests
    .filter(({ kind }) => kind !== "title")
    .flatMap(({ kind, conversation, messages }, at, all) => {
      if (kind !== "turn") return []
      const isCompacted = all[at - 1]?.kind === "compaction"
      if (!isCompacted && messages.some(({ role }) => role === "assistant")) return []
      const after = isCompacted ? "compaction" : "nothing"
      return [{ after, conversation, knowledge: knowledgeIn(conversation, taskID) }]
    })

/** What a session has left in the ledger that ended in the middle of its work. */
export type LeftBehind = { sessionID: string; description: string; logs: readonly { message: string }[] }

/** The parts of a new session's first request that say where the work stood, by name. */
export const STANDING = {
  "last handoff": "The last handoff",
  "first brief": "What the user asked that session for, word for word",
  log: "Last lines of the log",
  git: "Where the work stood",
} as const

/** The lines below a heading of a request; none where it is missing. */
export const linesBelow = (conversation: string, heading: string): string[] => {
  const parts = conversation.split("\n## ")
  const [, ...lines] = parts.find((part) => part.startsWith(`${heading}\n`))?.split("\n") ?? []
  return lines.filter((line) => line !== "")
}

/** Which of these parts a request does not tell as they were left behind. */
export const untoldIn = (conversation: string, { sessionID, description, logs }: LeftBehind): string[] => {
  const { handoff = "" } = splitHandoff(description)
  const [, text = "no handoff"] = handoff.split("\n").filter((line) => line !== "")
  const below = (part: keyof typeof STANDING): string[] => linesBelow(conversation, STANDING[part])
  const [written = "", ...told] = below("last handoff")
  const holds: Record<keyof typeof STANDING, boolean> = {
    "last handoff":
      new RegExp(`^Written [\\d-]+ [\\d:]+ UTC by session ${sessionID}\\b`).test(written) && told.includes(text),
    "first brief": below("first brief").includes(CONSTRAINT),
    log: logs.slice(-2).every(({ message }) => below("log").some((line) => line.endsWith(`UTC: ${message}`))),
    // A machine without git has nothing to tell.
    git: !handoff.includes("\n- Git: ") || /, \d+ commits? since$/.test(below("git").at(-1) ?? ""),
  }
  return Object.entries(holds).flatMap(([part, isTold]) => (isTold ? [] : [part]))
}

/** What one demo run left behind, as far as anybody can see it from outside. */
export type Evidence = {
  exitCode: number | null
  /** Compactions that OpenCode made. */
  compactions: number
  recorded: readonly RecordedCompaction[]
  specification: { ordered: string; inLedger: string }
  /** What the first request of each session and after each compaction told; undefined when the demo does not see them. */
  knowledge?: readonly Knowledge[] | undefined
  /** What the session after the crash was not told of where the work stood; undefined when there was none. */
  untold?: readonly string[] | undefined
  test: { passes: boolean; summary: string }
  isFrozenFileUntouched: boolean
  status: string
  /** Files of this run elsewhere; undefined when OpenCode runs in the user's own home, where it keeps its log. */
  traces?: readonly string[] | undefined
  root: string
}

/** A reported claim depends on what a model of the user's own does; it fails nothing. */
export type Claim = { weight: "asserted" | "reported"; holds: boolean; text: string }

/** As many compactions as the scripted work brings about; with fewer, the demo shows less than it says. */
export const EXPECTED_COMPACTIONS = 4

/** @param scripted whether the demo's own model was used: only then can it promise what the agent does */
export const judge = (evidence: Evidence, scripted: boolean): Claim[] => {
  const { exitCode, compactions, recorded, specification, knowledge, untold, test, status, traces, root } = evidence
  const claims: Claim[] = []
  const assert = (holds: boolean, text: string) => claims.push({ weight: "asserted", holds, text })
  const ofAgent = (holds: boolean, text: string) =>
    claims.push({ weight: scripted ? "asserted" : "reported", holds, text })
  if (scripted) {
    const seen = `(${compactions} seen, exit code ${exitCode})`
    const isEnough = exitCode === 0 && compactions >= EXPECTED_COMPACTIONS
    assert(isEnough, `OpenCode went through ${EXPECTED_COMPACTIONS} compactions and ended well ${seen}`)
  } else {
    assert(exitCode === 0, `OpenCode ended well (exit code ${exitCode})`)
    ofAgent(compactions > 0, `The conversation was compacted (${compactions} times)`)
  }
  assert(
    recorded.length === compactions && recorded.every(({ number }, index) => number === index + 1),
    `Each compaction stands in the ledger exactly once (${recorded.length} of ${compactions})`,
  )
  const bytes = Buffer.byteLength(specification.ordered)
  ofAgent(
    specification.inLedger === specification.ordered,
    `The specification in the ledger is as it was ordered (${bytes} bytes, compared one by one)`,
  )
  if (knowledge) {
    const complete = knowledge.filter((known) => Object.values(known).every(Boolean)).length
    const expected = (untold ? 2 : 1) + compactions
    assert(
      complete === expected && compactions > 0,
      `Each request above tells task, role, specification, definition of done and constraint (${complete} of ${expected})`,
    )
    const remark = untold ? untold.map((part) => `, but not the ${part}`).join("") : " (it never came to that)"
    assert(
      untold?.length === 0,
      `After kill -9 a new session is told the last handoff, the first brief, the log and git${remark}`,
    )
  }
  ofAgent(
    test.passes && status === "done",
    `The test passes (${test.summary}) and the task is done (status: ${status})`,
  )
  ofAgent(evidence.isFrozenFileUntouched, "The user's constraint was obeyed: slugify.test.js is unchanged")
  if (traces) {
    const found = traces.length > 0 ? `, but ${traces.slice(0, 3).join(", ")}` : ""
    assert(traces.length === 0, `Nothing of this run is outside ${root} (home, checkout, temporary files)${found}`)
  }
  return claims
}

export const hasFailed = (claims: readonly Claim[]): boolean =>
  claims.some(({ weight, holds }) => weight === "asserted" && !holds)
