import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import type { OpenLedger } from "./contract.ts"

const CONTRACT = ["ledger.D3", "ledger.D5"] as const

/** How a new task comes to a status. */
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
  test.each(Object.keys(WAYS))(
    promised(CONTRACT, "from %s, every status can be reached that prog allows"),
    async (from) => {
      const ledger = open()
      await ledger.ok("init")
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
    },
  )

  test(promised(CONTRACT, "cancel takes a reason into the log, and done asks what was learned"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const [first, second] = [await ledger.task("A"), await ledger.task("B")]
    expect(await ledger.ok("cancel", first, "not", "needed")).toBe(`Canceled ${first}: not needed`)
    expect(await ledger.json("show", first, "--json")).toMatchObject({ logs: [{ message: "Canceled: not needed" }] })
    expect(await ledger.ok("done", second)).toBe(
      [
        `Completed ${second}`,
        "",
        "Reflect: What would help the next agent? (See instructions for guidance)",
        '  prog learn "summary" -c concept --detail "explanation"',
      ].join("\n"),
    )
  })

  test(promised(CONTRACT, "an epic's status follows its children, unless it is closed by hand"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const epic = await ledger.epic("E")
    const follows = async (status: string): Promise<void> => expect(await statusOf(ledger, epic)).toBe(status)
    await follows("open")
    const [first, second] = [await ledger.task("A", "--parent", epic), await ledger.task("B", "--parent", epic)]
    await follows("open")
    await ledger.ok("start", first)
    await follows("in_progress")
    await ledger.ok("review", first)
    await follows("in_progress")
    await ledger.ok("open", first)
    await follows("open")
    await ledger.ok("done", first)
    await follows("in_progress")
    await ledger.ok("cancel", second)
    await follows("done")
    expect(await ledger.ok("list", "--status", "done")).toContain(epic)
    await ledger.ok("open", second)
    await ledger.ok("cancel", epic)
    await follows("canceled")
    expect(await ledger.fails("start", epic)).toBe(
      "Error: epic status is derived from children; only 'done' and 'canceled' can be set manually (to force-close)",
    )
  })

  test(promised(CONTRACT, "ready shows open tasks whose dependencies are closed, the urgent first"), async () => {
    const ledger = open()
    await ledger.ok("init")
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
    expect(await ledger.ok("ready")).toBe(
      ["ID           PRI  TITLE", `${first}    2    [DoD] [bug] first`, `${child}    3    child`].join("\n"),
    )
    expect(await ready("-l", "bug")).toStrictEqual([first])
    expect(await ready("-p", "another")).toStrictEqual([])
    await ledger.ok("cancel", first)
    expect(await ready()).toStrictEqual([afterTask, child])
    await ledger.ok("done", child)
    expect(await ready()).toStrictEqual([afterTask, afterEpic])
    expect(await ledger.json("ready", "--json")).toContainEqual({
      id: afterTask,
      title: "after a task",
      priority: 1,
      type: "task",
      parent: null,
    })
  })
}
