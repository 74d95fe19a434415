import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { copyPath, dayOf, failurePath } from "../../../.opencode/baton/ledger/copy-paths.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, runProgram } from "../../support/ledger/ledger-process.ts"
import { runSql } from "../../support/ledger/ledger-rows.ts"
import { endsOf } from "../../support/opencode/ends.ts"
import { NEWEST, type OpenCodeBinary, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { runProgram as run } from "../../support/opencode/opencode-run.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

const MAKE_COPY = join(REPOSITORY, ".opencode/baton/ledger/embedded/make-copy.ts")

/** The embedded ledger in a home of its own; copies are made if `BATON_COPIES` is not "off". */
const openLedger = (binary: OpenCodeBinary = NEWEST, home = temporaryFolder()) => {
  const database = databaseOf(home)
  const program = embeddedProgram(binary)
  const ledger = (copies: "on" | "off") =>
    createLedgerDriver(runProgram(program, { home, environment: { BATON_COPIES: copies } }))
  const copy = () => copyPath(database, dayOf(new Date()))
  const beside = () => readdirSync(dirname(database)).sort()
  return {
    home,
    database,
    ...ledger("on"),
    quiet: ledger("off"),
    copy,
    beside,
    /** Nothing is in the works any more when there is one. */
    copied: () =>
      eventually("a copy", () => (existsSync(copy()) && !beside().some((name) => name.endsWith(".tmp"))) || undefined),
    /** Makes the copy as the process does that a command starts. */
    makeCopy: (before = "") =>
      run(["sh", "-c", `${before}exec "$0" run "$1" "$2"`, binary.path, MAKE_COPY, database], {
        project: { directory: home, environment: { PATH: "/usr/bin:/bin", TZ: "UTC", HOME: home, BUN_BE_BUN: "1" } },
      }),
  }
}

const titles = (database: string): unknown[] =>
  runSql(database, ["SELECT title FROM items ORDER BY rowid"])[0]?.map(({ title }) => title) ?? []

describe.each(endsOf(0))("on OpenCode $version", (binary) => {
  test(
    promised("people.E2", "the first change of a day makes a copy, whole and private, and no later one"),
    async () => {
      const ledger = openLedger(binary)
      await ledger.task("First")
      await ledger.copied()
      await ledger.task("Second")
      expect(titles(ledger.copy())).toEqual(["First"])
      expect(statSync(ledger.copy()).mode & 0o777).toBe(0o600)
      expect(runSql(ledger.copy(), ["PRAGMA integrity_check"])).toEqual([[{ integrity_check: "ok" }]])
      expect(await ledger.ok("copies")).toContain(ledger.copy())
    },
  )

  test(promised("people.E2", "the last seven copies are kept, and what was cut off is removed"), async () => {
    const ledger = openLedger(binary)
    await ledger.quiet.task("First")
    const days = [1, 2, 3, 4, 5, 6, 7, 8].map((day) => `2020-01-0${day}`)
    for (const day of days) writeFileSync(copyPath(ledger.database, day), "")
    const cut = `${copyPath(ledger.database, "2020-01-08")}.1.tmp`
    const current = `${ledger.copy()}.2.tmp`
    for (const path of [cut, current]) writeFileSync(path, "")
    utimesSync(cut, 0, 0)
    await ledger.makeCopy()
    const kept = [...days.slice(2), dayOf(new Date())].map((day) => `prog.db.copy-${day}`)
    expect(ledger.beside()).toEqual(["prog.db", ...kept, `prog.db.copy-${dayOf(new Date())}.2.tmp`])
  })

  test(
    promised("people.E2", "doctor's command restores a copy where the database is damaged, and where it is gone"),
    () => {
      const { baton, prog, project, options } = createProject(binary)
      const database = join(project, ".prog", "prog.db")
      const home = { ...options.env, BATON_COPIES: "on" }
      prog("add", "First", "-p", "demo")
      // A place that is free in the table, as the index for learnings counts them.
      for (const words of ["gone", "the lexer keeps CRLF"]) prog("learn", words, "-p", "demo", "-c", "a")
      const learned: { id: string; summary: string }[] = JSON.parse(
        prog("context", "-p", "demo", "-c", "a", "--json").stdout,
      )
      prog("learn", "rm", learned.find(({ summary }) => summary === "gone")?.id ?? "")
      spawnSync(binary.path, ["run", MAKE_COPY, database], { env: { ...home, BUN_BE_BUN: "1" } })
      prog("add", "Second", "-p", "demo")
      const restore = (): string => {
        const { findings } = JSON.parse(baton("doctor", "--json").stdout)
        const messages = findings.map(({ message }: { message: string }) => message)
        const found = messages.flatMap((message: string) => /run: (.+ copies restore .+)$/.exec(message)?.[1] ?? [])
        expect(messages.join("\n")).toContain("1 copy of it, the newest of")
        const { status, stdout, stderr } = spawnSync("sh", ["-c", found[0]], options)
        expect([status, stderr]).toEqual([0, ""])
        return stdout
      }
      const asideOf = (printed: string): string => / is now (.+)\n$/.exec(printed)?.[1] ?? ""
      expect(titles(asideOf(restore())), "nothing is lost").toEqual(["First", "Second"])
      expect(prog("list").stdout).not.toContain("Second")
      writeFileSync(database, "no database at all")
      for (const ending of ["-wal", "-shm"]) writeFileSync(`${database}${ending}`, "of another")
      expect(readFileSync(asideOf(restore()), "utf8")).toBe("no database at all")
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${database}${ending}`, { force: true })
      expect(restore()).toBe(`Restored 1 task from the copy of ${dayOf(new Date())}\n`)
      expect(titles(database)).toEqual(["First"])
      expect(prog("context", "-p", "demo", "-q", "lexer").stdout).toContain("the lexer keeps CRLF")
      expect(prog("add", "Third", "-p", "demo").status).toBe(0)
    },
  )
})

const createProject = shareBundle()

test(
  promised("people.E2", "only a database that the embedded ledger made is copied, and none where it is off"),
  async () => {
    const ledger = openLedger()
    await ledger.quiet.task("First")
    runSql(ledger.database, ["PRAGMA application_id = 0"])
    await ledger.task("Second")
    runSql(ledger.database, ["PRAGMA application_id = 1113683055"])
    await ledger.task("Third")
    await ledger.copied()
    // One that was made before would have stayed.
    expect(titles(ledger.copy())).toEqual(["First", "Second", "Third"])
  },
)

test(
  promised("people.E2", "several processes make a copy at once while others write, and each leaves a whole one"),
  async () => {
    const ledger = openLedger()
    const id = await ledger.quiet.task("First")
    const lines = Array.from({ length: 8 }, (_, index) => ledger.quiet.ok("log", id, `line ${index}`))
    const made = await Promise.all([1, 2, 3, 4].map(() => ledger.makeCopy()))
    await Promise.all(lines)
    expect(made.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(Array(4).fill([0, ""]))
    expect(runSql(ledger.copy(), ["PRAGMA integrity_check"])).toEqual([[{ integrity_check: "ok" }]])
    expect(titles(ledger.copy())).toEqual(["First"])
    expect(ledger.beside().filter((name) => name.includes("copy"))).toHaveLength(1)
  },
)

test(
  promised("people.E2", "a disk that takes no copy costs no command; doctor says why, and it is tried again"),
  async () => {
    const { baton, project } = createProject(NEWEST)
    const ledger = openLedger(NEWEST, project)
    const id = await ledger.quiet.task("First")
    // In blocks of 512 bytes: less than the database has.
    await ledger.makeCopy("trap '' XFSZ; ulimit -f 40; ")
    expect(ledger.beside().filter((name) => name.includes("copy"))).toEqual(["prog.db.copy-failed"])
    expect(statSync(failurePath(ledger.database)).mode & 0o777).toBe(0o600)
    expect(await ledger.ok("log", id, "goes on")).toContain("Logged to")
    const { findings } = JSON.parse(baton("doctor", "--json").stdout)
    const warned = expect.stringMatching(/^no copy of it could be made at \d{4}-\d\d-\d\dT.*: ./)
    expect(findings).toContainEqual(expect.objectContaining({ id: "database", status: "warning", message: warned }))
    utimesSync(failurePath(ledger.database), 0, 0)
    await ledger.ok("log", id, "an hour later")
    await ledger.copied()
    await eventually("no note of a failure", () => !existsSync(failurePath(ledger.database)) || undefined)
  },
)

test(promised("people.E2", "a copy that cannot be restored leaves the database as it is"), async () => {
  const ledger = openLedger()
  await ledger.quiet.task("First")
  writeFileSync(copyPath(ledger.database, "2020-01-01"), "no database")
  writeFileSync(copyPath(ledger.database, "2020-01-02"), "")
  expect(await ledger.fails("copies", "restore", "2020-01-03")).toMatch(
    /^Error: there is no copy of 2020-01-03 beside /,
  )
  expect(await ledger.fails("copies", "restore", "2020-01-01")).toMatch(/^Error: failed to restore .*not a database/)
  expect(await ledger.fails("copies", "restore", "2020-01-02")).toMatch(/^Error: failed to restore .*no such table/)
  expect(await ledger.fails("copies", "restore")).toMatch(/^Error: expected <day>/)
  expect(ledger.beside()).toEqual(["prog.db", "prog.db.copy-2020-01-01", "prog.db.copy-2020-01-02"])
  expect(titles(ledger.database)).toEqual(["First"])
})
