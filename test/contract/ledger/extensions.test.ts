import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { holdEmbedded } from "../../support/ledger/ledger-process.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"

const embedded = holdEmbedded(NEWEST)
const open = () => createLedgerDriver(embedded(temporaryFolder()))

describe("what the embedded ledger does and prog v0.17 does not", () => {
  test(promised("ledger.D3", "a draft is not ready, can be listed, and becomes a task when it is opened"), async () => {
    const ledger = open()
    const [first, second] = [await ledger.task("A", "--draft"), await ledger.task("B")]
    expect(await ledger.ok("draft", second)).toBe(`Marked ${second} as draft`)
    expect(await ledger.ok("ready")).toBe("No ready tasks")
    expect(await ledger.ok("list", "--status", "draft")).toContain(second)
    await ledger.ok("open", first)
    expect(await ledger.ok("ready")).toContain(first)
  })

  test(promised("ledger.D3", "a draft stays outside epics, which prog v0.17 could not read"), async () => {
    const ledger = open()
    const epic = await ledger.epic("E")
    const [draft, child] = [await ledger.task("D", "--draft"), await ledger.task("C", "--parent", epic)]
    const refusal = "Error: a draft cannot belong to an epic: prog v0.17 cannot read an epic with a draft child"
    expect(await ledger.fails("draft", child)).toBe(refusal)
    expect(await ledger.fails("parent", draft, epic)).toBe(refusal)
    expect(await ledger.fails("add", "x", "-p", "demo", "--draft", "--parent", epic)).toBe(refusal)
    expect(await ledger.fails("add", "x", "-p", "demo", "--draft", "-e")).toMatch(/^Error: an epic cannot be a draft/)
    expect(await ledger.fails("draft", "ts-000000")).toMatch(/^Error: item not found: ts-000000 /)
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

  test(promised("ledger.D3", "the version says which ledger this is and which prog it follows"), async () => {
    expect(await open().ok("--version")).toBe("prog version 0.17.0 (Baton's embedded ledger, prog schema 3)")
  })

  test(promised("ledger.D3", "commands that only prog has are named, and so is the way to get it"), async () => {
    const ledger = open()
    for (const name of ["tui", "onboard", "compact", "backup", "restore", "completion"]) {
      expect(await ledger.fails(name)).toBe(
        `Error: command "${name}" is not part of Baton's embedded ledger; install prog for it: go install github.com/baiirun/prog/cmd/prog@v0.17.0`,
      )
    }
    const id = await ledger.task("T")
    expect(await ledger.fails("edit", id)).toMatch(/^Error: the embedded ledger opens no editor: give --title or --dod/)
  })

  test(promised("ledger.D3", "help lists every command, and each command has help of its own"), async () => {
    const ledger = open()
    const [, table = ""] = (await ledger.ok("--help")).split("Commands:\n")
    const names = [...table.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name = ""]) => name)
    expect(names.length).toBeGreaterThan(25)
    for (const name of names) expect(await ledger.ok("help", name)).toContain(`\n\nUsage: prog ${name}`)
  })
})
