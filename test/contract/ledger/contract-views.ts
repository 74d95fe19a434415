import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { OpenLedger } from "./contract.ts"

const CONTRACT = ["ledger.D3", "ledger.D5"] as const

export const describeViews = (open: OpenLedger): void => {
  test(promised(CONTRACT, "an empty ledger says so in every view"), async () => {
    const ledger = open()
    await ledger.ok("init")
    expect(await ledger.ok("list")).toBe("No items")
    expect(await ledger.json("list", "--json")).toStrictEqual([])
    expect(await ledger.ok("projects")).toBe("No projects")
    expect(await ledger.ok("graph")).toBe("No dependencies")
    expect(await ledger.ok("concepts", "-p", "demo")).toBe("No concepts")
    expect(await ledger.ok("context", "-p", "demo", "--summary")).toBe("No learnings found")
    expect(await ledger.json("context", "-p", "demo", "--summary", "--json")).toStrictEqual([])
    expect(await ledger.ok("status")).toBe(
      "Project: (all)\n\nSummary: 0 open, 0 in progress, 0 blocked, 0 reviewing, 0 done, 0 canceled (0 ready)\n",
    )
  })

  test(promised(CONTRACT, "list shows a table by priority, then by age, with labels before titles"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const second = await ledger.task("second")
    const third = await ledger.task("third", "-l", "bug", "-l", "api")
    const first = await ledger.task("first", "--priority", "1")
    await ledger.ok("start", third)
    expect(await ledger.ok("list")).toBe(
      [
        "ID           STATUS       PRI  TITLE",
        `${first}    open         1    first`,
        `${second}    open         2    second`,
        `${third}    in_progress  2    [api] [bug] third`,
      ].join("\n"),
    )
  })

  test(promised(CONTRACT, "every filter of list keeps what it names"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const epic = await ledger.epic("E")
    const blocker = await ledger.task("blocker", "-l", "bug", "-l", "api")
    const blocked = await ledger.task("blocked", "-l", "bug", "--parent", epic)
    const other = await ledger.ok("add", "other", "-p", "another")
    await ledger.ok("blocks", blocker, blocked)
    await ledger.ok("start", other)
    const kept = async (...flags: string[]): Promise<string[]> =>
      (await ledger.json<{ id: string }[]>("list", "--json", ...flags)).map(({ id }) => id)
    expect(await kept()).toStrictEqual([epic, blocker, blocked, other])
    expect(await kept("-p", "another")).toStrictEqual([other])
    expect(await kept("--status", "in_progress")).toStrictEqual([other])
    expect(await kept("--type", "epic")).toStrictEqual([epic])
    expect(await kept("--parent", epic)).toStrictEqual([blocked])
    expect(await kept("--blocking", blocked)).toStrictEqual([blocker])
    expect(await kept("--blocked-by", blocker)).toStrictEqual([blocked])
    expect(await kept("--has-blockers")).toStrictEqual([blocked])
    expect(await kept("--no-blockers")).toStrictEqual([epic, blocker, other])
    expect(await kept("-l", "bug")).toStrictEqual([blocker, blocked])
    expect(await kept("-l", "bug", "--label", "api")).toStrictEqual([blocker])
    expect(await kept("-l", "bug", "-l", "bug")).toStrictEqual([])
  })

  test(promised(CONTRACT, "status counts, and shows current, finished and ready work"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const started = await ledger.task("started", "-l", "bug")
    const reviewed = await ledger.task("reviewed")
    const finished = await ledger.task("finished")
    const ready = await ledger.task("ready", "--priority", "1")
    for (const id of [started, reviewed]) await ledger.ok("start", id)
    await ledger.ok("review", reviewed)
    await ledger.ok("done", finished)
    expect(await ledger.ok("status")).toBe(
      [
        "Project: (all)",
        "",
        "Summary: 1 open, 1 in progress, 0 blocked, 1 reviewing, 1 done, 0 canceled (1 ready)",
        "",
        ...["Recently completed:", `  [${finished}] (demo) finished`, ""],
        ...["In progress:", `  [${started}] (demo) [bug] started`, ""],
        ...["Reviewing:", `  [${reviewed}] (demo) reviewed`, ""],
        ...["Ready for work:", `  [${ready}] (demo) ready (pri 1)`],
      ].join("\n"),
    )
    expect(await ledger.ok("status", "-p", "demo")).toContain(`\n  [${ready}] ready (pri 1)`)
    expect(await ledger.ok("status", "-p", "nothing")).toContain("Project: nothing\n\nSummary: 0 open")
  })

  test(promised(CONTRACT, "status shows ten ready tasks, and all of them when asked"), async () => {
    const ledger = open()
    await ledger.ok("init")
    for (let count = 0; count < 11; count += 1) await ledger.task(`task ${count}`)
    expect(await ledger.ok("status")).toMatch(/\n {2}\(\+1 more, use --all to see all\)$/)
    expect(await ledger.ok("status", "--all")).not.toContain("more, use --all")
  })

  test(promised(CONTRACT, "prime ends with the current state"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const id = await ledger.task("now")
    await ledger.ok("start", id)
    const [, state] = (await ledger.ok("prime")).split("\n## Current State\n")
    expect(state).toBe(`\nIn progress:\n  [${id}] now\n\nRun 'prog ready [-p project]' to find unblocked work.`)
  })
}
