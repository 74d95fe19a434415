import { estimateTokens } from "../../test/support/request-size.ts"
import type { Figure, PeerResults, PeerRetentionRow } from "./results.ts"
import { SUBJECT_LABELS, SUBJECT_NAMES, type SubjectName } from "./subjects.ts"
import { formatAddition, formatNumber, formatValue } from "./table.ts"

export type Score = {
  subject: SubjectName
  /** What subjects are compared by, with the interval around it. */
  value: number
  low: number
  high: number
  /** For a sentence, and for a cell of the table. */
  short: string
  text: string
}

/** One thing in which subjects are compared. */
export type Criterion = {
  id: string
  what: string
  /** Whether less is better. */
  isLess: boolean
  /** Plain OpenCode's own value; absent where the scores are no costs. */
  base?: string
  scores: Score[]
}

const COSTS = [
  { id: "start", what: "the start of a run of one turn" },
  { id: "memory", what: "memory after one turn" },
  { id: "first-turn", what: "the first turn's request" },
  { id: "later-turn", what: "a turn's request after a compaction" },
  { id: "compaction", what: "a compaction request" },
  { id: "whole", what: "all requests of the longest session" },
] as const

const KEPT = [
  {
    id: "facts",
    what: "facts kept after the most compactions, faithful summariser",
    summariser: "faithful",
    share: ({ factsKept, compactions }: PeerRetentionRow) => [factsKept, compactions],
  },
  {
    id: "task",
    what: "turns that name the task after the most compactions, careless summariser",
    summariser: "careless",
    share: ({ turnsKnowingTask, turns }: PeerRetentionRow) => [turnsKnowingTask, turns],
  },
] as const

const withSign = (value: number, text: string): string => (value < 0 ? `−${text}` : `+${text}`)

const shortOf = ({ unit, median }: Figure): string => {
  if (unit === "×") return formatValue(median, unit)
  if (unit === "characters") return `${withSign(median, formatNumber(Math.abs(median)))} characters`
  return withSign(median, formatValue(Math.abs(median), unit))
}

const textOf = (figure: Figure): string => {
  const { unit, median, low = figure.min, high = figure.max } = figure
  if (unit === "characters") return median === 0 ? "0" : `**${formatAddition(median)}**`
  return `**${shortOf(figure)}** (${formatNumber(low)} … ${formatNumber(high)})`
}

const baseOf = ({ unit, median }: Figure): string =>
  unit === "characters"
    ? `${formatNumber(median)} (${formatNumber(estimateTokens(median))})`
    : formatValue(median, unit)

const costs = (figures: readonly Figure[], version: string): Criterion[] =>
  COSTS.flatMap(({ id, what }) => {
    const of = (subject: SubjectName) =>
      figures.find((each) => each.version === version && each.id === `peers.${id}.${subject}`)
    const plain = of("plain")
    if (!plain) return []
    const scores = SUBJECT_NAMES.flatMap((subject): Score[] => {
      const figure = of(subject)
      if (!figure || subject === "plain") return []
      const { median, low = figure.min, high = figure.max } = figure
      return [{ subject, value: median, low, high, short: shortOf(figure), text: textOf(figure) }]
    })
    return [{ id, what, isLess: true, base: baseOf(plain), scores }]
  })

const kept = ({ retention }: PeerResults, version: string): Criterion[] =>
  KEPT.map(({ id, what, summariser, share }) => {
    const rows = retention.filter((row) => row.version === version && row.summariser === summariser)
    const most = Math.max(0, ...rows.map(({ compactions }) => compactions))
    const scores = rows.flatMap((row): Score[] => {
      if (row.compactions !== most || row.subject === "plain") return []
      const [part = 0, all = 0] = share(row)
      const value = all === 0 ? 0 : part / all
      const short = `${part} of ${all}`
      return [{ subject: row.subject, value, low: value, high: value, short, text: short }]
    })
    return { id, what, isLess: false, scores }
  })

/** Everything that subjects are compared in on one version, as far as there are figures. */
export const criteriaOf = (figures: readonly Figure[], peers: PeerResults, version: string): Criterion[] => [
  ...costs(figures, version),
  ...kept(peers, version),
]

/** The subjects that were measured on a version. */
export const subjectsOf = ({ retention }: PeerResults, version: string): SubjectName[] =>
  SUBJECT_NAMES.filter((name) => retention.some((row) => row.version === version && row.subject === name))

/** A subject's name, and what it lacked. */
export const wordsOf = (subject: SubjectName, { subjects }: PeerResults, version: string): string => {
  const lacks = subjects.find((row) => row.subject === subject && row.version === version)?.lacks
  return lacks === undefined ? SUBJECT_LABELS[subject] : `${SUBJECT_LABELS[subject]} without ${lacks}`
}
