import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { CONTRACT, type OpenLedger } from "./contract-tasks.ts"

export const describeViews = (open: OpenLedger): void => {
  test(promised(CONTRACT, "an empty ledger says so in every view"), async () => {
    const ledger = await open()
    expect(await ledger.ok("list")).toBe("No items")
    expect(await ledger.json("list", "--json")).toStrictEqual([])
    expect(await ledger.ok("projects")).toBe("No projects")
    expect(await ledger.ok("graph")).toBe("No dependencies")
    expect(await ledger.ok("concepts", "-p", "demo")).toBe("No concepts")
    expect(await ledger.ok("context", "-p", "demo", "--summary")).toBe("No learnings found")
    expect(await ledger.json("context", "-p", "demo", "--summary", "--json")).toStrictEqual([])
    const none = "Summary: 0 open, 0 in progress, 0 blocked, 0 reviewing, 0 done, 0 canceled (0 ready)"
    expect(await ledger.ok("status")).toBe(`Project: (all)\n\n${none}\n`)
  })

  test(promised(CONTRACT, "list shows a table by priority, then by age, with labels before titles"), async () => {
    const ledger = await open()
    const second = await ledger.task("second")
    const third = await ledger.task("third", "-l", "bug", "-l", "api")
    const first = await ledger.task("first", "--priority", "1")
    await ledger.ok("start", third)
    expect((await ledger.ok("list")).split("\n")).toEqual([
      ...["ID           STATUS       PRI  TITLE", `${first}    open         1    first`],
      ...[`${second}    open         2    second`, `${third}    in_progress  2    [api] [bug] third`],
    ])
  })

  test(promised(CONTRACT, "every filter of list keeps what it names"), async () => {
    const ledger = await open()
    const epic = await ledger.epic("E")
    const blocker = await ledger.task("blocker", "-l", "bug", "-l", "api")
    const blocked = await ledger.task("blocked", "-l", "bug", "--parent", epic)
    const other = await ledger.ok("add", "other", "-p", "another")
    await ledger.ok("blocks", blocker, blocked)
    await ledger.ok("start", other)
    const kept = async (flags?: string): Promise<string[]> =>
      (await ledger.json<{ id: string }[]>("list", "--json", ...(flags?.split(" ") ?? []))).map(({ id }) => id)
    expect(await kept()).toStrictEqual([epic, blocker, blocked, other])
    for (const flags of ["-p another", "--status in_progress"]) expect(await kept(flags)).toStrictEqual([other])
    expect(await kept("--type epic")).toStrictEqual([epic])
    for (const flags of [`--parent ${epic}`, `--blocked-by ${blocker}`, "--has-blockers"])
      expect(await kept(flags)).toStrictEqual([blocked])
    for (const flags of [`--blocking ${blocked}`, "-l bug --label api"])
      expect(await kept(flags)).toStrictEqual([blocker])
    expect(await kept("--no-blockers")).toStrictEqual([epic, blocker, other])
    expect(await kept("-l bug")).toStrictEqual([blocker, blocked])
    expect(await kept("-l bug -l bug")).toStrictEqual([])
  })

  test(promised(CONTRACT, "status counts and shows all work, ten ready tasks of it, and prime does"), async () => {
    const ledger = await open()
    const started = await ledger.task("started", "-l", "bug")
    const reviewed = await ledger.task("reviewed")
    const finished = await ledger.task("finished")
    const ready = await ledger.task("ready", "--priority", "1")
    for (const id of [started, reviewed]) await ledger.ok("start", id)
    await ledger.ok("review", reviewed)
    await ledger.ok("done", finished)
    const counts = "Summary: 1 open, 1 in progress, 0 blocked, 1 reviewing, 1 done, 0 canceled (1 ready)"
    expect((await ledger.ok("status")).split("\n")).toEqual([
      ...["Project: (all)", "", counts, "", "Recently completed:", `  [${finished}] (demo) finished`, ""],
      ...["In progress:", `  [${started}] (demo) [bug] started`, "", "Reviewing:", `  [${reviewed}] (demo) reviewed`],
      ...["", "Ready for work:", `  [${ready}] (demo) ready (pri 1)`],
    ])
    expect(await ledger.ok("status", "-p", "demo")).toContain(`\n  [${ready}] ready (pri 1)`)
    expect(await ledger.ok("status", "-p", "nothing")).toContain("Project: nothing\n\nSummary: 0 open")
    const [, state] = (await ledger.ok("prime")).split("\n## Current State\n")
    expect(state).toContain(`\nIn progress:\n  [${started}] `)
    expect(state).toMatch(/\n\nRun 'prog ready \[-p project\]' to find unblocked work\.$/)
    for (let count = 0; count < 10; count += 1) await ledger.task(`task ${count}`)
    expect(await ledger.ok("status")).toMatch(/\n {2}\(\+1 more, use --all to see all\)$/)
    expect(await ledger.ok("status", "--all")).not.toContain("more, use --all")
  })
}

type Learning = { id: string; summary: string; concepts: string[] }

const learn = (ledger: LedgerDriver, summary: string, ...flags: string[]): Promise<string> =>
  ledger.ok("learn", summary, "-p", "demo", ...flags)

const found = async (ledger: LedgerDriver, ...flags: string[]): Promise<string[]> =>
  (await ledger.json<Learning[]>("context", "-p", "demo", "--json", ...flags)).map(({ id }) => id)

export const describeKnowledge = (open: OpenLedger): void => {
  test(promised(CONTRACT, "learn keeps a learning under its concepts, linked to the task in progress"), async () => {
    const ledger = await open()
    const id = await learn(ledger, "Tokens race", "-c", "auth", "-c", "http", "-f", "a.ts", "--detail", "Because")
    expect(id).toMatch(/^lrn-[0-9a-f]{6}$/)
    const task = await ledger.task("T")
    await ledger.ok("start", task)
    const linked = await learn(ledger, "Linked", "-c", "auth")
    expect(linked).toMatch(new RegExp(`^lrn-[0-9a-f]{6} \\(linked to ${task}\\)$`))
    const [shown] = await ledger.json<Learning[]>("context", "--id", id, "--json")
    expect({ ...shown, concepts: shown?.concepts.toSorted() }).toStrictEqual({
      ...{ id, summary: "Tokens race", detail: "Because", concepts: ["auth", "http"], files: ["a.ts"] },
      status: "active",
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/),
    })
    const head = `## ${linked.slice(0, 10)} (just now)\nLinked`
    const said = await ledger.ok("context", "--id", linked.slice(0, 10))
    expect(said).toBe(`${head}\n\nConcepts: auth\nTask: ${task}`)
    await ledger.okWith({ stdin: "other" }, "learn", "edit", id, "--detail", "-")
    expect(await ledger.json("context", "--id", id, "--json")).toMatchObject([{ detail: "other" }])
  })

  test(promised(CONTRACT, "context finds learnings by concept, the newest first, and by full text"), async () => {
    const ledger = await open()
    const tokens = await learn(ledger, "Token refresh races", "-c", "auth", "--detail", "The mutex is café-local")
    const limits = await learn(ledger, "Rate limits per token", "-c", "http")
    const other = await learn(ledger, "Builds need a cache", "-c", "build")
    expect(await found(ledger, "-c", "auth")).toStrictEqual([tokens])
    expect(await found(ledger, "-c", "auth", "-c", "http")).toStrictEqual([limits, tokens])
    const table: [queries: string[], expected: string[]][] = [
      [["token"], [tokens, limits]],
      [["TOKEN races", '"refresh races"', "token NOT rate", "cafe", "detail:mutex"], [tokens]],
      [["mutex OR cache"], [tokens, other]],
      [["(mutex OR cache) AND builds", "cach*"], [other]],
      [['"races refresh"', "summary:mutex", "nowhere"], []],
    ]
    for (const [queries, expected] of table)
      for (const query of queries)
        expect((await found(ledger, "-q", query)).toSorted(), query).toStrictEqual(expected.toSorted())
    expect(await ledger.ok("context", "-p", "demo", "-q", "nowhere")).toBe("No learnings found")
    expect(await ledger.ok("context", "-p", "another", "-q", "token")).toBe("No learnings found")
  })

  test.each([
    ["foo-bar", "no such column: bar"],
    ["what's", `fts5: syntax error near "'"`],
    ['"open', "unterminated string"],
    ["foo AND", 'fts5: syntax error near ""'],
    ["a.b", 'fts5: syntax error near "."'],
    ["nosuch:x", "no such column: nosuch"],
  ])(promised(CONTRACT, "the query %s is raw FTS5 and refused"), async (query, reason) => {
    const ledger = await open()
    await learn(ledger, "foo bar", "-c", "a")
    const said = await ledger.fails("context", "-p", "demo", "-q", query)
    expect(said.replace("SQL logic error: ", "").replace(/ \(1\)$/, "")).toBe(
      `Error: failed to search learnings: ${reason}`,
    )
    const quoted = `"${query.replaceAll('"', '""')}"`
    expect(await ledger.json("context", "-p", "demo", "--json", "-q", quoted)).toBeInstanceOf(Array)
  })

  test(promised(CONTRACT, "learnings are edited, go stale and are removed"), async () => {
    const ledger = await open()
    const [first, second] = [await learn(ledger, "First", "-c", "a"), await learn(ledger, "Second", "-c", "a")]
    expect(await ledger.ok("learn", "edit", first, "--summary", "Better words")).toBe(`Updated ${first}`)
    expect(await found(ledger, "-q", "better")).toStrictEqual([first])
    expect(await found(ledger, "-q", "first")).toStrictEqual([])
    expect(await ledger.ok("learn", "stale", first, "--reason", "old")).toBe(`Marked ${first} as stale: old`)
    expect(await found(ledger, "-c", "a")).toStrictEqual([second])
    expect(await found(ledger, "-c", "a", "--include-stale")).toStrictEqual([second, first])
    const all = `a: (no summary)\n\n  ${second}: Second\n  ${first}: Better words [stale]`
    expect(await ledger.ok("context", "-c", "a", "-p", "demo", "--include-stale", "--summary")).toBe(all)
    expect(await ledger.ok("learn", "rm", first)).toBe(`Deleted ${first}`)
    expect(await found(ledger, "-q", "better")).toStrictEqual([])
    expect(await ledger.ok("learn", "stale", second, second)).toBe("Marked 2 learnings as stale")
    const twice = await ledger.fails("learn", "x", "-p", "demo", "-c", "b", "-c", "b")
    expect(twice).toMatch(/failed to create concept association: .*UNIQUE constraint failed: /)
  })

  test(promised(CONTRACT, "concepts are counted, described, renamed and suggested"), async () => {
    const ledger = await open()
    const first = await learn(ledger, "One", "-c", "Auth")
    const second = await learn(ledger, "Two", "-c", "Auth")
    await learn(ledger, "Three", "-c", "http")
    const about = "A summary that is longer than forty bytes"
    expect(await ledger.ok("concepts", "Auth", "-p", "demo", "--summary", about)).toBe("Updated Auth")
    expect(await ledger.ok("concepts", "http", "-p", "demo", "--rename", "web")).toBe("Renamed http -> web")
    const head = "NAME                  LEARNINGS  LAST UPDATED  SUMMARY"
    const auth = "Auth                          2  just now      A summary that is longer than forty b..."
    const web = "web                           1  just now      "
    expect(await ledger.ok("concepts", "-p", "demo")).toBe([head, auth, web].join("\n"))
    expect(await ledger.ok("concepts", "-p", "demo", "--recent")).toBe([head, web, auth].join("\n"))
    const counted = "Auth                      2  <1h\nweb                       1  <1h"
    expect(await ledger.ok("concepts", "-p", "demo", "--stats")).toBe(`CONCEPT               COUNT  OLDEST\n${counted}`)
    const task = await ledger.task("Repair the auth flow")
    expect(await ledger.ok("concepts", "--related", task)).toBe([head, auth].join("\n"))
    const load = "Load with: prog context -c Auth -p demo --summary"
    expect(await ledger.ok("show", task)).toContain(`\n\nSuggested context:\n  Auth (2) - ${about}\n\n${load}`)
    const listed = `Auth: ${about}\n  ${second}: Two\n  ${first}: One`
    expect(await ledger.ok("context", "-p", "demo", "--summary")).toContain(listed)
  })
}
