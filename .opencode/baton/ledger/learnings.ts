import { isDeepStrictEqual } from "node:util"
import type { Sign } from "../host/state-mark.ts"
import { onOneLine } from "../host/text.ts"
import type { LedgerLearning, NewLearning } from "./ledger.ts"
import type { OutboxEntry } from "./outbox-store.ts"

/** An outbox entry that records one statement of a learning. */
export type LearningEntry = Extract<OutboxEntry, { kind: "learning" }>

/** An outbox entry that retires all active learnings of the folder with this key, or the learning of an agent with this id. */
export type RetireEntry = Extract<OutboxEntry, { kind: "retire" }>

/** An outbox entry that takes back what one message said, because the user undid the message. */
export type WithdrawEntry = Extract<OutboxEntry, { kind: "withdraw" }>

type LearningSource = LearningEntry["source"]

/** Baton's data on a learning besides its summary, stored in the ledger as the learning's detail. */
export type LearningDetail = {
  /** Identifies the sentence in any spelling. */
  readonly key: string
  /** The folder it was learned in, since two folders may have the same project name. */
  readonly folder: string
  /** One of `LEARNING_TYPES`, unchecked. */
  readonly type: string
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
  /** The message that said so. */
  readonly supersededBy?: string | undefined
  /** Of this account's Baton; see `parseSigned`. */
  readonly signature?: string | undefined
}

/** A ledger call that is needed to record an entry. */
export type LearningStep =
  | { readonly kind: "add"; readonly learning: NewLearning }
  | { readonly kind: "edit"; readonly id: string; readonly detail: string }
  | { readonly kind: "retire"; readonly id: string; readonly reason: string }

const HEADING = "Baton learning, version 1"
const KEPT_SOURCES = 20
const NAMES = [
  "Key",
  "Folder",
  "Type",
  "Answered",
  "Confirmed",
  "Times",
  "Said",
  "Forgotten",
  "Superseded",
  "By",
  "Signed",
] as const
type Name = (typeof NAMES)[number]

/** Renders lines of names and values, for users and for `parseDetail`. */
export const renderDetail = (detail: LearningDetail): string => {
  const line = (name: Name, value: string | undefined): string[] =>
    value === undefined || value === "" ? [] : [`${name}: ${onOneLine(value)}`]
  return [
    HEADING,
    ...line("Key", detail.key),
    ...line("Folder", detail.folder),
    ...line("Type", detail.type),
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
    ...line("By", detail.supersededBy),
    ...line("Signed", detail.signature),
  ].join("\n")
}

/**
 * Reads a detail in Baton's form, which an agent can write, too; see `parseSigned`.
 *
 * @returns undefined for a text in no such form
 */
export const parseDetail = (text: string): LearningDetail | undefined => {
  const [heading, ...lines] = text.split("\n")
  if (heading?.trim() !== HEADING) return undefined
  const pairs = lines.map((line) => /^(\w+): (.*)$/.exec(line))
  const values = (name: Name) => pairs.flatMap((pair) => (pair?.[1] === name ? [pair[2] ?? ""] : []))
  const [key = ""] = values("Key")
  const [folder = ""] = values("Folder")
  const [type = ""] = values("Type")
  if (key === "") return undefined
  const sources = values("Said").map((value): LearningSource => {
    const [at = "", sessionID = "", messageID = "", taskID] = value.split(" ")
    return { at, sessionID, messageID, taskID }
  })
  return {
    key,
    folder,
    type,
    answered: values("Answered")[0],
    confirmed: values("Confirmed")[0] === "yes",
    times: Number(values("Times")[0]) || sources.length,
    sources,
    forgotten: values("Forgotten")[0],
    superseded: values("Superseded")[0],
    supersededBy: values("By")[0],
    signature: values("Signed")[0],
  }
}

type Signed = Pick<LedgerLearning, "id" | "summary" | "files">

/** The id is part of it: a copy of a learning that was forgotten or replaced is not signed. */
const textToSign = (project: string, { id, summary, files }: Signed, detail: LearningDetail): string =>
  JSON.stringify([project, id, summary, files, renderDetail({ ...detail, signature: undefined })])

/** Renders the detail of a learning with its signature; see `parseSigned`. */
export const renderSigned = (project: string, learning: Signed, detail: LearningDetail, sign: Sign): string =>
  renderDetail({ ...detail, signature: sign(textToSign(project, learning, detail)) })

/** @returns undefined for what this account's Baton did not write in just these words, such as an agent's `prog learn` */
export const parseSigned = (
  learning: LedgerLearning,
  project: string,
  sign: Sign | undefined,
): LearningDetail | undefined => {
  const detail = parseDetail(learning.detail)
  if (!detail || !sign) return undefined
  return sign(textToSign(project, learning, detail)) === detail.signature ? detail : undefined
}

type Known = { readonly learning: LedgerLearning; readonly detail: LearningDetail }

const isActive = ({ learning }: Known): boolean => learning.status === "active"

const isFrom = ({ sources }: LearningDetail, messageID: string): boolean =>
  sources.some((source) => source.messageID === messageID)

/** The material of a plan. `own`: the folder's learnings that Baton signed. */
type Ledger = {
  readonly project: string
  readonly learnings: readonly LedgerLearning[]
  readonly own: readonly Known[]
  readonly sign: Sign
}

const planEdit = ({ project, sign }: Ledger, { learning, detail }: Known, changed: LearningDetail): LearningStep[] => {
  const signed = renderSigned(project, learning, changed, sign)
  return signed === renderDetail(detail) ? [] : [{ kind: "edit", id: learning.id, detail: signed }]
}

type Addition = Pick<NewLearning, "summary" | "concepts" | "files"> & { readonly detail: LearningDetail }

/** Adds a learning unsigned. Once the ledger has given it an id, a second plan signs it. */
const planAddition = (ledger: Ledger, { summary, concepts, files, detail }: Addition): LearningStep[] => {
  const text = renderDetail({ ...detail, signature: undefined })
  const added = ledger.learnings.find(
    (one) =>
      one.status === "active" && one.summary === summary && isDeepStrictEqual(one.files, files) && one.detail === text,
  )
  if (added) return planEdit(ledger, { learning: added, detail }, detail)
  return [{ kind: "add", learning: { project: ledger.project, summary, concepts, files, detail: text } }]
}

const planLearning = (ledger: Ledger, entry: LearningEntry): LearningStep[] => {
  const { key, folder, summary, concepts, files, answered, confirmed, source } = entry
  const known = ledger.own.filter(({ detail }) => detail.key === key)
  const active = known.find(isActive)
  if (!active) {
    // Removed for good, or this statement of it was superseded.
    if (known.some(({ detail }) => detail.forgotten !== undefined || isFrom(detail, source.messageID))) return []
    const [type = ""] = concepts
    const detail = { key, folder, type, answered, confirmed, times: 1, sources: [source] }
    return planAddition(ledger, { summary, concepts, files, detail })
  }
  const { detail } = active
  const merged: LearningDetail = isFrom(detail, source.messageID)
    ? { ...detail, answered: answered ?? detail.answered, confirmed }
    : {
        ...detail,
        answered: detail.answered ?? answered,
        confirmed: detail.confirmed || confirmed,
        times: detail.times + 1,
        sources: [...detail.sources, source],
      }
  return planEdit(ledger, active, merged)
}

const planRetirement = (ledger: Ledger, { key, as, reason, by }: RetireEntry): LearningStep[] => {
  const agents = ledger.learnings.filter(({ id, status }) => id === key && status === "active")
  const retired = ledger.own.filter((known) => isActive(known) && known.detail.key === key)
  return [
    ...agents.map(({ id }): LearningStep => ({ kind: "retire", id, reason })),
    ...retired.flatMap((known): LearningStep[] => [
      ...planEdit(ledger, known, { ...known.detail, [as]: reason, ...(by === undefined ? {} : { supersededBy: by }) }),
      { kind: "retire", id: known.learning.id, reason },
    ]),
  ]
}

const withoutSource = (detail: LearningDetail, messageID: string): LearningDetail =>
  isFrom(detail, messageID)
    ? {
        ...detail,
        times: detail.times - 1,
        sources: detail.sources.filter((source) => source.messageID !== messageID),
      }
    : detail

const UNDONE = "the user undid the message"

/** Learns again what the message had replaced. */
const planWithdrawal = (ledger: Ledger, { key, messageID }: WithdrawEntry): LearningStep[] => {
  const { own } = ledger
  const withdrawn = own.flatMap((known): LearningStep[] => {
    if (known.detail.key !== key) return []
    const left = withoutSource(known.detail, messageID)
    const isOver = isActive(known) && left.times === 0
    const retire: LearningStep[] = isOver ? [{ kind: "retire", id: known.learning.id, reason: UNDONE }] : []
    return [...planEdit(ledger, known, left), ...retire]
  })
  const isGone = (replaced: string): boolean =>
    !own.some((known) => known.detail.key === replaced && (isActive(known) || known.detail.forgotten !== undefined))
  const replaced = own.filter(
    ({ detail }) => detail.supersededBy === messageID && detail.times > 0 && isGone(detail.key),
  )
  const restored = [...new Map(replaced.map((known) => [known.detail.key, known])).values()]
  return [
    ...withdrawn,
    ...restored.flatMap(({ learning: { summary, concepts, files }, detail }) => {
      const before = { ...detail, superseded: undefined, supersededBy: undefined }
      return planAddition(ledger, { summary, concepts, files, detail: before })
    }),
  ]
}

/**
 * Plans the steps of an entry. Pure; once they are done it plans none, so a delivery can be repeated. After one that adds, a second
 * plan signs what was added.
 */
export const planSteps = (
  learnings: readonly LedgerLearning[],
  entry: LearningEntry | RetireEntry | WithdrawEntry,
  sign: Sign,
): LearningStep[] => {
  const { project, folder } = entry
  const own = learnings.flatMap((learning): Known[] => {
    const detail = parseSigned(learning, project, sign)
    return detail?.folder === folder ? [{ learning, detail }] : []
  })
  const ledger = { project, learnings, own, sign }
  switch (entry.kind) {
    case "learning":
      return planLearning(ledger, entry)
    case "retire":
      return planRetirement(ledger, entry)
    case "withdraw":
      return planWithdrawal(ledger, entry)
  }
}
