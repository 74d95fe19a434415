import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { sayPeers } from "../../scripts/benchmarks/peer-tables.ts"
import type { Figure, PeerRetentionRow, Results } from "../../scripts/benchmarks/results.ts"
import {
  isPeer,
  PEER_NAMES,
  PEERS_MANIFEST,
  readPeerVersions,
  SUBJECT_LABELS,
  SUBJECT_NAMES,
  type SubjectName,
} from "../../scripts/benchmarks/subjects.ts"
import { promised } from "../requirements.ts"
import { BOTH_ENDS, REPOSITORY } from "../support/opencode-binary.ts"

const DOCS = join(REPOSITORY, "docs")
const page = readFileSync(join(DOCS, "benchmarks.md"), "utf8")
const results = JSON.parse(readFileSync(join(DOCS, "benchmarks", "results.json"), "utf8")) as Results

const { figures = [], peers } = results.measurements.peers ?? {}
if (!peers) throw new Error("results.json has no peers; run ./scripts/bench peers")

describe.each(BOTH_ENDS)("on OpenCode $version", ({ version }) => {
  const rows = peers.retention.filter((row) => row.version === version)
  const measured = SUBJECT_NAMES.filter(
    (name) => !peers.subjects.some((row) => row.version === version && row.subject === name && row.failure),
  )

  test(promised("peers.C1", "every peer is measured on all of the work, or the page says what came instead"), () => {
    for (const { subject, failure, release } of peers.subjects.filter((row) => row.version === version)) {
      expect(release, subject).toBe(isPeer(subject) ? readPeerVersions()[subject] : undefined)
      if (failure !== undefined) expect(page).toContain(`not measured: ${failure.replaceAll("|", "\\|")}`)
    }
    const cases = ["faithful", "careless"].flatMap((summariser) =>
      [1, 5, 20].flatMap((compactions) => measured.map((subject) => `${subject} ${summariser} ${compactions}`)),
    )
    const seen = rows.map(({ subject, summariser, compactions }) => `${subject} ${summariser} ${compactions}`)
    expect(seen.toSorted()).toEqual(cases.toSorted())
    for (const quantity of ["start", "memory", "first-turn", "later-turn", "compaction", "whole"])
      for (const name of measured)
        expect(
          figures.some((figure) => figure.id === `peers.${quantity}.${name}` && figure.version === version),
          `${quantity} of ${name}`,
        ).toBe(true)
  })

  test(
    promised("peers.C1", "Baton keeps the task through all of it, and with a faithful summariser every fact"),
    () => {
      const isLost = ({ summariser, factsKept, compactions, compacted, turnsKnowingTask, turns }: PeerRetentionRow) =>
        compacted !== compactions ||
        turnsKnowingTask !== turns ||
        (summariser === "faithful" && factsKept < compactions)
      expect(rows.filter((row) => row.subject === "baton" && isLost(row))).toEqual([])
    },
  )

  test(promised("peers.C1", "the page says in words where a peer's figure is better than Baton's"), () => {
    const said = sayPeers(figures, peers)
    expect(page).toContain(said)
    const line = said.split("\n").find((each) => each.startsWith(`- **On ${version} `)) ?? ""
    const medianOf = (quantity: string, name: SubjectName): Figure["median"] | undefined =>
      figures.find((figure) => figure.id === `peers.${quantity}.${name}` && figure.version === version)?.median
    for (const quantity of ["start", "memory", "first-turn", "later-turn", "compaction", "whole"])
      for (const name of measured.filter(isPeer))
        if ((medianOf(quantity, name) ?? 0) < (medianOf(quantity, "baton") ?? 0))
          expect(line, `${quantity} of ${name}`).toContain(SUBJECT_LABELS[name])
  })
})

describe("the peers' packages", () => {
  type Lock = { packages: Record<string, { version: string; integrity?: string; resolved?: string }> }
  const text = readFileSync(join(PEERS_MANIFEST, "..", "package-lock.json"), "utf8")
  const { packages } = JSON.parse(text) as Lock

  test(promised("peers.C1", "are locked whole, by content and not by address, in exact versions"), () => {
    const { "": own, ...locked } = packages
    expect(own).toBeDefined()
    expect(Object.keys(locked).length).toBeGreaterThan(PEER_NAMES.length)
    for (const [name, { integrity, resolved }] of Object.entries(locked)) {
      expect(integrity, name).toMatch(/^sha512-/)
      expect(resolved, name).toBeUndefined()
    }
    const versions = readPeerVersions()
    for (const name of PEER_NAMES) expect(packages[`node_modules/${name}`]?.version, name).toBe(versions[name])
    expect(text).not.toMatch(/https?:\/\/[^"]*(?:registry|npmjs|npm\.)/)
  })
})
