import type { Surroundings } from "../support/faults/fault-guard.ts"
import type { RunResult } from "../support/opencode/opencode-run.ts"
import { isOwedLine, type OwedLog, type SeenPass } from "./observe.ts"
import type { Turn } from "./plan.ts"

/** One run, and the same without the bundle and without faults; `wasKilled` by a fault of the plan. */
export type SeenTurn = { turn: Turn; ending: RunResult; reference: RunResult; wasKilled: boolean }

/** All observations of one storm run, after its clean run. */
export type Observation = {
  readonly turns: readonly SeenTurn[]
  /** Runs without faults: one, and more if Baton stopped calling a slow ledger. */
  readonly clean: readonly RunResult[]
  /** A run that takes this long counts as hanging, in milliseconds. */
  readonly hangLimitMs: number
  readonly owedLogs: readonly OwedLog[]
  /** The user's correction that must be learned. */
  readonly owedLearning: string | undefined
  readonly ledger: { logs: readonly string[]; description: string; learnings: readonly string[] }
  /** Claims when every process has ended, a line each; "No claims". */
  readonly claims: string
  readonly specification: string
  /** Records that a clean run found in the outbox and left, or that cannot be delivered after it, with what is known of each. */
  readonly waiting: readonly string[]
  readonly parked: { found: number; expected: number }
  /** Disk and ledger refused writes at the same time, and the log says that a record is only in memory. */
  readonly mayLose: boolean
  /** The agents' files; undefined is a missing file. */
  readonly files: readonly { path: string; found: string | undefined; allowed: readonly (string | undefined)[] }[]
  readonly surroundings: Record<"before" | "after", Surroundings>
  readonly passes: readonly SeenPass[]
  /**
   * Traces that no run may leave, by kind: accesses outside, places with a text that only a reader of the baits or of a secret can know,
   * processes, state files with incomplete JSON.
   */
  readonly found: Readonly<Record<"outside" | "leak" | "secret" | "left" | "half", readonly string[]>>
  /** Violations that a fault or the storm itself found. */
  readonly complaints: readonly string[]
}

const when = (isWrong: boolean, sentence: string): string[] => (isWrong ? [sentence] : [])

const CLOSED_PASS_STATES = ["returned", "applied", "rejected", "cancelled"]

/** Output of OpenCode 1.2.15 at its first start in a home; the reference is always a first start. */
const FIRST_START =
  /^(?:Performing one time database migration, may take a few minutes\.\.\.|sqlite-migration:\w+|Database migration complete\.)\n/gm

/** Removes the numbers of the storm's summaries and files. */
const plain = (text: string): string =>
  text
    .replaceAll(FIRST_START, "")
    .replaceAll(/Summary \d+ of storm \d+\./g, "A summary.")
    .replaceAll(/\bwork(\/| )\d+/g, "work$1")

type Exit = Pick<RunResult, "exitCode" | "signal">

const judgeEnding = (name: string, ending: RunResult, { exitCode, signal }: Exit, limitMs: number): string[] => {
  if (ending.durationMs >= limitMs) return [`hang: ${name} had not ended after ${Math.round(ending.durationMs)} ms`]
  if (ending.exitCode === exitCode && ending.signal === signal) return []
  const how = `exit ${ending.exitCode ?? ending.signal}, expected ${exitCode ?? signal}`
  return [`crash: ${name} ended with ${how}: ${ending.stderr.slice(-500)}`]
}

const judgeTurns = ({ turns, clean, hangLimitMs }: Observation): string[] => {
  const killedAt = turns.findIndex(({ wasKilled }) => wasKilled)
  const judged = turns.flatMap(({ turn, ending, reference, wasKilled }, index) => {
    const name = `run ${index + 1} (${turn.kind})`
    const wrong = judgeEnding(name, ending, wasKilled ? { exitCode: null, signal: "SIGKILL" } : reference, hangLimitMs)
    // Without the bundle its tools print nothing, and a killed run does other work.
    const isAlike = turn.kind !== "handoff" && !turn.steps.some((step) => step === "review" || step === "code")
    if (wrong.length > 0 || !isAlike || (killedAt >= 0 && killedAt <= index)) return wrong
    return (["stdout", "stderr"] as const).flatMap((stream) => {
      const [printed, expected] = [ending[stream], reference[stream]]
      const text = `output: ${name} prints on ${stream} ${JSON.stringify(printed)}, not ${JSON.stringify(expected)}`
      return when(plain(printed) !== plain(expected), text)
    })
  })
  const expected = { exitCode: 0, signal: null }
  return [...judged, ...clean.flatMap((ending) => judgeEnding("the clean run", ending, expected, hangLimitMs))]
}

const judgeLedger = (seen: Observation): string[] => {
  const { ledger, claims, specification, owedLogs, owedLearning, waiting, parked, mayLose } = seen
  const learned = ledger.learnings.filter((text) => text === owedLearning).length
  const handoffs = /^# (?:Handoff after compaction \d+|Work in progress) \((session \w+)/gm
  const sections = [...ledger.description.matchAll(handoffs)].map(([, session]) => session)
  const logs = owedLogs.flatMap((owed) => {
    const count = ledger.logs.filter((line) => isOwedLine(owed, line)).length
    return [
      ...when(count > 1, `doubled: ${owed.what} is in the ledger ${count} times`),
      ...when(count === 0 && owed.isCertain && !mayLose, `lost: ${owed.what} is not in the ledger`),
    ]
  })
  return [
    ...logs,
    ...when(claims !== "No claims", `claimed: a claim outlives its holder: ${claims}`),
    ...when(!ledger.description.startsWith(specification), "changed: the specification is not what it was"),
    ...when(sections.length > new Set(sections).size, "doubled: the description holds two handoffs of one session"),
    ...when(owedLearning !== undefined && learned === 0 && !mayLose, "lost: what the user said was not learned"),
    ...when(learned > 1, `doubled: the learning is there ${learned} times`),
    ...when(waiting.length > 0, `waiting: ${waiting.length} records are still in the outbox: ${waiting.join(" ")}`),
    ...when(parked.found !== parked.expected, `parked: ${parked.found} records, expected ${parked.expected}`),
  ]
}

const judgeFiles = ({ files, surroundings: { before, after } }: Observation): string[] => {
  const differing = (part: keyof Surroundings) =>
    [...new Set([...Object.keys(before[part]), ...Object.keys(after[part])])].flatMap((path) => {
      const [was, is] = [before[part][path], after[part][path]]
      return was === is ? [] : [{ path, text: `${path} was ${was}, is ${is}` }]
    })
  const isWritten = (path: string) => files.some((file) => file.path === path || file.path.startsWith(`${path}/`))
  return [
    ...files.flatMap(({ path, found, allowed }) => {
      const holds = `${JSON.stringify(found)}, not ${JSON.stringify(allowed)}`
      return when(!allowed.includes(found), `changed: ${path} holds ${holds}`)
    }),
    ...differing("project").flatMap(({ path, text }) => when(!isWritten(path), `changed: ${text}`)),
    ...differing("beside").map(({ text }) => `outside: ${text}`),
  ]
}

const judgePass = ({ id, state, hasCopy, isAudited }: SeenPass): string[] => [
  ...when(state === undefined, `lost: the pass ${id} has no record`),
  ...when(state !== undefined && !CLOSED_PASS_STATES.includes(state), `open: the pass ${id} is ${state}`),
  ...when(hasCopy, `left: the copy of the pass ${id}`),
  ...when(!isAudited, `lost: the audit does not name the pass ${id}`),
]

/** Checks what must hold after any plan. @returns one sentence for each violation */
export const judge = (seen: Observation): string[] => [
  ...judgeTurns(seen),
  ...judgeLedger(seen),
  ...judgeFiles(seen),
  ...seen.passes.flatMap(judgePass),
  ...Object.entries(seen.found).flatMap(([kind, all]) => all.map((each) => `${kind}: ${each}`)),
  ...seen.complaints,
]
