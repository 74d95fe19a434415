import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { describe, expect, test } from "vitest"
import type { LedgerResult } from "../../../.opencode/baton/ledger/embedded/command-tree.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, holdEmbedded, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { countOpeners, holdWriteLock, readSchema, readTables, runSql } from "../../support/ledger/ledger-rows.ts"
import { ALL_LINES, NEWEST } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

const embedded = holdEmbedded(NEWEST)
const open = () => createLedgerDriver(embedded(temporaryFolder()))

describe("what the embedded ledger does and prog v0.17 does not", () => {
  test(promised("ledger.D3", "a draft is not ready and in no epic, and becomes a task when opened"), async () => {
    const ledger = open()
    const [first, second] = [await ledger.task("A", "--draft"), await ledger.task("B")]
    expect(await ledger.ok("draft", second)).toBe(`Marked ${second} as draft`)
    expect(await ledger.ok("ready")).toBe("No ready tasks")
    expect(await ledger.ok("list", "--status", "draft")).toContain(second)
    await ledger.ok("open", first)
    expect(await ledger.ok("ready")).toContain(first)
    // prog v0.17 cannot read an epic with a draft.
    const epic = await ledger.epic("E")
    const [draft, child] = [await ledger.task("D", "--draft"), await ledger.task("C", "--parent", epic)]
    const refusal = "Error: a draft cannot belong to an epic: prog v0.17 cannot read an epic with a draft child"
    expect(await ledger.fails("draft", child)).toBe(refusal)
    expect(await ledger.fails("parent", draft, epic)).toBe(refusal)
    expect(await ledger.fails("add", "x", "-p", "demo", "--draft", "--parent", epic)).toBe(refusal)
    expect(await ledger.fails("add", "x", "-p", "demo", "--draft", "-e")).toMatch(/^Error: an epic cannot be a draft/)
    expect(await ledger.fails("draft", "ts-000000")).toMatch(/^Error: item not found: ts-000000 /)
  })

  test(promised("ledger.D3", "a description that another program left out is empty: shown, and added to"), async () => {
    const home = temporaryFolder()
    const ledger = createLedgerDriver(embedded(home))
    const id = await ledger.task("A")
    runSql(databaseOf(home), ["UPDATE items SET description = NULL"])
    expect(await ledger.ok("show", id)).not.toMatch(/Description|null/)
    await ledger.ok("append", id, "text")
    expect(await ledger.json("show", id, "--json")).toMatchObject({ description: "\n\ntext" })
  })

  test(promised("trust.A7", "the folder that the embedded ledger makes is for its account alone"), async () => {
    const home = temporaryFolder()
    await createLedgerDriver(embedded(home)).task("A")
    expect(statSync(dirname(databaseOf(home))).mode & 0o777).toBe(0o700)
  })

  test(promised("ledger.D3", "a command that is refused half-way leaves nothing behind"), async () => {
    const ledger = open()
    await ledger.fails("add", "x", "-p", "demo", "-l", "bug", "--parent", "ep-000000")
    await ledger.fails("add", "x", "-p", "demo", "--blocks", "ts-000000")
    await ledger.fails("learn", "x", "-p", "demo", "-c", "a", "-c", "a")
    const kept = await ledger.task("kept", "-l", "bug")
    await ledger.ok("log", kept, "a line")
    await ledger.fails("delete", kept)
    expect(await ledger.json<unknown[]>("list", "--json")).toHaveLength(1)
    expect(await ledger.json("show", kept, "--json")).toMatchObject({ logs: [{ message: "a line" }] })
    expect(await ledger.ok("concepts", "-p", "demo")).toBe("No concepts")
  })

  test(promised("ledger.D3", "version and refusals name the real prog; each command has its help"), async () => {
    const ledger = open()
    expect(await ledger.ok("--version")).toBe("prog version 0.17.0 (Baton's embedded ledger, prog schema 3)")
    const way = "install prog for it: go install github.com/baiirun/prog/cmd/prog@v0.17.0"
    for (const name of ["tui", "onboard", "compact", "backup", "restore", "completion"])
      expect(await ledger.fails(name)).toBe(`Error: command "${name}" is not part of Baton's embedded ledger; ${way}`)
    const id = await ledger.task("T")
    expect(await ledger.fails("edit", id)).toMatch(/^Error: the embedded ledger opens no editor: give --title or --dod/)
    const [, table = ""] = (await ledger.ok("--help")).split("Commands:\n")
    const names = [...table.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name = ""]) => name)
    expect(names.length).toBeGreaterThan(25)
    for (const name of names) expect(await ledger.ok("help", name)).toContain(`\n\nUsage: prog ${name}`)
  })
})

const WRITERS = 8
const WRITES = 200

const failed = ({ exitCode, stderr }: LedgerResult): boolean => exitCode !== 0 || stderr !== ""

describe.each(ALL_LINES)("under load on OpenCode $version", { timeout: 120_000 }, (binary) => {
  const writers = Array.from({ length: WRITERS }, () => holdEmbedded(binary))

  test(promised("ledger.D3", "8 processes, 200 writes each: nothing is lost"), async () => {
    const home = temporaryFolder()
    const ids = await Promise.all(writers.map((open) => createLedgerDriver(open(home)).task("shared")))
    expect(readTables(databaseOf(home)).items, "they made one database").toHaveLength(WRITERS)
    const [id = ""] = ids
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

describe.each(ALL_LINES)("a new database on OpenCode $version", (binary) => {
  test(promised("queue.A3b", "a process that finds another one making the database waits for it"), async () => {
    const home = temporaryFolder()
    mkdirSync(dirname(databaseOf(home)))
    const release = await holdWriteLock(databaseOf(home))
    const ledger = createLedgerDriver(runProgram(embeddedProgram(binary), { home }))
    const added = Promise.all([1, 2, 3].map((number) => ledger.task(`T${number}`)))
    // The holder and the three that wait for it; one that is refused fails the test.
    const isMet = () => countOpeners(databaseOf(home)) === 4 || undefined
    await Promise.race([added, eventually("three that wait", isMet)])
    release()
    expect(new Set(await added).size).toBe(3)
    expect(readTables(databaseOf(home)).items).toHaveLength(3)
  })
})

const TIME = "'2026-01-02 03:04:05.678 +0000 UTC m=+0.01'"

const VERSION_1 = [
  `CREATE TABLE items (id TEXT PRIMARY KEY, project TEXT NOT NULL, type TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT, status TEXT NOT NULL DEFAULT 'open', priority INTEGER DEFAULT 2,
    parent_id TEXT REFERENCES items(id), created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
    updated_at DATETIME DEFAULT CURRENT_TIMESTAMP)`,
  `CREATE TABLE logs (id INTEGER PRIMARY KEY, item_id TEXT REFERENCES items(id), message TEXT NOT NULL,
    created_at DATETIME DEFAULT CURRENT_TIMESTAMP)`,
  `INSERT INTO items (id, project, type, title, description, created_at, updated_at)
    VALUES ('ts-0000aa', 'old', 'task', 'Kept', 'Its words', ${TIME}, ${TIME})`,
  "INSERT INTO logs (item_id, message) VALUES ('ts-0000aa', 'an old line')",
]

const LABELS = [
  `CREATE TABLE labels (id TEXT PRIMARY KEY, name TEXT NOT NULL, project TEXT NOT NULL, color TEXT,
    created_at DATETIME DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (name, project))`,
  `CREATE TABLE item_labels (item_id TEXT REFERENCES items(id), label_id TEXT REFERENCES labels(id),
    PRIMARY KEY (item_id, label_id))`,
]

const OLD_DATABASES: readonly (readonly [string, readonly string[]])[] = [
  ["version 1 that says so", [...VERSION_1, "PRAGMA user_version = 1"]],
  ["version 1 from before versions were kept", VERSION_1],
  ["version 2", [...VERSION_1, ...LABELS, "PRAGMA user_version = 2"]],
]

const homeWith = (queries: readonly string[]): string => {
  const home = temporaryFolder()
  mkdirSync(dirname(databaseOf(home)))
  // Each query that is no SELECT or PRAGMA is run; a PRAGMA that sets a value is a query to SQLite.
  runSql(databaseOf(home), queries)
  return home
}

describe.each(ALL_LINES)("an existing database, on OpenCode $version", (binary) => {
  const openIn = (home: string) => createLedgerDriver(runProgram(embeddedProgram(binary), { home }))

  test.each(OLD_DATABASES)(promised("ledger.D3", "a database of %s is migrated"), async (_name, queries) => {
    const home = homeWith(queries)
    const ledger = openIn(home)
    await ledger.ok("edit", "ts-0000aa", "--dod", "now it can have one")
    await ledger.ok("label", "ts-0000aa", "bug")
    await ledger.ok("init")
    expect(await ledger.json("show", "ts-0000aa", "--json")).toMatchObject({
      ...{ title: "Kept", description: "Its words", definition_of_done: "now it can have one", labels: ["bug"] },
      logs: [{ message: "an old line" }],
    })
    expect(await ledger.ok("projects")).toBe("old")
    expect(readSchema(databaseOf(home)).version).toStrictEqual({ user_version: 3 })
  })

  test(promised("ledger.D3", "a database of a later version is used and left as it is"), async () => {
    const home = temporaryFolder()
    const ledger = openIn(home)
    const id = await ledger.task("T")
    runSql(databaseOf(home), ["ALTER TABLE items ADD COLUMN later TEXT", "PRAGMA user_version = 4"])
    await ledger.ok("log", id, "still written")
    expect(await ledger.ok("show", id)).toContain("still written")
    expect(readSchema(databaseOf(home)).version).toStrictEqual({ user_version: 4 })
  })
})

test(promised("ledger.D3", "a file that is no database, and a path that cannot be made, are refused"), async () => {
  const home = temporaryFolder()
  const run = runProgram(embeddedProgram(NEWEST), { home, environment: { PROG_DB: "/dev/null/x/prog.db" } })
  const refused = /^Error: failed to open database .*: failed to create directory: /
  expect(await createLedgerDriver(run).fails("init")).toMatch(refused)
  const environment = { PROG_DB: import.meta.filename }
  const ledger = createLedgerDriver(runProgram(embeddedProgram(NEWEST), { home, environment }))
  expect(await ledger.fails("list")).toMatch(/^Error: failed to open database .*: file is not a database$/)
  expect(await ledger.ok("prime")).toContain("(No database connection - run 'prog init' if needed: ")
})

test(promised(["task.C2", "claim.B3"], "only init, add and learn make a missing database, or its tables"), async () => {
  const home = temporaryFolder()
  const ledger = createLedgerDriver(embedded(home))
  const commands = ["list", "show ts-0000aa", "log ts-0000aa m", "desc ts-0000aa t", "context -p demo --summary"]
  const refused = `Error: failed to open database ${databaseOf(home)}: no ledger is there. `
  const claims = ["claim ts-0000aa", "claim --next -p demo", "release ts-0000aa", "claims"]
  for (const command of [...commands, ...claims]) expect(await ledger.fails(...command.split(" "))).toContain(refused)
  expect(existsSync(dirname(databaseOf(home)))).toBe(false)
  expect(await ledger.ok("learn", "S", "-p", "demo", "-c", "a")).toMatch(/^lrn-/)
  const empty = homeWith([])
  writeFileSync(databaseOf(empty), "")
  const other = createLedgerDriver(embedded(empty))
  expect(await other.fails("list")).toContain("no ledger is there")
  expect(await other.task("T")).toMatch(/^ts-/)
  expect(await other.ok("list")).toContain("T")
})

const real = findRealProg()

if (real.kind === "found") {
  test(promised("ledger.D5", "both ledgers make the same schema, and complete a half-made one"), async () => {
    const [mine, theirs] = [temporaryFolder(), temporaryFolder()]
    await createLedgerDriver(embedded(mine)).ok("init")
    await createLedgerDriver(runProgram(real.program, { home: theirs })).ok("init")
    expect(readSchema(databaseOf(mine))).toStrictEqual(readSchema(databaseOf(theirs)))
    const home = temporaryFolder()
    const prog = createLedgerDriver(runProgram(real.program, { home }))
    expect(await prog.fails("list")).toContain("migration failed")
    const id = await createLedgerDriver(embedded(home)).task("T", "--dod", "green", "-l", "bug")
    expect(readTables(databaseOf(home)).items).toHaveLength(1)
    expect(await prog.ok("list")).toContain(id)
  })
} else registerMissingRealProg("that both ledgers make the same schema", real.reason)
