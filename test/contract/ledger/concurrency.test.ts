import { describe, expect, test } from "vitest"
import type { LedgerResult } from "../../../.opencode/baton/ledger/embedded/cli.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, holdEmbedded, runProgram } from "../../support/ledger/ledger-process.ts"
import { readTables, runSql } from "../../support/ledger/ledger-rows.ts"
import { BOTH_ENDS, NEWEST } from "../../support/opencode/opencode-binary.ts"

const WRITERS = 8
const WRITES = 200
const CONCURRENCY_TIMEOUT_MS = 120_000

const failed = ({ exitCode, stderr }: LedgerResult): boolean => exitCode !== 0 || stderr !== ""

describe.each(BOTH_ENDS)("the embedded ledger under load on OpenCode $version", (binary) => {
  const writers = Array.from({ length: WRITERS }, () => holdEmbedded(binary))

  test(promised("ledger.D3", "8 processes with 200 writes each lose nothing"), {
    timeout: CONCURRENCY_TIMEOUT_MS,
  }, async () => {
    const home = temporaryFolder()
    const ledger = createLedgerDriver(runProgram(embeddedProgram(binary), { home }))
    const id = await ledger.task("shared")
    const lines = writers.flatMap((open, writer) =>
      Array.from({ length: WRITES }, (_, at) => open(home)(["log", id, `writer-${writer}`, String(at)])),
    )
    const results = await Promise.all(lines)
    expect(results.filter(failed)).toEqual([])
    const { logs } = readTables(databaseOf(home))
    const messages = logs.map(({ message }) => String(message))
    const expected = writers.flatMap((_, writer) => Array.from({ length: WRITES }, (_, at) => `writer-${writer} ${at}`))
    expect(messages.toSorted()).toStrictEqual(expected.toSorted())
    expect(runSql(databaseOf(home), ["PRAGMA integrity_check"])[0]).toStrictEqual([{ integrity_check: "ok" }])
  })
})

test(promised("ledger.D3", "8 processes at once make one database where there is none"), async () => {
  const home = temporaryFolder()
  const run = runProgram(embeddedProgram(NEWEST), { home })
  const results = await Promise.all(
    Array.from({ length: WRITERS }, (_, at) => run(["add", "-p", "demo", `task ${at}`])),
  )
  expect(results.filter(failed)).toEqual([])
  expect(readTables(databaseOf(home)).items).toHaveLength(WRITERS)
})
