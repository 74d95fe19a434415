import type { LedgerLearning, NewLearning } from "./ledger.ts"
import type { OutboxEntry } from "./outbox-store.ts"

/** An outbox entry that records one statement of a learning. */
export type LearningEntry = Extract<OutboxEntry, { kind: "learning" }>

/** An outbox entry that retires all active learnings of the folder with this key, or the learning of an agent with this id. */
export type RetireEntry = Extract<OutboxEntry, { kind: "retire" }>

type LearningSource = LearningEntry["source"]

/** Baton's data on a learning besides its summary, stored in the ledger as the learning's detail. */
export type LearningDetail = {
  /** Identifies the sentence in any spelling. */
  readonly key: string
  /** The folder it was learned in, since two folders may have the same project name. */
  readonly folder: string
  /** The agent's action before it, in a few words. */
  readonly answered?: string | undefined
  /** True if the agent then changed its work and the user did not object. */
  readonly confirmed: boolean
  readonly times: number
  /** The newest sources, oldest first. */
  readonly sources: readonly LearningSource[]
  /** Reason and time of its removal by a user or an agent. */
  readonly forgotten?: string | undefined
  /** Date and text of the statement that replaced it. */
  readonly superseded?: string | undefined
}

/** A ledger call that is needed to record an entry. */
export type LearningStep =
  | { readonly kind: "add"; readonly learning: NewLearning }
  | { readonly kind: "edit"; readonly id: string; readonly detail: string }
  | { readonly kind: "retire"; readonly id: string; readonly reason: string }

const HEADING = "Baton learning, version 1"
const KEPT_SOURCES = 20
const NAMES = ["Key", "Folder", "Answered", "Confirmed", "Times", "Said", "Forgotten", "Superseded"] as const
type Name = (typeof NAMES)[number]

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim()

/** Renders lines of names and values, for users and for `parseDetail`. */
export const renderDetail = (detail: LearningDetail): string => {
  const line = (name: Name, value: string | undefined): string[] =>
    value === undefined || value === "" ? [] : [`${name}: ${oneLine(value)}`]
  return [
    HEADING,
    ...line("Key", detail.key),
    ...line("Folder", detail.folder),
    ...line("Answered", detail.answered),
    ...line("Confirmed", detail.confirmed ? "yes" : "no"),
    ...line("Times", String(detail.times)),
    ...detail.sources
      .slice(-KEPT_SOURCES)
      .flatMap(({ at, sessionID, messageID, taskID = "" }) =>
        line("Said", `${at} ${sessionID} ${messageID} ${taskID}`),
      ),
    ...line("Forgotten", detail.forgotten),
    ...line("Superseded", detail.superseded),
  ].join("\n")
}

/** Tells whether Baton made a learning, of any version; others come from `prog learn`. */
export const isBatons = (detail: string): boolean => detail.startsWith("Baton learning")

/** @returns undefined for a learning that is not Baton's */
export const parseDetail = (text: string): LearningDetail | undefined => {
  const [heading, ...lines] = text.split("\n")
  if (heading?.trim() !== HEADING) return undefined
  const pairs = lines.map((line) => /^(\w+): (.*)$/.exec(line))
  const values = (name: Name) => pairs.flatMap((pair) => (pair?.[1] === name ? [pair[2] ?? ""] : []))
  const [key = ""] = values("Key")
  const [folder = ""] = values("Folder")
  if (key === "") return undefined
  const sources = values("Said").map((value): LearningSource => {
    const [at = "", sessionID = "", messageID = "", taskID] = value.split(" ")
    return { at, sessionID, messageID, taskID }
  })
  return {
    key,
    folder,
    answered: values("Answered")[0],
    confirmed: values("Confirmed")[0] === "yes",
    times: Number(values("Times")[0]) || sources.length,
    sources,
    forgotten: values("Forgotten")[0],
    superseded: values("Superseded")[0],
  }
}

type Known = { readonly learning: LedgerLearning; readonly detail: LearningDetail }

const findKnown = (learnings: readonly LedgerLearning[], { folder, key }: LearningEntry | RetireEntry): Known[] =>
  learnings.flatMap((learning) => {
    const detail = parseDetail(learning.detail)
    return detail?.key === key && detail.folder === folder ? [{ learning, detail }] : []
  })

const planLearning = (known: readonly Known[], entry: LearningEntry): LearningStep[] => {
  const { key, folder, project, summary, concepts, files, answered, confirmed, source } = entry
  const isFrom = ({ sources }: LearningDetail) => sources.some(({ messageID }) => messageID === source.messageID)
  const active = known.find(({ learning }) => learning.status === "active")
  if (!active) {
    // Removed for good, or this statement of it was superseded.
    if (known.some(({ detail }) => detail.forgotten !== undefined || isFrom(detail))) return []
    const detail = renderDetail({ key, folder, answered, confirmed, times: 1, sources: [source] })
    return [{ kind: "add", learning: { project, summary, concepts, files, detail } }]
  }
  const { learning, detail } = active
  const merged: LearningDetail = isFrom(detail)
    ? { ...detail, answered: answered ?? detail.answered, confirmed }
    : {
        ...detail,
        answered: detail.answered ?? answered,
        confirmed: detail.confirmed || confirmed,
        times: detail.times + 1,
        sources: [...detail.sources, source],
      }
  const text = renderDetail(merged)
  return text === renderDetail(detail) ? [] : [{ kind: "edit", id: learning.id, detail: text }]
}

const planRetirement = (learnings: readonly LedgerLearning[], entry: RetireEntry): LearningStep[] => {
  const active = learnings.filter(({ status }) => status === "active")
  const agents = active.filter(({ id, detail }) => id === entry.key && !isBatons(detail))
  return [
    ...agents.map(({ id }): LearningStep => ({ kind: "retire", id, reason: entry.reason })),
    ...findKnown(active, entry).flatMap(({ learning: { id }, detail }): LearningStep[] => {
      const marked = renderDetail({ ...detail, [entry.as]: entry.reason })
      const edit: LearningStep[] = marked === renderDetail(detail) ? [] : [{ kind: "edit", id, detail: marked }]
      return [...edit, { kind: "retire", id, reason: entry.reason }]
    }),
  ]
}

/** Plans the steps of an entry. Pure; once they are done it plans none, so a delivery can be repeated. */
export const planSteps = (learnings: readonly LedgerLearning[], entry: LearningEntry | RetireEntry): LearningStep[] =>
  entry.kind === "retire" ? planRetirement(learnings, entry) : planLearning(findKnown(learnings, entry), entry)
