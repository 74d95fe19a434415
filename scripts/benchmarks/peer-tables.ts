import { type Criterion, criteriaOf, type Score, subjectsOf, wordsOf } from "./peer-criteria.ts"
import type { Figure, PeerResults, PeerRetentionRow } from "./results.ts"
import { isPeer, SUBJECT_LABELS, SUBJECT_NAMES } from "./subjects.ts"
import { table } from "./table.ts"

const versionsOf = ({ subjects }: PeerResults): string[] => [...new Set(subjects.map(({ version }) => version))]

/** Which peers were measured where, and what came instead. */
export const peerTable = (peers: PeerResults): string => {
  const versions = versionsOf(peers)
  const names = [...new Set(peers.subjects.map(({ subject }) => subject))]
  return table(
    ["Plugin", "Version", ...versions.map((version) => `on OpenCode ${version}`)],
    names.map((name) => {
      const rows = versions.map((version) =>
        peers.subjects.find((each) => each.subject === name && each.version === version),
      )
      const cells = rows.map((row) => {
        if (row?.failure !== undefined) return `not measured: ${row.failure.replaceAll("|", "\\|")}`
        return row?.lacks === undefined ? "measured" : `measured without ${row.lacks}, which it needs`
      })
      return [name, rows.find((row) => row?.release)?.release ?? "", ...cells]
    }),
  )
}

const keptOf = (row: PeerRetentionRow | undefined): string => {
  if (!row) return ""
  const { factsKept, compactions, compacted, turnsKnowingTask, turns, toldToGoOn } = row
  const stopped = toldToGoOn > 0 ? `, told to go on ${toldToGoOn}×` : ""
  const fewer = compacted === compactions ? "" : `, ${compacted} compactions`
  return `${factsKept}/${compactions}, ${turnsKnowingTask}/${turns}${stopped}${fewer}`
}

/** Facts kept and turns that name the task, one row a case. */
export const peerRetentionTable = ({ retention }: PeerResults): string => {
  const names = SUBJECT_NAMES.filter((name) => retention.some(({ subject }) => subject === name))
  const isSameCase = (a: PeerRetentionRow) => (b: PeerRetentionRow) =>
    a.version === b.version && a.summariser === b.summariser && a.compactions === b.compactions
  const cases = retention
    .filter((row) => row.subject === "plain")
    .toSorted((a, b) => a.summariser.localeCompare(b.summariser) || a.compactions - b.compactions)
  return table(
    ["Summariser", "OpenCode", "Compactions", ...names.map((name) => SUBJECT_LABELS[name])],
    cases.map((each) => {
      const cells = names.map((name) => keptOf(retention.filter(isSameCase(each)).find((row) => row.subject === name)))
      return [each.summariser, each.version, String(each.compactions), ...cells]
    }),
  )
}

/** What each subject costs over plain OpenCode, one row a quantity and version. */
export const peerCostTable = (figures: readonly Figure[], peers: PeerResults): string => {
  const rows = versionsOf(peers).flatMap((version) =>
    criteriaOf(figures, peers, version).flatMap(({ what, base, scores }) => {
      if (base === undefined) return []
      const cells = SUBJECT_NAMES.filter((name) => name !== "plain").map(
        (name) => scores.find(({ subject }) => subject === name)?.text ?? "",
      )
      return [[what, version, base, ...cells]]
    }),
  )
  const names = SUBJECT_NAMES.map((name) => SUBJECT_LABELS[name])
  return table(["Measured", "OpenCode", ...names], rows)
}

const overlaps = (a: Score, b: Score): boolean => a.low <= b.high && b.low <= a.high

const sayBetter = ({ what, isLess, scores }: Criterion, peers: PeerResults, version: string): string[] => {
  const baton = scores.find(({ subject }) => subject === "baton")
  if (!baton) return []
  const better = scores.filter(
    ({ subject, value }) => isPeer(subject) && (isLess ? value < baton.value : value > baton.value),
  )
  if (better.length === 0) return []
  const said = better.map((score) => {
    const spread = overlaps(score, baton) ? ", within the spread" : ""
    return `${wordsOf(score.subject, peers, version)} ${score.short}${spread}`
  })
  return [`${what} (${said.join("; ")}; Baton ${baton.short})`]
}

const sayBest = ({ what, isLess, scores }: Criterion): string[] => {
  const baton = scores.find(({ subject }) => subject === "baton")
  const others = scores.filter(({ subject }) => isPeer(subject))
  const isBest =
    baton && others.length > 0 && others.every(({ value }) => (isLess ? baton.value < value : baton.value > value))
  return isBest ? [`${what} (${baton.short})`] : []
}

/** In words, from the figures: where a peer is better than Baton, and where Baton is better than all of them. */
export const sayPeers = (figures: readonly Figure[], peers: PeerResults): string =>
  versionsOf(peers)
    .map((version) => {
      const measured = subjectsOf(peers, version).filter(isPeer)
      if (measured.length === 0) return `On ${version} no peer could be measured.`
      const criteria = criteriaOf(figures, peers, version)
      const better = criteria.flatMap((each) => sayBetter(each, peers, version))
      const best = criteria.flatMap(sayBest)
      const first = better.length === 0 ? "no peer is better than Baton in anything measured" : better.join("; ")
      const second = best.length === 0 ? "nothing" : best.join("; ")
      return `- **On ${version} a peer is better than Baton in:** ${first}.\n- On ${version} Baton is better than every peer in: ${second}.`
    })
    .join("\n")

/** Everything the page shows of them. */
export const peerTables = (figures: readonly Figure[], peers: PeerResults): string[] => [
  sayPeers(figures, peers),
  peerTable(peers),
  peerRetentionTable(peers),
  peerCostTable(figures, peers),
]
