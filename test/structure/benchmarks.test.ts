import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { renderDocument } from "../../scripts/benchmarks/document.ts"
import { HOSTILE_TEXTS } from "../../scripts/benchmarks/inside/hostile-texts.ts"
import { renderPlots } from "../../scripts/benchmarks/plots.ts"
import {
  BENCHMARKS,
  type BenchmarkName,
  type Figure,
  isPrecise,
  keepsEverything,
  losesNoDraft,
  type Measurement,
  type Results,
} from "../../scripts/benchmarks/results.ts"
import { isFlat, isWholeServer, isWholeSession } from "../../scripts/benchmarks/soak/soak-result.ts"
import { formatAddition, formatValue } from "../../scripts/benchmarks/table.ts"
import { promised } from "../requirements.ts"
import { LEARNING_SETS, scoreLearningSet } from "../support/learning-sets.ts"
import { BOTH_ENDS, NEWEST, REPOSITORY } from "../support/opencode-binary.ts"
import { FEATURE_NAMES, mayAdd, REQUEST_NAMES, REQUESTS } from "../support/request-scenario.ts"

const DOCS = join(REPOSITORY, "docs")
const FOLDER = join(DOCS, "benchmarks")
const results = JSON.parse(readFileSync(join(FOLDER, "results.json"), "utf8")) as Results
const pick = ({ messages, labels, stored, precision, recall, rightType }: ReturnType<typeof scoreLearningSet>) => ({
  messages,
  labels,
  stored,
  precision,
  recall,
  rightType,
})
const page = readFileSync(join(DOCS, "benchmarks.md"), "utf8")

const measured = (name: BenchmarkName): Measurement => {
  const found = results.measurements[name]
  if (!found) throw new Error(`results.json has no ${name}; run ./scripts/bench ${name}`)
  return found
}

const figure = (name: BenchmarkName, id: string, version: string): Figure => {
  const found = measured(name).figures.find((each) => each.id === id && each.version === version)
  if (!found) throw new Error(`results.json has no ${id} for ${version}; run ./scripts/bench ${name}`)
  return found
}

/** A published figure: enough rounds, the promised limit, and a page that shows both and says when the limit is missed. */
const isPublished = (found: Figure, limit: number, rounds: number): void => {
  expect(found.below, found.id).toBe(limit)
  expect(found.n, found.id).toBeGreaterThanOrEqual(rounds)
  const row = page.split("\n").find((line) => line.startsWith(`| ${found.what} | ${found.version} |`)) ?? ""
  expect(row, found.id).toContain(`**${formatValue(found.median, found.unit)}**`)
  expect(row.includes("**missed**"), `${found.id} on ${found.version}`).toBe(found.median >= limit)
}

/** A published figure that keeps what is promised. */
const isKept = (found: Figure, limit: number, rounds: number): void => {
  isPublished(found, limit, rounds)
  expect(found.median, `${found.id} on ${found.version}`).toBeLessThan(limit)
}

describe.each(BOTH_ENDS)("on OpenCode $version", ({ version }) => {
  test(
    promised(
      "speed.G1",
      "inside OpenCode loading takes under 10 ms and a start until the model is asked under 3 %; a fresh process and whole runs are published",
    ),
    () => {
      isPublished(figure("load", "load.fresh", version), 10, 15)
      isKept(figure("load", "load.run", version), 10, 15)
      isKept(figure("start", "start.asked-ratio", version), 1.03, 15)
      isKept(figure("start", "start.asked-task-ratio", version), 1.03, 15)
      isPublished(figure("start", "start.ratio", version), 1.03, 15)
      isPublished(figure("start", "start.task-ratio", version), 1.03, 15)
    },
  )

  test(promised("speed.G2", "the hook takes under 25 ms at every length, and grows less than twofold"), () => {
    for (const size of [10, 1_000, 10_000]) isKept(figure("hook", `hook.later.${size}`, version), 25, 20)
    isKept(figure("hook", "hook.later.ratio", version), 2, 20)
  })

  test(promised("speed.G3", "an event the bundle does not need costs under 2 µs"), () => {
    isKept(figure("event", "event.delta", version), 2, 10)
  })

  test(promised("speed.G4", "an embedded log costs under three empty scripts, launcher included or not"), () => {
    isKept(figure("ledger", "ledger.direct-ratio", version), 3, 20)
    isKept(figure("ledger", "ledger.launcher-ratio", version), 3, 20)
  })

  test(promised("handoff.C1", "parsing 1 MB of each hostile text takes under 100 ms"), () => {
    for (const { id } of HOSTILE_TEXTS) isKept(figure("references", `references.${id}`, version), 100, 20)
  })

  test(promised("handoff.D4", "reading 100 of 10,000 messages takes under 150 ms and 20 MB"), () => {
    isKept(figure("transcript", "transcript.time.10000", version), 150, 20)
    isKept(figure("transcript", "transcript.memory.10000", version), 20, 20)
  })

  test(
    promised("live-state.D3", "the live state costs under 50 µs an event, is under 100 ms old, and stays flat"),
    () => {
      isKept(figure("live-state", "live.published", version), 50, 20)
      isKept(figure("live-state", "live.ignored", version), 2, 20)
      isKept(figure("live-state", "live.to-file", version), 100, 10)
      isKept(figure("live-state", "live.growth", version), 10, 3)
    },
  )

  test(promised("handoff.C1", "parsing 1 MB of each hostile text is published against 100 ms"), () => {
    for (const { id } of HOSTILE_TEXTS) isPublished(figure("references", `references.${id}`, version), 100, 20)
  })

  test(promised("handoff.D4", "reading 100 of 10,000 messages is published against 150 ms and 20 MB"), () => {
    isPublished(figure("transcript", "transcript.time.10000", version), 150, 20)
    isPublished(figure("transcript", "transcript.memory.10000", version), 20, 20)
  })

  test(
    promised("live-state.C3", "watching 50 agents is published against 10 % of a core, 150 MB and 100 ms a key"),
    () => {
      isPublished(figure("observe", "observe.cpu", version), 10, 12)
      isPublished(figure("observe", "observe.memory", version), 150, 12)
      isPublished(figure("observe", "observe.key", version), 100, 50)
      expect(figure("observe", "observe.paint", version).n).toBeGreaterThan(50)
    },
  )
  test(promised("pass-over.G3", "a query over 100,000 lines of the audit is published against 1 s"), () => {
    for (const id of ["all", "agent", "session"]) isPublished(figure("audit", `audit.${id}`, version), 1000, 20)
  })

  test(promised("pass-over.G3", "a pass is published against 50 ms over a plain child session"), () => {
    for (const id of ["reader", "talker", "writer", "thinking-writer"])
      isPublished(figure("pass", `pass.${id}`, version), 50, 30)
    // What is kept: only a model that answers at once lets a subagent wait for its copy.
    for (const id of ["reader", "talker", "thinking-writer"])
      expect(figure("pass", `pass.${id}`, version).median).toBeLessThan(50)
  })

  test.each(REQUEST_NAMES)(
    promised("tokens.C2", "what is added to %s is published, and it is nothing for features that it does not use"),
    (request) => {
      const row = measured("tokens").additions?.find((each) => each.version === version && each.request === request)
      if (!row) throw new Error(`results.json has no ${request} for ${version}; run ./scripts/bench tokens`)
      const features = FEATURE_NAMES.filter((feature) => mayAdd(feature, request))
      expect(Object.keys(row.added)).toEqual([...features, ...(features.length > 0 ? ["bundle"] : [])])
      const line = page.split("\n").find((each) => each.startsWith(`| ${REQUESTS[request]} | ${version} |`)) ?? ""
      const cells = [...FEATURE_NAMES, "bundle" as const].map((column) => {
        const characters = row.added[column]
        return characters === undefined ? "0" : `**${formatAddition(characters)}**`
      })
      expect(line.split(" | ").slice(3).join(" | ")).toBe(`${cells.join(" | ")} |`)
    },
  )

  test(promised("tokens.C2", "a huge task adds at most 10 % of the context and 12,000 characters"), () => {
    for (const [context, limit] of [
      [20_000, 8_000],
      [200_000, 12_000],
    ] as const)
      for (const place of ["prompt", "turn"]) {
        const { max, n, id } = figure("additions", `additions.${place}.${context}.huge`, version)
        expect(n, id).toBeGreaterThanOrEqual(5)
        expect(max, id).toBeLessThanOrEqual(limit)
      }
  })

  test.each(["faithful", "careless"] as const)(
    promised("speed.G5", "the retention table has plain OpenCode and Baton, and with a %s summariser Baton keeps all"),
    (summariser) => {
      const rows = (measured("retention").retention ?? []).filter(
        (row) => row.version === version && row.summariser === summariser,
      )
      for (const bundle of ["plain", "baton"]) {
        expect(rows.filter((row) => row.bundle === bundle).map((row) => row.compactions)).toEqual([1, 5, 20, 50])
      }
      expect(rows.filter((row) => row.bundle === "baton" && !keepsEverything(row))).toEqual([])
    },
  )
})

test(promised("handoff.B2", "50 drafts in the real TUI are published, and each arrived once and in place"), () => {
  const rows = measured("tui-draft").drafts ?? []
  expect(rows.map(({ version, busyLoops, handoffs }) => [version, busyLoops, handoffs])).toEqual([
    [NEWEST.version, 0, 30],
    [NEWEST.version, 2, 20],
  ])
  expect(rows.filter((row) => !losesNoDraft(row))).toEqual([])
})

test.each(BOTH_ENDS)(
  promised("learning.E2", "a look-up among 10,000 learnings on $version is published against 20 ms"),
  ({ version }) => {
    isPublished(figure("learning", "learning.lookup", version), 20, 20)
  },
)

test(promised("learning.A3", "precision and recall are published as the sets give them now, and are kept"), () => {
  const now = LEARNING_SETS.map((set) => ({ set, ...pick(scoreLearningSet(set)) }))
  expect(measured("learning").detection).toEqual(now)
  expect(now.filter((row) => !isPrecise(row))).toEqual([])
})

test(promised("soak.B3", "what may not grow is published against its promise, and a run that is short says so"), () => {
  const { soak, figures } = measured("soak")
  const versions = soak?.sessions.map(({ version }) => version)
  expect(new Set(versions)).toEqual(new Set(BOTH_ENDS.map(({ version }) => version)))
  const lines = page.split("\n")
  for (const session of soak?.sessions ?? []) {
    const { version } = session
    const promisedLines = session.lines.filter(({ below }) => below !== undefined)
    expect(promisedLines.map(({ what }) => what)).toEqual(
      expect.arrayContaining(["heap, the bundle's part", "open descriptors, the bundle's part", "child processes"]),
    )
    for (const line of promisedLines) {
      const row = lines.find((each) => each.startsWith(`| ${line.what} | ${version} |`)) ?? ""
      expect(row.includes("**missed**"), `${line.what} on ${version}`).toBe(!isFlat(session, line))
    }
    for (const id of ["soak.hook-ratio", "soak.added-ratio"])
      expect(figures.find((each) => each.id === id && each.version === version)?.below, id).toBe(1.5)
  }
  const isShort = !soak?.sessions.every(isWholeSession) || !soak.servers.every(isWholeServer)
  expect(page.includes("**a short run**")).toBe(isShort)
})

test("every figure has its n, a median between its extremes, and a machine without a name or a path", () => {
  for (const name of BENCHMARKS) {
    const { machine, figures, retention = [], drafts = [], additions = [], takenAt } = measured(name)
    expect(Object.keys(machine).sort()).toEqual(["cores", "cpu", "memoryGiB", "system"])
    expect(JSON.stringify(machine)).not.toMatch(/\/(?:home|root|tmp|work|Users)\b/)
    expect(Number.isNaN(Date.parse(takenAt)), takenAt).toBe(false)
    expect(figures.length + retention.length + drafts.length + additions.length, name).toBeGreaterThan(0)
    for (const { n, median, min, max, id } of figures) {
      expect(n, id).toBeGreaterThan(0)
      expect(median, id).toBeGreaterThanOrEqual(min)
      expect(median, id).toBeLessThanOrEqual(max)
    }
  }
})

test("the page and the pictures show what results.json says", () => {
  expect(renderDocument(page, results)).toBe(page)
  const plots = renderPlots(results)
  expect(
    readdirSync(FOLDER)
      .filter((file) => file.endsWith(".svg"))
      .sort(),
  ).toEqual(Object.keys(plots).sort())
  for (const [file, text] of Object.entries(plots)) {
    expect(readFileSync(join(FOLDER, file), "utf8"), file).toBe(text)
    expect(page, file).toContain(`(benchmarks/${file})`)
  }
})
