import type { LedgerLearning } from "../ledger/learning-json.ts"
import { type LearningDetail, parseDetail } from "../ledger/learning-record.ts"
import { isLearningType, LEARNING_TYPES, type LearningType } from "./learning-type.ts"
import type { LearningProject } from "./project.ts"
import type { SessionRecord } from "./session-record.ts"

/** A learning as a person sees it; also what `--json` prints. */
export type ReportedLearning = {
  readonly id: string
  readonly type: LearningType
  readonly sentence: string
  readonly status: "active" | "stale"
  readonly files: readonly string[]
  readonly concepts: readonly string[]
  /** Where it came from, and what became of it. */
  readonly origin: LearningDetail
  /** When it was given to a model, the newest first; of sessions that still exist. */
  readonly used: readonly { readonly at: string; readonly sessionID: string }[]
}

export const reportLearnings = (
  learnings: readonly LedgerLearning[],
  records: readonly SessionRecord[],
  { onlyFolder }: LearningProject,
): ReportedLearning[] => {
  const uses = records.flatMap(({ sessionID, given }) => given.map(({ at, keys }) => ({ at, sessionID, keys })))
  return learnings.flatMap((learning): ReportedLearning[] => {
    const origin = parseDetail(learning.detail)
    const type = learning.concepts.find(isLearningType)
    if (!origin || !type || (onlyFolder !== undefined && origin.folder !== onlyFolder)) return []
    const { id, summary: sentence, files, concepts } = learning
    const used = uses
      .filter(({ keys }) => keys.includes(origin.key))
      .map(({ at, sessionID }) => ({ at, sessionID }))
      .toSorted((one, other) => (one.at < other.at ? 1 : -1))
    const status = learning.status === "active" ? "active" : "stale"
    return [{ id, type, sentence, status, files, concepts, origin, used }]
  })
}

const day = (at: string | undefined): string => at?.slice(0, 10) ?? "never"

export const renderLine = ({ id, type, sentence, status, origin, used }: ReportedLearning): string => {
  const said = `${origin.times}× since ${day(origin.sources[0]?.at)}`
  const mark = status === "stale" ? " [stale]" : ""
  return `${id}  ${type.padEnd(12)}  ${said}, used ${used.length}×${mark}  ${sentence}`
}

export const renderWhole = (learning: ReportedLearning): string => {
  const { id, type, sentence, status, files, origin, used } = learning
  const line = (name: string, value: string | undefined): string[] =>
    value ? [`${`${name}:`.padEnd(12)}${value}`] : []
  return [
    sentence,
    "",
    ...line("ID", id),
    ...line("Type", type),
    ...line("Status", status),
    ...line("Said", `${origin.times}×`),
    ...origin.sources.map(({ at, sessionID, taskID }) => `  ${at} in ${sessionID}${taskID ? ` on ${taskID}` : ""}`),
    ...line("Answered", origin.answered),
    ...line("Confirmed", origin.confirmed ? "yes: the agent changed its work, unopposed" : "no"),
    ...line("Files", files.join(", ")),
    ...line("Forgotten", origin.forgotten),
    ...line("Replaced", origin.superseded),
    ...line("Used", `${used.length}×`),
    ...used.map(({ at, sessionID }) => `  ${at} in ${sessionID}`),
  ].join("\n")
}

const TITLES: Record<LearningType, string> = {
  correction: "Corrections",
  decision: "Decisions",
  preference: "Preferences",
  anti_pattern: "What did not work",
  pattern: "How it is done here",
  insight: "Good to know",
}

/** Markdown for people, of the active learnings; nothing reads it back. */
export const renderExport = (learnings: readonly ReportedLearning[], { name }: LearningProject): string => {
  const sections = LEARNING_TYPES.flatMap((type) => {
    const found = learnings.filter((one) => one.type === type && one.status === "active")
    if (found.length === 0) return []
    const items = found.map(({ sentence, origin, id }) => {
      const text = sentence.replaceAll(/\s+/g, " ").replaceAll(/[<>[\]*_`\\]/g, (sign) => `\\${sign}`)
      return `- ${text} (${day(origin.sources.at(-1)?.at)}, ${id})`
    })
    return [`## ${TITLES[type]}`, "", ...items, ""]
  })
  const note = "Rendered by `baton learned export`; the ledger has the originals, and nothing reads this file."
  return [`# Learned in ${name}`, "", note, "", ...(sections.length > 0 ? sections : ["Nothing yet.", ""])].join("\n")
}
