import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { LedgerDriver } from "../../support/ledger/ledger-driver.ts"

/** Opens a ledger with nothing in it; its files are removed when the test ends. */
export type OpenLedger = () => Promise<LedgerDriver>

export const CONTRACT = ["ledger.D3", "ledger.D5"] as const

export const describeTasks = (open: OpenLedger): void => {
  test(promised(CONTRACT, "add prints the id alone, and show gives every field back"), async () => {
    const ledger = await open()
    const epic = await ledger.epic("Epic")
    const waiting = await ledger.task("Waits")
    const id = await ledger.ok(
      ...["add", "Fix", "the", "thing", "-p", "demo", "--priority", "1", "--parent", epic, "--blocks", waiting],
      ...["-l", "urgent", "--label=bug", "--dod", "Tests pass", "-d", "Why & <how>"],
    )
    expect(`${epic} ${id}`).toMatch(/^ep-[0-9a-f]{6} ts-[0-9a-f]{6}$/)
    expect(await ledger.json("show", id, "--json")).toStrictEqual({
      ...{ id, title: "Fix the thing", type: "task", status: "open", priority: 1, project: "demo", parent: epic },
      ...{ description: "Why & <how>", definition_of_done: "Tests pass", labels: ["bug", "urgent"] },
      ...{ dependencies: [], logs: [] },
    })
    const shown = await ledger.json("show", waiting, "--json")
    expect(shown).toMatchObject({ priority: 2, parent: null, dependencies: [id] })
    expect(await ledger.ok("show", id, "--json")).toContain('"Why \\u0026 \\u003chow\\u003e"')
  })

  test(promised(CONTRACT, "show prints every field; the log only grows, in order, with times in UTC"), async () => {
    const ledger = await open()
    const other = await ledger.task("Other")
    const id = await ledger.task("Main", "-d", "The brief", "--dod", "Done when green", "-l", "bug")
    await ledger.ok("blocks", other, id)
    for (const message of ["began", "went on"]) expect(await ledger.ok("log", id, message)).toBe(`Logged to ${id}`)
    const shown = (await ledger.ok("show", id)).replaceAll(/\[\d{4}-\d\d-\d\d \d\d:\d\d\]/g, "[TIME]")
    expect(shown.split("\n")).toStrictEqual([
      ...[`ID:          ${id}`, "Type:        task", "Project:     demo", "Title:       Main", "Status:      open"],
      ...["Priority:    2", "Labels:      bug", "", "Description:", "The brief", "", "Definition of Done:"],
      ...["Done when green", "", "Dependencies:", `  - ${other}`, "", "Logs:", "  [TIME] began", "  [TIME] went on"],
    ])
    expect((await ledger.ok("show", other)).split("\n")).toHaveLength(6)
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const logs = ["began", "went on"].map((message) => ({ message, created_at }))
    expect(await ledger.json("show", id, "--json")).toMatchObject({ logs })
  })

  test(promised(CONTRACT, "append adds a paragraph, desc replaces all, edit sets title and criteria"), async () => {
    const ledger = await open()
    const id = await ledger.task("Old", "-d", "One")
    expect(await ledger.ok("append", id, "two", "words")).toBe(`Appended to ${id}`)
    expect(await ledger.json("show", id, "--json")).toMatchObject({ description: "One\n\ntwo words" })
    expect(await ledger.ok("desc", id, "all", "new")).toBe(`Updated description for ${id}`)
    expect(await ledger.json("show", id, "--json")).toMatchObject({ description: "all new" })
    const empty = await ledger.task("Empty")
    await ledger.ok("append", empty, "text")
    expect(await ledger.json("show", empty, "--json")).toMatchObject({ description: "\n\ntext" })
    expect(await ledger.ok("edit", id, "--title", "New")).toBe(`Updated title for ${id}`)
    expect(await ledger.ok("edit", id, "--dod", "Green")).toBe(`Updated definition of done for ${id}`)
    expect(await ledger.json("show", id, "--json")).toMatchObject({ title: "New", definition_of_done: "Green" })
    expect(await ledger.ok("edit", id, "--dod", "")).toBe(`Cleared definition of done for ${id}`)
    expect(await ledger.json("show", id, "--json")).toMatchObject({ title: "New", definition_of_done: null })
  })

  test(promised(CONTRACT, "parent, blocks and project link tasks, and say so"), async () => {
    const ledger = await open()
    const [epic, first, second] = [await ledger.epic("E"), await ledger.task("A"), await ledger.task("B")]
    expect(await ledger.ok("parent", first, epic)).toBe(`${first} is now under ${epic}`)
    expect(await ledger.ok("blocks", first, second)).toBe(`${first} now blocks ${second}`)
    expect(await ledger.ok("blocks", first, second)).toBe(`${first} now blocks ${second}`)
    expect(await ledger.ok("project", second, "another")).toBe(`${second} is now in project another`)
    expect(await ledger.json("show", first, "--json")).toMatchObject({ parent: epic })
    expect(await ledger.json("show", second, "--json")).toMatchObject({ dependencies: [first], project: "another" })
    expect(await ledger.ok("projects")).toBe("another\ndemo")
    expect(await ledger.ok("graph")).toBe(`${second} [open] B\n  └── ${first} [open] A`)
  })

  test(promised(CONTRACT, "labels are attached, listed, renamed and removed within a project"), async () => {
    const ledger = await open()
    const id = await ledger.task("T")
    expect(await ledger.ok("labels", "-p", "demo")).toBe("No labels")
    expect(await ledger.ok("label", id, 'bu"g')).toBe(`Added label "bu\\"g" to ${id}`)
    await ledger.ok("label", id, 'bu"g')
    expect(await ledger.ok("labels", "add", "urgent", "-p", "demo", "--color", "#f00")).toBe("Created label: urgent")
    const created = 'bu"g                  just now      -\nurgent                just now      #f00'
    expect(await ledger.ok("labels", "-p", "demo")).toBe(`NAME                  CREATED       COLOR\n${created}`)
    expect(await ledger.ok("labels", "rename", 'bu"g', "bug", "-p", "demo")).toBe('Renamed label: bu"g -> bug')
    expect(await ledger.json("show", id, "--json")).toMatchObject({ labels: ["bug"] })
    expect(await ledger.ok("unlabel", id, "bug")).toBe(`Removed label "bug" from ${id}`)
    expect(await ledger.fails("unlabel", id, "bug")).toBe("Error: item does not have label: bug")
    const taken = /^Error: failed to create label: .*UNIQUE constraint failed: labels\.name, labels\.project/
    expect(await ledger.fails("labels", "add", "urgent", "-p", "demo")).toMatch(taken)
    await ledger.ok("label", id, "urgent")
    expect(await ledger.ok("labels", "rm", "urgent", "-p", "demo")).toBe("Deleted label: urgent")
    expect(await ledger.json("show", id, "--json")).toMatchObject({ labels: [] })
  })

  test(promised(CONTRACT, "delete removes a task, but none that others refer to"), async () => {
    const ledger = await open()
    const [first, second] = [await ledger.task("A"), await ledger.task("B")]
    await ledger.ok("blocks", first, second)
    await ledger.ok("log", first, "x")
    expect(await ledger.ok("delete", first)).toBe(`Deleted ${first}`)
    expect(await ledger.json("show", second, "--json")).toMatchObject({ dependencies: [] })
    await ledger.ok("label", second, "bug")
    const refused = /^Error: failed to delete item: .*FOREIGN KEY constraint failed/
    expect(await ledger.fails("delete", second)).toMatch(refused)
    expect(await ledger.ok("list")).toContain(second)
  })
}

/** Commands that bring a new task to a status. */
const WAYS: Readonly<Record<string, readonly string[]>> = {
  open: [],
  in_progress: ["start"],
  reviewing: ["start", "review"],
  done: ["done"],
  canceled: ["cancel"],
}

const ANSWERS: Readonly<Record<string, { status: string; says: (id: string) => string }>> = {
  start: { status: "in_progress", says: (id) => `Started ${id}` },
  done: { status: "done", says: (id) => `Completed ${id}` },
  cancel: { status: "canceled", says: (id) => `Canceled ${id}` },
  open: { status: "open", says: (id) => `Reopened ${id}` },
}

const taskIn = async (ledger: LedgerDriver, status: string, ...flags: string[]): Promise<string> => {
  const id = await ledger.task(`task ${status}`, ...flags)
  for (const command of WAYS[status] ?? []) await ledger.ok(command, id)
  return id
}

const statusOf = async (ledger: LedgerDriver, id: string): Promise<string> =>
  (await ledger.json<{ status: string }>("show", id, "--json")).status

export const describeStatuses = (open: OpenLedger): void => {
  test.each(Object.keys(WAYS))(promised(CONTRACT, "from %s, prog's statuses are reached"), async (from) => {
    const ledger = await open()
    const expected = new Map<string, string>()
    for (const [command, { status, says }] of Object.entries(ANSWERS)) {
      const id = await taskIn(ledger, from)
      expect((await ledger.ok(command, id)).split("\n")[0]).toBe(says(id))
      expected.set(id, status)
    }
    const listed = await ledger.json<{ id: string; status: string }[]>("list", "--json")
    expect(new Map(listed.map(({ id, status }) => [id, status]))).toStrictEqual(expected)
    const id = await taskIn(ledger, from)
    if (from === "in_progress") expect(await ledger.ok("review", id)).toBe(`Marked ${id} as reviewing`)
    else {
      const refusal = `Error: can only review in_progress tasks (current status: ${from})`
      expect(await ledger.fails("review", id)).toBe(refusal)
    }
  })

  test(promised(CONTRACT, "cancel takes a reason into the log, and done asks what was learned"), async () => {
    const ledger = await open()
    const [first, second] = [await ledger.task("A"), await ledger.task("B")]
    expect(await ledger.ok("cancel", first, "not", "needed")).toBe(`Canceled ${first}: not needed`)
    expect(await ledger.json("show", first, "--json")).toMatchObject({ logs: [{ message: "Canceled: not needed" }] })
    const reflect = "Reflect: What would help the next agent? (See instructions for guidance)"
    const hint = `${reflect}\n  prog learn "summary" -c concept --detail "explanation"`
    expect(await ledger.ok("done", second)).toBe(`Completed ${second}\n\n${hint}`)
  })

  test(promised(CONTRACT, "an epic's status follows its children, unless it is closed by hand"), async () => {
    const ledger = await open()
    const epic = await ledger.epic("E")
    expect(await statusOf(ledger, epic)).toBe("open")
    const [first, second] = [await ledger.task("A", "--parent", epic), await ledger.task("B", "--parent", epic)]
    expect(await statusOf(ledger, epic)).toBe("open")
    const after: string[] = []
    for (const command of ["start", "review", "open", "done"]) {
      await ledger.ok(command, first)
      after.push(await statusOf(ledger, epic))
    }
    expect(after).toEqual(["in_progress", "in_progress", "open", "in_progress"])
    await ledger.ok("cancel", second)
    expect(await statusOf(ledger, epic)).toBe("done")
    expect(await ledger.ok("list", "--status", "done")).toContain(epic)
    await ledger.ok("open", second)
    await ledger.ok("cancel", epic)
    expect(await statusOf(ledger, epic)).toBe("canceled")
    const derived = "epic status is derived from children; only 'done' and 'canceled' can be set manually"
    expect(await ledger.fails("start", epic)).toBe(`Error: ${derived} (to force-close)`)
  })

  test(promised(CONTRACT, "ready shows open tasks whose dependencies are closed, the urgent first"), async () => {
    const ledger = await open()
    expect(await ledger.ok("ready")).toBe("No ready tasks")
    expect(await ledger.json("ready", "--json")).toStrictEqual([])
    const epic = await ledger.epic("E")
    const child = await ledger.task("child", "--parent", epic, "--priority", "3")
    const first = await ledger.task("first", "--priority", "2", "--dod", "green", "-l", "bug")
    const afterTask = await ledger.task("after a task", "--priority", "1")
    const afterEpic = await ledger.task("after an epic", "--priority", "1")
    await ledger.ok("blocks", first, afterTask)
    await ledger.ok("blocks", epic, afterEpic)
    const ready = async (...flags: string[]): Promise<string[]> =>
      (await ledger.json<{ id: string }[]>("ready", "--json", ...flags)).map(({ id }) => id)
    expect(await ready()).toStrictEqual([first, child])
    const rows = `${first}    2    [DoD] [bug] first\n${child}    3    child`
    expect(await ledger.ok("ready")).toBe(`ID           PRI  TITLE\n${rows}`)
    expect(await ready("-l", "bug")).toStrictEqual([first])
    expect(await ready("-p", "another")).toStrictEqual([])
    await ledger.ok("cancel", first)
    expect(await ready()).toStrictEqual([afterTask, child])
    await ledger.ok("done", child)
    expect(await ready()).toStrictEqual([afterTask, afterEpic])
    const shown = { id: afterTask, title: "after a task", priority: 1, type: "task", parent: null }
    expect(await ledger.json("ready", "--json")).toContainEqual(shown)
  })
}
