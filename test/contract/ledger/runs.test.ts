import { spawnSync } from "node:child_process"
import { describe, expect, test } from "vitest"
import { ENDS, type EndKind } from "../../../.opencode/baton/ledger/embedded/run-ends.ts"
import { OPEN_RUNS_QUERY } from "../../../.opencode/baton/ledger/embedded/runs.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver, type LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, holdEmbedded } from "../../support/ledger/ledger-process.ts"
import { runSql } from "../../support/ledger/ledger-rows.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"

const held = holdEmbedded(NEWEST)
const open = () => {
  const home = temporaryFolder()
  return { home, ledger: createLedgerDriver(held(home)), sql: (...lines: string[]) => runSql(databaseOf(home), lines) }
}

type Taken = {
  task: string
  run: number
  earlier: { kind: string; session_id: string }[]
  answer: string
  lease_until: string
  claimed_at: string
}

const OWN_PID = String(process.pid)
const next = (ledger: LedgerDriver, ...flags: string[]): Promise<Taken> =>
  ledger.json("claim", "--next", "-p", "demo", "--as", "w1", "--json", ...flags)
/** The worker's session begins. */
const bind = (ledger: LedgerDriver, id: string, session = "ses_1") =>
  ledger.ok("claim", "--session", session, "--pid", OWN_PID, "--as", "w1", "--", id)
const end = (ledger: LedgerDriver, ...ends: object[]): Promise<{ kind: string; status: string }[]> =>
  ledger.json("run-end", "--", JSON.stringify(ends))
type Shown = { status: string; logs: { message: string }[] }
const show = async (ledger: LedgerDriver, id: string) => {
  const { status, logs } = await ledger.json<Shown>("show", id, "--json")
  return { status, log: logs.map(({ message }) => message) }
}
const NONE_LEFT = "Error: no task of project demo is ready and free"

/** One run that ends as given. */
const runOnce = async (ledger: LedgerDriver, kind: EndKind, ...flags: string[]): Promise<Taken> => {
  const taken = await next(ledger, ...flags)
  await bind(ledger, taken.task, `ses_${taken.run}`)
  await end(ledger, { task: taken.task, n: taken.run, kind, detail: "so" })
  return taken
}

/** Status, line in the log, and whether the task can be taken again at once. */
const ORACLE: Record<EndKind, [string, string, boolean]> = {
  done: ["in_progress", "done: so", false],
  reviewing: ["in_progress", "reviewing: so", false],
  canceled: ["in_progress", "canceled: so", false],
  provider: ["open", "provider: so; open again", true],
  stopped: ["open", "stopped: so; open again", true],
  killed: ["open", "killed: so; open again (attempt 1 of 3)", true],
  stuck: ["open", "stuck: so; open again (attempt 1 of 3), not before TIME", false],
  context: ["open", "context: so; open again (attempt 1 of 3)", true],
  idle: ["open", "idle: so; open again (attempt 1 of 3), not before TIME", false],
  unfinished: ["open", "unfinished: so; open again (attempt 1 of 3)", true],
  "check red": ["open", "check red: so; open again (attempt 1 of 3)", true],
  "not checked": ["open", "not checked: so; open again", true],
  question: ["blocked", 'question: so; blocked until a person answers: prog unblock ID "answer"', false],
  "permission refused": [
    "blocked",
    'permission refused: so; blocked until a person answers: prog unblock ID "answer"',
    false,
  ],
}

describe("the end of a run", () => {
  for (const [kind, [status, line, isFree]] of Object.entries(ORACLE) as [EndKind, [string, string, boolean]][])
    test(
      promised("queue.A2", `a run's end, ${kind}, sets the task's status, its log and who can take it`),
      async () => {
        const { ledger } = open()
        const id = await ledger.task("T")
        await runOnce(ledger, kind)
        const shown = await show(ledger, id)
        expect(shown.status).toBe(status)
        expect(shown.log.map((each) => each.replace(id, "ID").replace(/before .*/, "before TIME"))).toEqual([
          `Run 1 ended: ${line}`,
        ])
        expect(await ledger.ok("claims")).toBe("No claims")
        if (isFree)
          expect(await next(ledger)).toMatchObject({ task: id, run: 2, earlier: [{ kind, session_id: "ses_1" }] })
        else expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe(NONE_LEFT)
      },
    )

  test(promised("queue.A2", "the table names every kind of end"), () => {
    expect(Object.keys(ORACLE).toSorted()).toEqual(Object.keys(ENDS).toSorted())
  })

  test(
    promised("queue.A2", "a worker that is killed before its agent's session begins leaves the run the worker's"),
    async () => {
      const { ledger } = open()
      const id = await ledger.task("T")
      const over = spawnSync("true").pid
      const { run } = await next(ledger, "--pid", String(over))
      await ledger.ok("claim", "--session", "ses_1", "--pid", String(spawnSync("true").pid), "--as", "w1", "--", id)
      expect(await ledger.json("runs", id, "--json")).toMatchObject([
        { n: run, worker: "w1", session_id: "ses_1", ended: "" },
      ])
      // The agent is gone, too.
      expect(await next(ledger)).toMatchObject({ task: id, run: 2, earlier: [{ kind: "killed", session_id: "ses_1" }] })
    },
  )

  test(
    promised("queue.A2", "a killed agent's task is given back, also where a session by hand has begun beside it"),
    async () => {
      const { ledger, sql } = open()
      const id = await ledger.task("T")
      await next(ledger)
      await bind(ledger, id)
      expect(await ledger.fails("claim", "--session", "ses_ada", "--pid", OWN_PID, "--as", "ada", "--", id)).toContain(
        `${id} is claimed by w1`,
      )
      sql("UPDATE baton_claims SET pid = 999999999")
      expect(await end(ledger, { task: id, n: 1, kind: "killed", detail: "so" })).toMatchObject([{ status: "open" }])
      expect((await show(ledger, id)).log).toEqual(["Run 1 ended: killed: so; open again (attempt 1 of 3)"])
    },
  )

  test(promised("queue.A2", "a person's own sessions are no attempts of a worker's"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    for (const session of ["ses_a", "ses_b", "ses_c"]) {
      await ledger.ok("claim", "--session", session, "--pid", OWN_PID, "--as", "ada", "--", id)
      await end(ledger, { session, pid: process.pid, kind: "unfinished", detail: "a look" })
      await ledger.ok("open", id)
    }
    await runOnce(ledger, "unfinished")
    expect((await show(ledger, id)).log.at(-1)).toBe("Run 4 ended: unfinished: so; open again (attempt 1 of 3)")
  })

  test(promised("queue.A1", "the task's status counts for more than what was seen"), async () => {
    const { ledger } = open()
    for (const [command, kind] of [
      ["done", "done"],
      ["review", "reviewing"],
      ["cancel", "canceled"],
    ] as const) {
      const id = await ledger.task("T")
      const { run } = await next(ledger)
      await bind(ledger, id)
      await ledger.ok(command, id)
      const seen = { kind: "provider", detail: "401", tools: 3, tokens: 900, cost: 0.25, branch: "main" }
      expect(await end(ledger, { session: "ses_1", pid: process.pid, ...seen })).toMatchObject([{ kind, detail: "" }])
      expect(await ledger.json("runs", id, "--json")).toMatchObject([
        { n: run, kind, worker: "w1", session_id: "ses_1", tools: 3, tokens: 900, cost: 0.25, branch: "main" },
      ])
      expect((await show(ledger, id)).log.at(-1)).toBe(`Run 1 ended: ${kind}`)
    }
  })

  test.each([
    ["check red", "check red: npm test: 2 failed; open again (attempt 1 of 3)"],
    ["not checked", "not checked: npm test: 2 failed; open again"],
  ])(promised("queue.A2", "a check opens what was said to be done: %s"), async (kind, line) => {
    const { ledger } = open()
    const id = await ledger.task("T")
    await next(ledger)
    await bind(ledger, id)
    await ledger.ok("done", id)
    await end(ledger, { session: "ses_1", pid: process.pid, kind: "unfinished" })
    const red = { task: id, n: 1, kind, detail: "npm test: 2 failed" }
    for (const _ of ["first", "again"]) expect(await end(ledger, red)).toMatchObject([{ kind, status: "open" }])
    expect((await show(ledger, id)).log).toEqual(["Run 1 ended: done", `Run 1 ended: ${line}`])
    await ledger.ok("cancel", id)
    const later = { ...red, kind: kind === "check red" ? "not checked" : "check red" }
    expect(await end(ledger, later), "canceled by a person").toMatchObject([{ kind, status: "canceled" }])
  })

  test(promised("queue.A2", "three counted attempts block a task, a provider's do not count"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    for (const kind of ["killed", "provider", "provider", "provider", "check red", "unfinished"] as const)
      await runOnce(ledger, kind)
    const blocked = `Run 6 ended: unfinished: so; blocked: 3 runs: killed, check red, unfinished; prog unblock ${id} opens it`
    expect(await show(ledger, id)).toMatchObject({ status: "blocked", log: expect.arrayContaining([blocked]) })
    expect(await ledger.ok("queue", "-p", "demo")).toContain(`${id}    T: 3 runs: killed, check red, unfinished`)
    expect(await ledger.ok("unblock", id, "Take", "the short way.")).toBe(`Unblocked ${id}`)
    expect((await show(ledger, id)).log.at(-1)).toBe("Unblocked: Take the short way.")
    expect(await ledger.fails("unblock", id)).toBe(`Error: ${id} is open, not blocked`)
    expect(await runOnce(ledger, "killed")).toMatchObject({ answer: "Take the short way." })
    expect(await next(ledger), "it is given once, and attempts count anew").toMatchObject({ run: 8, answer: "" })
  })

  test(promised("queue.A2", "a blocked task that is opened by hand counts its attempts anew"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    await runOnce(ledger, "killed", "--attempts", "1")
    expect((await show(ledger, id)).status).toBe("blocked")
    await ledger.ok("open", id)
    await runOnce(ledger, "killed", "--attempts", "2")
    expect((await show(ledger, id)).log.at(-1)).toContain("(attempt 1 of 2)")
  })

  test(promised("queue.A1", "a session's run that nothing has begun is noted with its end"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    const seen = { session: "ses_9", task: id, pid: process.pid, kind: "idle", tools: 0 }
    expect(await end(ledger, seen), "only the end of a whole session").toEqual([])
    expect(await end(ledger, { ...seen, late: true })).toMatchObject([{ n: 1, kind: "idle", status: "open" }])
    await ledger.ok("claim", "--next", "-p", "demo")
    const late = await end(ledger, { ...seen, kind: "provider", late: true })
    expect(late, "it is the run of its own worker's claim").toMatchObject([{ n: 2, kind: "provider", status: "open" }])
  })
})

describe("claim --next", () => {
  test(
    promised("queue.A3", "claim --next hands out a gone worker's task, own host first, before what is ready"),
    async () => {
      const { ledger, sql } = open()
      const ids = [await ledger.task("A"), await ledger.task("B"), await ledger.task("C"), await ledger.task("D")]
      for (const id of ids.slice(0, 3)) {
        await next(ledger)
        await bind(ledger, id, `ses_${id}`)
      }
      const [a = "", b = "", c = "", d = ""] = ids
      const over = (id: string) =>
        `UPDATE baton_claims SET lease_until = '2026-01-01T00:00:00.000Z' WHERE task_id = '${id}'`
      // Another host's is over with its lease alone.
      for (const table of ["baton_claims", "baton_runs"])
        sql(`UPDATE ${table} SET host = 'other' WHERE task_id = '${a}'`)
      sql(over(a), `UPDATE baton_claims SET pid = 999999999 WHERE task_id = '${b}'`)
      expect(await next(ledger)).toMatchObject({
        task: b,
        run: 2,
        earlier: [{ kind: "killed", session_id: `ses_${b}` }],
      })
      expect(await next(ledger)).toMatchObject({ task: a, run: 2 })
      expect(await next(ledger)).toMatchObject({ task: d, run: 1 })
      expect(await ledger.fails("claim", "--next", "-p", "demo"), `${c} is at work`).toBe(NONE_LEFT)
      const lines = [...(await show(ledger, b)).log, ...(await show(ledger, a)).log]
      expect(lines).toEqual([
        "Run 1 ended: killed: its process is gone; open again (attempt 1 of 3)",
        "Run 1 ended: killed: its claim was not renewed; open again (attempt 1 of 3)",
      ])
    },
  )

  test(promised("queue.A3", "claim --next finds gone workers' tasks by the index of open runs"), async () => {
    const { ledger, sql } = open()
    await ledger.task("T")
    await next(ledger)
    const [plan = []] = sql(`EXPLAIN QUERY PLAN ${OPEN_RUNS_QUERY.replaceAll("?", "'x'")}`)
    const steps = plan.map(({ detail }) => String(detail))
    expect(steps[0]).toMatch(/^(?:SCAN|SEARCH) r USING INDEX baton_open_runs/)
    expect(steps[1]).toMatch(/^SEARCH i USING INDEX sqlite_autoindex_items_1 \(id=\?\)/)
  })

  test(promised("queue.A3", "a task that no session took up is no attempt of an agent"), async () => {
    const { ledger, sql } = open()
    const id = await ledger.task("T")
    for (const n of [1, 2, 3, 4]) {
      expect(await next(ledger)).toMatchObject({ task: id, run: n })
      sql(`UPDATE baton_claims SET lease_until = '2026-01-01T00:00:00.000Z'`)
    }
    expect((await show(ledger, id)).log).toEqual(
      [1, 2, 3].map((n) => `Run ${n} ended: killed: no session began; open again`),
    )
  })

  test(
    promised("queue.A3", "the end that claim --next gives a run is kept, also where no task is left to take"),
    async () => {
      const { ledger, sql } = open()
      const id = await ledger.task("T")
      await next(ledger, "--attempts", "1")
      await bind(ledger, id)
      sql("UPDATE baton_claims SET pid = 999999999")
      expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe(NONE_LEFT)
      expect((await show(ledger, id)).status).toBe("blocked")
    },
  )

  test(
    promised(
      "queue.A3",
      "claim --next leaves the run of a done task to its agent, which may still speak, until that is gone",
    ),
    async () => {
      const { ledger, sql } = open()
      const id = await ledger.task("T")
      await next(ledger)
      await bind(ledger, id)
      await ledger.ok("done", id)
      expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe(NONE_LEFT)
      const seen = {
        session: "ses_1",
        pid: process.pid,
        kind: "unfinished",
        tools: 2,
        tokens: 30,
        late: true,
        task: id,
      }
      expect(await end(ledger, seen)).toMatchObject([{ n: 1, kind: "done", tools: 2, tokens: 30 }])
      expect(await ledger.json("runs", id, "--json")).toHaveLength(1)
      sql("UPDATE baton_runs SET ended = '', pid = 999999999")
      expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe(NONE_LEFT)
      expect((await show(ledger, id)).log.at(-1)).toBe("Run 1 ended: done")
      expect(await ledger.json("runs", id, "--json")).not.toMatchObject([{ ended: "" }])
    },
  )

  test(promised("queue.A3", "claim --next leaves a person's task alone, also when their session is gone"), async () => {
    const { ledger, sql } = open()
    const id = await ledger.task("T")
    await ledger.ok("claim", "--session", "ses_p", "--pid", OWN_PID, "--person", "--", id)
    sql("UPDATE baton_claims SET pid = 999999999")
    expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe(NONE_LEFT)
    expect(await ledger.json("runs", id, "--json")).toMatchObject([{ worker: "", session_id: "ses_p" }])
  })

  test(
    promised("queue.A3", "a worker's lease is short, a session's takes it over, a person's lasts as they say"),
    async () => {
      const { ledger } = open()
      const [a = "", b = "", c = "", d = ""] = await Promise.all(
        ["A", "B", "C", "D"].map((title) => ledger.task(title)),
      )
      const minutes = ({ claimed_at, lease_until }: Taken) =>
        (Date.parse(lease_until) - Date.parse(claimed_at)) / 60_000
      expect(minutes(await next(ledger))).toBe(5)
      await bind(ledger, a)
      expect(await ledger.json("claims", "--json")).toMatchObject([{ task: a, session: "ses_1", fence: 1 }])
      expect(await ledger.fails("claim", a, "--as", "w2")).toContain(`${a} is claimed by w1 (session ses_1 on `)
      expect(minutes(await ledger.json("claim", b, "--json"))).toBe(480)
      expect(minutes(await ledger.json("claim", c, "--for", "3d", "--json"))).toBe(3 * 24 * 60)
      for (const wrong of ["3", "0h", "40d", "an hour"])
        expect(await ledger.fails("claim", d, "--for", wrong)).toBe(
          `Error: expected --for as a time of at most 31 days, such as 90m, 8h or 3d, received "${wrong}"`,
        )
      expect(await ledger.ok("claims")).toContain(c)
    },
  )

  test(promised("queue.A3", "done, cancel and open end a claim for good"), async () => {
    const { ledger } = open()
    for (const close of ["done", "cancel", "open"]) {
      const id = await ledger.task("T")
      await ledger.ok("claim", id, "--as", "ada")
      await ledger.ok(close, id)
      await ledger.ok("start", id)
      expect(await ledger.ok("claims"), close).toBe("No claims")
    }
  })
})

describe("a worker", () => {
  const beat = (ledger: LedgerDriver, more: object = {}) => {
    const worker = {
      id: "host-1",
      pid: process.pid,
      project: "demo",
      directory: "/project",
      slots: 2,
      state: "working",
    }
    return ledger.json<{ wanted: string; runs: object[] }>("worker-beat", "--", JSON.stringify({ ...worker, ...more }))
  }

  test(promised("queue.A3", "a worker renews the claims of its runs, and learns which it has lost"), async () => {
    const { ledger, sql } = open()
    const id = await ledger.task("T")
    await next(ledger)
    const leaseLeft = async () => {
      const [claim] = await ledger.json<Taken[]>("claims", "--json")
      return Date.parse(claim?.lease_until ?? "") - Date.now()
    }
    sql(`UPDATE baton_claims SET lease_until = '${new Date(Date.now() + 60_000).toISOString()}'`)
    expect(await beat(ledger, { runs: [{ task: id, n: 1 }] })).toMatchObject({ runs: [{ held: true, ended: "" }] })
    expect(await leaseLeft()).toBeGreaterThan(120_000)
    await ledger.ok("release", id)
    await ledger.ok("claim", id, "--as", "ada")
    expect(await beat(ledger, { runs: [{ task: id, n: 1 }] })).toMatchObject({ runs: [{ held: false }] })
    expect(
      await end(ledger, { task: id, n: 1, kind: "killed" }),
      "what another has since is not given back",
    ).toMatchObject([{ status: "in_progress" }])
    expect(await ledger.ok("claims")).toContain("ada")
  })

  test(promised("work.B3", "a worker is told what a person wants of it"), async () => {
    const { ledger } = open()
    await ledger.task("T")
    expect(await beat(ledger)).toMatchObject({ wanted: "active" })
    expect(await ledger.ok("worker-want", "draining", "-p", "other")).toBe("")
    expect(await ledger.ok("worker-want", "draining", "-p", "demo")).toBe("host-1")
    expect(await beat(ledger)).toMatchObject({ wanted: "draining" })
    expect(await ledger.fails("worker-want", "gone")).toBe(
      'Error: expected one of active, paused, draining, stopped, received "gone"',
    )
    expect(await ledger.ok("workers")).toMatch(/^host-1 +working +demo \/project$/)
    await beat(ledger, { pid: 999_999_999 })
    expect(await ledger.ok("workers")).toMatch(/^host-1 +gone /)
    await beat(ledger, { state: "ended" })
    expect(await ledger.ok("workers")).toBe("No workers")
  })
})
