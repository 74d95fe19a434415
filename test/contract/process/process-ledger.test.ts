import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createProcessRunner, type RunProcess } from "../../../.opencode/baton/host/process.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createLedger } from "../../../.opencode/baton/ledger/client.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { ALL_LINES, OLDEST } from "../../support/opencode/opencode-binary.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const real = findRealProg()
if (real.kind === "missing") registerMissingRealProg("the client on the real prog", real.reason)

const LEDGERS = [
  ...ALL_LINES.map((binary) => ({ program: embeddedProgram(binary), execPath: binary.path, isReal: false })),
  ...(real.kind === "found" ? [{ program: real.program, execPath: OLDEST.path, isReal: true }] : []),
]

const DEADLINE_MS = 20_000

describe.each(LEDGERS)("the client on the $program.name", ({ program, execPath, isReal }) => {
  const setUp = async () => {
    const home = temporaryFolder()
    const programs = join(home, "programs")
    mkdirSync(programs)
    if (isReal) symlinkSync(program.command, join(programs, "prog"))
    const plain = createProcessRunner({ shell: undefined })
    const env = { HOME: home, PROG_DB: databaseOf(home) }
    const complaints: string[] = []
    const run: RunProcess = async (argv, options) => {
      const outcome = await plain(argv, { ...options, env: { ...options.env, ...env } })
      if (outcome.kind === "exited") complaints.push(outcome.stderr)
      return outcome
    }
    const state = createStateFolder(home)
    const log = createRecordedLog()
    const chosen = { PATH: programs, BATON_LEDGER: isReal ? "real" : "embedded" }
    const runtime = { execPath, isBun: true, platform: process.platform }
    const ledger = createLedger({ run, directory: home, log, state, env: chosen, runtime })
    const prog = createLedgerDriver(runProgram(program, { home }))
    await prog.ok("init")
    const id = await prog.task("Title", "--desc", "Build it.")
    return { ledger, id, database: env.PROG_DB, complaints }
  }

  test(promised("ledger.D1", "the ledger's client reads back exactly what it wrote, whatever it was"), async () => {
    const { ledger, id, complaints } = await setUp()
    const quoted = `it's "quoted" \\" \`id\` $(id) $HOME`
    const flags = ["--help", "--", "-p", ""]
    const messages = [quoted, ...flags, "one\ntwo\r\n\n  three  ", "🎉 日本語 <&>\u2028", "x".repeat(120_000)]
    for (const message of messages)
      expect(await ledger.appendLog(id, message, { deadlineMs: DEADLINE_MS })).toEqual({ kind: "written" })
    const description = "-spec\n\n`$(id)` \"'\n"
    expect(await ledger.replaceDescription(id, description, { deadlineMs: DEADLINE_MS })).toEqual({ kind: "written" })
    const read = await ledger.readTask(id, { deadlineMs: DEADLINE_MS })
    expect(read).toMatchObject({
      kind: "found",
      task: { id, title: untrusted("Title"), description: untrusted(description) },
    })
    expect(read.kind === "found" && read.task.logs.map(({ message }) => message.untrusted)).toEqual(messages)
    expect(complaints.join("")).toBe("")
  })

  test(
    promised("task.C2", "the ledger's client says what is unknown, and that a database is missing until it is back"),
    async () => {
      const { ledger, id, database } = await setUp()
      const options = { deadlineMs: DEADLINE_MS }
      expect(await ledger.readTask("ts-ffffff", options)).toEqual({ kind: "unknown" })
      expect(await ledger.appendLog("ts-ffffff", "m", options)).toEqual({ kind: "unknown" })
      expect(await ledger.replaceDescription("ts-ffffff", "d", options)).toEqual({ kind: "unknown" })
      cpSync(database, `${database}.backup`)
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${database}${ending}`, { force: true })
      for (let call = 0; call < 2; call++) {
        const missing = { kind: "unavailable", reason: expect.stringContaining("its database is missing at ") }
        expect(await ledger.readTask(id, options)).toMatchObject({ ...missing, missingDatabase: expect.any(String) })
        expect(await ledger.appendLog(id, "m", options)).toMatchObject(missing)
      }
      cpSync(`${database}.backup`, database)
      expect(await ledger.readTask(id, options)).toMatchObject({ kind: "found" })
    },
  )
})
