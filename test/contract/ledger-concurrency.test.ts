import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { compareText } from "../../.opencode/baton/ledger/embedded/go-text.ts"
import { promised } from "../requirements.ts"
import { createLedgerDriver } from "../support/ledger-driver.ts"
import { databaseOf, embeddedProgram, runProgram } from "../support/ledger-process.ts"
import { readTables, runSql } from "../support/ledger-rows.ts"
import { BOTH_ENDS, NEWEST } from "../support/opencode-binary.ts"
import { temporaryFolder } from "../support/temporary-folder.ts"

const WRITERS = 8
const WRITES = 200
const CONCURRENCY_TIMEOUT_MS = 120_000

/** Runs command lines of the embedded ledger one after another in one process. */
const WRITER = join(import.meta.dirname, "..", "support", "ledger-writer.ts")

describe.each(BOTH_ENDS)("the embedded ledger under load on OpenCode $version", (binary) => {
  test(promised("ledger.D3", "8 processes with 200 writes each lose nothing"), {
    timeout: CONCURRENCY_TIMEOUT_MS,
  }, async () => {
    const home = temporaryFolder()
    const ledger = createLedgerDriver(runProgram(embeddedProgram(binary), { home }))
    const id = await ledger.task("shared")
    const writer = { command: binary.path, environment: { BUN_BE_BUN: "1" } }
    const write = (name: string) => runProgram(writer, { home })(["run", WRITER, id, name, String(WRITES)])
    const results = await Promise.all(Array.from({ length: WRITERS }, (_, at) => write(`writer-${at}`)))
    expect(results.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toStrictEqual(
      results.map(() => ({ exitCode: 0, stderr: "" })),
    )
    const { logs } = readTables(databaseOf(home))
    const expected = Array.from(
      { length: WRITERS * WRITES },
      (_, at) => `writer-${at % WRITERS} ${Math.floor(at / WRITERS)}`,
    )
    expect(logs.map(({ message }) => String(message)).toSorted(compareText)).toStrictEqual(
      expected.toSorted(compareText),
    )
    expect(runSql(databaseOf(home), ["PRAGMA integrity_check"])[0]).toStrictEqual([{ integrity_check: "ok" }])
  })
})

test(promised("ledger.D3", "8 processes at once make one database where there is none"), async () => {
  const home = temporaryFolder()
  const run = runProgram(embeddedProgram(NEWEST), { home })
  const results = await Promise.all(
    Array.from({ length: WRITERS }, (_, at) => run(["add", "-p", "demo", `task ${at}`])),
  )
  expect(results.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toStrictEqual(
    results.map(() => ({ exitCode: 0, stderr: "" })),
  )
  expect(readTables(databaseOf(home)).items).toHaveLength(WRITERS)
})
