import { renderDotPlot } from "./dot-plot.ts"
import { renderLinePlot } from "./line-plot.ts"
import { criteriaOf } from "./peer-criteria.ts"
import type { Figure, PeerResults, PeerRetentionRow } from "./results.ts"
import { SUBJECT_LABELS, SUBJECT_NAMES, type SubjectName } from "./subjects.ts"

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const versionsOf = ({ retention }: PeerResults): string[] => [...new Set(retention.map(({ version }) => version))]

/** What each subject costs over plain OpenCode: a panel a quantity, a row a subject. */
export const peerCostPlot = (figures: readonly Figure[], peers: PeerResults): string => {
  const names: readonly SubjectName[] = SUBJECT_NAMES.filter((name) => name !== "plain")
  const versions = versionsOf(peers)
  const criteria = versions.map((version) =>
    criteriaOf(figures, peers, version).filter(({ base }) => base !== undefined),
  )
  const panels = (criteria[0] ?? []).map(({ id, what }) => {
    const dots = criteria.flatMap((each, group) =>
      (each.find((one) => one.id === id)?.scores ?? []).map(({ subject, value, low, high, short }) => {
        const label = short.replace(" characters", "")
        return { row: names.indexOf(subject), group, value, low, high, label }
      }),
    )
    const unit = figures.find((figure) => figure.id === `peers.${id}.baton`)?.unit
    const zero = { value: unit === "×" ? 1 : 0, name: "plain OpenCode" }
    return { title: `${capital(what)}${unit === "characters" ? ", characters" : ""}`, zero, dots }
  })
  return renderDotPlot({
    title: "What each plugin adds to plain OpenCode",
    description:
      "Medians with their 95 % intervals: start of a run, memory, and characters of requests, by plugin and version.",
    groups: versions.map((version) => `OpenCode ${version}`),
    rows: names.map((name) => SUBJECT_LABELS[name]),
    panels,
  })
}

/** What is left after many compactions, a line a subject. */
export const peerRetentionPlot = (peers: PeerResults): string => {
  const { retention } = peers
  const counts = [...new Set(retention.map(({ compactions }) => compactions))].sort((a, b) => a - b)
  const series = (version: string, summariser: string, share: (row: PeerRetentionRow) => number) =>
    SUBJECT_NAMES.map((name) => ({
      name: SUBJECT_LABELS[name],
      dashed: name === "plain",
      values: counts.map((count) => {
        const row = retention.find(
          (each) =>
            each.version === version &&
            each.summariser === summariser &&
            each.compactions === count &&
            each.subject === name,
        )
        return row ? share(row) * 100 : null
      }),
    }))
  const facts = ({ factsKept, compactions }: PeerRetentionRow) => factsKept / compactions
  const task = ({ turnsKnowingTask, turns }: PeerRetentionRow) => (turns === 0 ? 0 : turnsKnowingTask / turns)
  return renderLinePlot({
    title: "What is left after N compactions, by plugin",
    description: "Share of facts kept with a faithful summariser, and of turns that name the task with a careless one.",
    xAxis: "compactions in one session",
    yAxis: "share, %",
    xLabels: counts.map(String),
    yMax: 100,
    panels: versionsOf(peers).flatMap((version) => [
      { title: `Facts kept, faithful, ${version}`, series: series(version, "faithful", facts) },
      { title: `Task named, careless, ${version}`, series: series(version, "careless", task) },
    ]),
  })
}
