import { findPrograms } from "../../.opencode/baton/host/find-program.ts"
import { BOTH_ENDS, NEWEST, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import type { Benchmark, BenchmarkContext } from "./benchmark.ts"
import { sizeFigures } from "./peer-figures.ts"
import { installPeers } from "./peer-packages.ts"
import { measureProcesses, processFigures } from "./peer-processes.ts"
import { type PeerCase, runPeerCase, type Sizes } from "./peer-retention.ts"
import { attempt, type Failures } from "./peer-rounds.ts"
import { inPool } from "./pool.ts"
import type { Figure, PeerResults, PeerRetentionRow, PeerRow } from "./results.ts"
import { PEER_NAMES, PEER_SETUP, readPeerVersions, SUBJECT_NAMES } from "./subjects.ts"

const COMPACTIONS = [1, 5, 20]
/** For what is not timed. */
const AT_ONCE = 2

const measureWork = async (binary: OpenCodeBinary, { quick, say }: BenchmarkContext, failures: Failures) => {
  const cases: PeerCase[] = (quick ? [1] : COMPACTIONS.toReversed()).flatMap((compactions) =>
    (["faithful", "careless"] as const).flatMap((summariser) =>
      SUBJECT_NAMES.filter((name) => !failures.has(name)).map((subject) => ({ subject, summariser, compactions })),
    ),
  )
  say(
    `peers on ${binary.version}: ${cases.length} sessions of up to ${Math.max(...cases.map((each) => each.compactions))} compactions`,
  )
  const done = await inPool(cases, AT_ONCE, (each) => attempt(each.subject, failures, () => runPeerCase(binary, each)))
  return done.flatMap((each) => (each && !failures.has(each.row.subject) ? [each] : []))
}

const lacking = async (program: string): Promise<string> => {
  const found = await findPrograms(program, process.env.PATH)
  return found.length === 0 ? `its program ${program}` : `a project that is set up with ${program}`
}

const describePeers = (version: string, failures: Failures): Promise<PeerRow[]> => {
  const releases = readPeerVersions()
  const rows = PEER_NAMES.map(async (subject): Promise<PeerRow> => {
    const { program } = PEER_SETUP[subject]
    const failure = failures.get(subject)
    return {
      version,
      subject,
      release: releases[subject],
      ...(failure === undefined ? {} : { failure }),
      ...(program === undefined ? {} : { lacks: await lacking(program) }),
    }
  })
  return Promise.all(rows)
}

/** Plain OpenCode, Baton and its peers in one run, on the same scripted work. */
export const measurePeers: Benchmark = async (context) => {
  installPeers(context.say)
  const figures: Figure[] = []
  const peers: PeerResults = { subjects: [], retention: [] }
  for (const binary of context.quick ? [NEWEST] : BOTH_ENDS) {
    const failures: Failures = new Map()
    const processes = await measureProcesses(binary, context, failures)
    const work: { row: PeerRetentionRow; sizes: Sizes }[] = await measureWork(binary, context, failures)
    const isMeasured = ({ id }: Figure) => ![...failures.keys()].some((name) => id.endsWith(`.${name}`))
    figures.push(...processFigures(binary.version, processes).filter(isMeasured), ...sizeFigures(binary.version, work))
    peers.retention.push(...work.map(({ row }) => row))
    peers.subjects.push(...(await describePeers(binary.version, failures)))
  }
  return { figures, peers }
}
