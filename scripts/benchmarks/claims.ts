import { spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { collectOutput } from "../../test/support/collect-output.ts"
import { createLedgerDriver } from "../../test/support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, runProgram } from "../../test/support/ledger/ledger-process.ts"
import { runSql } from "../../test/support/ledger/ledger-rows.ts"
import type { OpenCodeBinary } from "../../test/support/opencode/opencode-binary.ts"
import { interleave } from "./measure.ts"
import type { Benchmark } from "./results.ts"

const WORKERS = 8
const PROGRAM = join(import.meta.dirname, "inside", "claims.ts")
/** Until all processes of a round wait for its start. */
const LEAD_MS = 1_500
const LONGEST_WAIT_MS = 1_000
const GROWTH = 10

type Printed = { taken: string[]; ms: number[]; ended: number }

const take = async (
  binary: OpenCodeBinary,
  how: string,
  home: string,
  count: number,
  start: number,
): Promise<Printed> => {
  const child = spawn(binary.path, ["run", PROGRAM, how, databaseOf(home), String(count), String(start)], {
    env: { PATH: "/usr/bin:/bin", HOME: home, BUN_BE_BUN: "1", TZ: "UTC" },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const output = collectOutput(child)
  await new Promise((resolve) => child.on("close", resolve))
  if (child.exitCode !== 0) throw new Error(output.stderr())
  return JSON.parse(output.stdout())
}

const RUN_COLUMNS =
  "worker, session_id, host, pid, directory, branch, started, ended, kind, detail, next_try, tools, tokens, cost, attempts, backoff"

/** A new ledger with this many open tasks. */
const makeLedger = async (binary: OpenCodeBinary, tasks: number): Promise<string> => {
  const home = mkdtempSync(join(tmpdir(), "claims-"))
  const ledger = createLedgerDriver(runProgram(embeddedProgram(binary), { home }))
  const id = await ledger.task("shared")
  // Makes the index and the tables of the queue.
  await ledger.ok("claim", "--next", "-p", "demo")
  await ledger.ok("open", id)
  runSql(databaseOf(home), [
    "UPDATE baton_runs SET ended = '2026-01-01T00:00:00.000Z'",
    `INSERT INTO items WITH RECURSIVE numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < ${tasks - 1})
     SELECT 'ts-' || substr('000000' || n, -6), project, type, title, description, status, priority, parent_id, created_at, updated_at, definition_of_done FROM items, numbers WHERE id = '${id}'`,
    // A long past: each task has had a run.
    `INSERT INTO baton_runs (${RUN_COLUMNS}, task_id, n) SELECT ${RUN_COLUMNS}, i.id, 7 FROM baton_runs r, items i WHERE r.task_id = '${id}'`,
  ])
  return home
}

/** All workers take from one ledger at once. @throws when a task is taken twice */
const contend = async (binary: OpenCodeBinary, how: string, each: number, waits: number[]): Promise<number> => {
  const home = await makeLedger(binary, WORKERS * each)
  const start = Date.now() + LEAD_MS
  const printed = await Promise.all(Array.from({ length: WORKERS }, () => take(binary, how, home, each, start)))
  await rm(home, { recursive: true })
  const taken = new Set(printed.flatMap((one) => one.taken))
  if (taken.size !== WORKERS * each) throw new Error(`${WORKERS * each} claims took ${taken.size} tasks`)
  waits.push(Math.max(...printed.flatMap(({ ms }) => ms)))
  return (1_000 * WORKERS * each) / (Math.max(...printed.map(({ ended }) => ended)) - start)
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** One process's median claim in a ledger of this size. */
const alone = async (binary: OpenCodeBinary, tasks: number, claims: number): Promise<number> => {
  const home = await makeLedger(binary, tasks)
  const { ms } = await take(binary, "claim", home, claims, 0)
  await rm(home, { recursive: true })
  return median(ms)
}

/** Measures `claim --next` of eight processes at once beside a bare indexed statement, and of one in a small and a large ledger. */
export const measureClaims: Benchmark = async ({ binary, quick, figure }) => {
  const [each, rounds, size] = quick ? [20, 1, 1_000] : [200, 7, 100_000]
  const waits = { claim: [] as number[], bare: [] as number[] }
  const rates = await interleave(
    {
      claim: () => contend(binary, "claim", each, waits.claim),
      bare: () => contend(binary, "bare", each, waits.bare),
    },
    rounds,
  )
  const ratio = rates.claim.map((value, at) => value / (rates.bare[at] ?? Number.NaN))
  figure("claims.rate", `claims a second, ${WORKERS} processes × ${each}`, "", rates.claim)
  figure("claims.bare", "a bare indexed statement beside it, a second", "", rates.bare)
  figure("claims.ratio", "claims over bare statements", "×", ratio)
  figure("claims.wait", "the longest that one of them waited", "ms", waits.claim, LONGEST_WAIT_MS)
  figure("claims.bare-wait", "the longest wait for a bare statement", "ms", waits.bare)
  const grown = await interleave(
    { small: () => alone(binary, 100, 50), large: () => alone(binary, size, 50) },
    quick ? 1 : 7,
  )
  figure("claims.small", "a claim among 100 tasks (median of 50)", "ms", grown.small)
  figure("claims.large", `a claim among ${size.toLocaleString("en")} tasks (median of 50)`, "ms", grown.large)
  const growth = grown.large.map((value, at) => value / (grown.small[at] ?? Number.NaN))
  figure("claims.growth", "the second over the first", "×", growth, GROWTH)
}
