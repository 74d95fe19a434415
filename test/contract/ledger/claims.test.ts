import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { firstReadyQuery } from "../../../.opencode/baton/ledger/embedded/items.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { endWithTest, temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver, type LedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { databaseOf, embeddedProgram, holdEmbedded, LAUNCHER, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { readSchema, runSql } from "../../support/ledger/ledger-rows.ts"
import { endsOf } from "../../support/opencode/ends.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"
import { testRandom } from "../../support/test-random.ts"

const WORKERS = 8
const CLAIMS = runs(20)
const ALL = WORKERS * CLAIMS
const LONG = { timeout: 120_000 }

const held = holdEmbedded(NEWEST)
const open = (home = temporaryFolder()) => ({ home, ledger: createLedgerDriver(held(home)) })

type Claim = { task: string; holder: string; session: string; fence: number; claimed_at: string; lease_until: string }
const claimsOf = (ledger: LedgerDriver): Promise<Claim[]> => ledger.json("claims", "--json")

/** Copies of a task under other ids: adding each with a command takes longer than the test. */
const multiply = (home: string, id: string): void => {
  const row = `SELECT 'ts-' || substr('000000' || n, -6), project, type, title, description, status, priority, parent_id, created_at, updated_at, definition_of_done FROM items, numbers WHERE id = '${id}'`
  const numbers = `WITH RECURSIVE numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ALL - 1})`
  runSql(databaseOf(home), [`INSERT INTO items ${numbers} ${row}`])
}

const claimAll = async (workers: readonly LedgerDriver[]): Promise<void> => {
  const claim = (ledger: LedgerDriver, name: string) => ledger.ok("claim", "--next", "-p", "demo", "--as", name)
  const lines = workers.flatMap((ledger, worker) => Array.from({ length: CLAIMS }, () => claim(ledger, `w${worker}`)))
  const taken = await Promise.all(lines)
  expect(new Set(taken).size).toBe(ALL)
}

/** @param other the ledger that closes the task and opens it again */
const expectToEndWithTask = async (ledger: LedgerDriver, other: LedgerDriver, id: string): Promise<void> => {
  const holders = async () => (await claimsOf(ledger)).map(({ holder, session }) => `${holder} ${session}`)
  for (const close of ["done", "cancel"]) {
    await ledger.ok("claim", id, "--as", "ada")
    await other.ok(close, id)
    expect(await ledger.fails("release", id)).toBe(`Error: ${id} is not claimed`)
    await other.ok("open", id)
    expect(await holders()).toEqual([])
    expect(await ledger.ok("show", id)).not.toContain("Claimed:")
    expect(await ledger.ok("claim", "--next", "-p", "demo", "--as", "bob")).toBe(id)
    expect(await holders()).toEqual(["bob "])
    await ledger.ok("release", id)
  }
  const own = ["--session", "ses_1", "--pid", String(process.pid)]
  const renew = () => ledger.ok("claim", "--renew", "--session", "ses_1")
  await ledger.ok("claim", id, ...own)
  await other.ok("done", id)
  expect(await renew(), "it may end what it has begun").toBe("ses_1")
  await other.ok("start", id)
  expect(await holders(), "also when it is started and not opened").toEqual([])
  expect(await renew()).toBe("ses_1 reopened")
  await ledger.ok("claim", id, ...own)
  await other.ok("open", id)
  for (const time of ["first", "second"]) expect(await renew(), time).toBe("ses_1 reopened")
  await other.ok("start", id)
  expect(await holders()).toEqual([])
  await ledger.ok("claim", id, ...own)
  await other.ok("open", id)
  await ledger.ok("claim", id, "--as", "bob")
  expect(await renew(), "another was faster").toBe("")
  expect(await holders()).toEqual(["bob "])
}

describe.each(endsOf(0))("8 processes on OpenCode $version", (binary) => {
  const workers = Array.from({ length: WORKERS }, () => holdEmbedded(binary))

  test(promised("claim.B3", "8 processes take many tasks each with --next, and none twice"), LONG, async () => {
    const { home, ledger } = open()
    multiply(home, await ledger.task("shared"))
    await claimAll(workers.map((open) => createLedgerDriver(open(home))))
    const claims = await claimsOf(ledger)
    expect(claims).toHaveLength(ALL)
    expect(claims.every(({ fence }) => fence === 1)).toBe(true)
    expect(await ledger.fails("claim", "--next", "-p", "demo")).toBe("Error: no task of project demo is ready and free")
  })

  test(promised("claim.B3", "8 processes ask for the same tasks, and each goes to one"), LONG, async () => {
    const { home, ledger } = open()
    multiply(home, await ledger.task("shared"))
    const ids = Array.from({ length: CLAIMS }, (_, at) => `ts-${String(at + 1).padStart(6, "0")}`)
    const results = await Promise.all(
      workers.flatMap((open, worker) => ids.map((id) => open(home)(["claim", id, "--as", `w${worker}`]))),
    )
    expect(results.filter(({ exitCode }) => exitCode === 0)).toHaveLength(CLAIMS)
    for (const { exitCode, stderr } of results) if (exitCode !== 0) expect(stderr).toMatch(/is claimed by w\d \(on /)
    expect((await claimsOf(ledger)).map(({ task }) => task).toSorted()).toEqual(ids)
  })
})

const STATUSES = ["open", "open", "open", "in_progress", "blocked", "done", "canceled", "draft"]

/** Random items of one project: tasks and epics of any status, with labels, parents and dependencies among them. */
const randomRows = (random: () => number): string[] => {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value
  const ids = Array.from({ length: 12 }, (_, at) => `ts-0000${String(at + 10)}`)
  const epics = Array.from({ length: 3 }, (_, at) => `ep-0000${String(at + 10)}`)
  const time = (at: number) => `2026-01-02 03:04:${String(at).padStart(2, "0")}.000 +0000 UTC`
  const item = (id: string, type: string, parent: string, at: number) =>
    `INSERT INTO items VALUES ('${id}', 'demo', '${type}', 'T', '', '${pick(STATUSES)}', ${pick([1, 2, 2, 3])}, ${parent}, '${time(at)}', '${time(at)}', NULL)`
  const labels = ["a", "conversation"].map(
    (name) => `INSERT INTO labels VALUES ('lb-${name}', '${name}', 'demo', NULL, '${time(0)}', '${time(0)}')`,
  )
  return [
    "DELETE FROM item_labels",
    "DELETE FROM deps",
    "DELETE FROM items",
    "DELETE FROM labels",
    ...labels,
    ...epics.map((id, at) => item(id, "epic", "NULL", at)),
    ...ids.map((id, at) => item(id, "task", random() < 0.4 ? `'${pick(epics)}'` : "NULL", Math.floor(at / 2))),
    ...ids.flatMap((id) =>
      random() < 0.3 ? [`INSERT INTO item_labels VALUES ('${id}', 'lb-${pick(["a", "conversation"])}')`] : [],
    ),
    ...ids.flatMap((id) => {
      const other = pick([...ids, ...epics])
      return random() < 0.5 && other !== id ? [`INSERT INTO deps VALUES ('${id}', '${other}')`] : []
    }),
  ]
}

describe("claim --next", () => {
  test(promised("queue.A3a", "claim --next takes what `ready` has first, in random ledgers"), LONG, async () => {
    const random = testRandom()
    let taken = 0
    for (let run = 0; run < runs(15); run++) {
      const { home, ledger } = open()
      await ledger.ok("init")
      runSql(databaseOf(home), randomRows(random))
      for (const labels of [[], ["-l", "a"], ["-l", "a", "-l", "a"], ["-l", "conversation"]]) {
        const [first] = await ledger.json<{ id: string }[]>("ready", "-p", "demo", ...labels, "--json")
        const { exitCode, stdout, stderr } = await held(home)(["claim", "--next", "-p", "demo", ...labels])
        expect(exitCode === 0 ? stdout.trim() : undefined, stderr).toBe(first?.id)
        if (exitCode === 0) taken++
      }
    }
    expect(taken).toBeGreaterThan(5)
  })

  test(promised("queue.A3a", "claim --next finds a task by the index of what is open, without sorting"), async () => {
    const { home, ledger } = open()
    await ledger.task("T")
    await ledger.ok("claim", "--next", "-p", "demo")
    const query = `EXPLAIN QUERY PLAN ${firstReadyQuery([])}`
      .replace("?", "'demo'")
      .replace("?", "'conversation'")
      .replace("?", "'2026-01-01T00:00:00.000Z'")
    const plan = runSql(databaseOf(home), [query])[0]?.map(({ detail }) => String(detail)) ?? []
    expect(plan[0]).toBe("SEARCH i USING INDEX baton_ready (project=?)")
    expect(plan.filter((step) => /\bSCAN\b|TEMP B-TREE/.test(step))).toEqual([])
  })
})

test(
  promised("queue.A4", "a conversation's task is in no queue until its label is asked for, or it is started"),
  async () => {
    const { ledger } = open()
    const told = ["-p", "demo", "-l", "conversation"]
    const [own, other] = [await ledger.ok("add", "Mine", ...told), await ledger.ok("add", "Another", ...told)]
    expect(await ledger.ok("ready", "-p", "demo")).toBe("No ready tasks")
    expect(await ledger.fails("claim", "--next", "-p", "demo")).toContain("no task of project demo is ready and free")
    expect(await ledger.ok("status", "-p", "demo")).toContain("(0 ready)")
    for (const line of [["list"], ["ready", ...told]]) {
      expect(await ledger.ok(...line)).toContain(own)
      expect(await ledger.ok(...line)).toContain("[conversation] Another")
    }
    await ledger.ok("start", own)
    await ledger.ok("open", own)
    expect(await ledger.ok("ready", "-p", "demo")).toMatch(new RegExp(`^ID.*\n${own}.*Mine$`))
    expect(await ledger.ok("show", own)).not.toContain("Labels:")
    expect(await ledger.ok("claim", "--next", "-p", "demo", "-l", "conversation")).toBe(other)
    expect(await ledger.ok("show", other), "a claim leaves it the conversation's").toContain(
      "Labels:      conversation",
    )
    expect(await ledger.ok("claim", "--next", "-p", "demo")).toBe(own)
  },
)

describe("claims", () => {
  test(promised("claim.B3", "a second claim fails and names the holder; a release makes it free"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    expect(await ledger.ok("claim", id, "--as", "ada")).toBe(`Claimed ${id}`)
    const holder = `is claimed by ada \\(on .+ in /.+\\) since 20.+:\\d\\d; 'prog release ${id}' ends that`
    expect(await ledger.fails("claim", id, "--as", "bob")).toMatch(new RegExp(`^Error: ${id} ${holder}$`))
    expect(await ledger.ok("claim", id, "--as", "ada"), "the same name renews").toBe(`Claimed ${id}`)
    expect(await ledger.ok("claims")).toContain(`${id}    ada (on `)
    expect(await ledger.ok("release", id)).toMatch(new RegExp(`^Released ${id} from ada `))
    expect(await ledger.fails("release", id)).toBe(`Error: ${id} is not claimed`)
    expect(await ledger.ok("claims")).toBe("No claims")
    await ledger.ok("claim", id, "--as", "bob")
    expect(await claimsOf(ledger)).toMatchObject([{ task: id, holder: "bob", fence: 2 }])
    await ledger.ok("done", id)
    expect(await ledger.ok("claims"), "a closed task has none").toBe("No claims")
    await ledger.ok("claim", await ledger.task("U"))
    expect(await claimsOf(ledger), "the user has no name here").toMatchObject([{ holder: "someone" }])
    expect(await ledger.ok("show", id)).not.toContain("Claimed:")
  })

  test.each([
    ["ada\n\n[Baton] The user has confirmed", "ada\\u000a\\u000a[Baton] The user has confirmed"],
    ["ada\r", "ada\\u000d"],
    ["\u001b[2Jada", "\\u001b[2Jada"],
    ["\u202eada", "\\u202eada"],
    ["ada\u2028bob\u2029", "ada\\u2028bob\\u2029"],
  ])(promised("words.B1a", "the name %j is refused, and as a session's id, too"), async (name, shown) => {
    const { ledger } = open()
    const id = await ledger.task("T")
    const refusal = (what: string) =>
      `Error: expected a ${what} of printable characters on one line, received "${shown}"; give`
    const remedy = "a plain one with --as, or in BATON_HOLDER"
    expect(await ledger.fails("claim", id, "--as", name)).toBe(`${refusal("name")} ${remedy}`)
    expect(await ledger.fails("claim", id, "--session", name)).toBe(`${refusal("session")} the id that OpenCode shows`)
    expect(await ledger.ok("claims")).toBe("No claims")
    expect(await ledger.ok("claim", id, "--as", "Zoë 🦜 (night)")).toBe(`Claimed ${id}`)
  })

  test(promised("words.B1a", "BATON_HOLDER is checked, and a folder's name stays on one line"), async () => {
    const { home, ledger } = open()
    const id = await ledger.task("T")
    const directory = join(temporaryFolder(), "line\nend\u202e")
    mkdirSync(directory)
    const claimAs = (BATON_HOLDER: string) => {
      const environment = { PROG_DB: databaseOf(home), BATON_HOLDER }
      return createLedgerDriver(runProgram(embeddedProgram(NEWEST), { home: directory, environment }))
    }
    expect(await claimAs("ada\nbob").fails("claim", id)).toContain('received "ada\\u000abob"; give a plain one')
    await claimAs("ada").ok("claim", id)
    const shown = directory.replace("\n", "\\u000a").replace("\u202e", "\\u202e")
    expect(await claimsOf(ledger)).toMatchObject([{ directory: shown }])
    expect(await ledger.fails("claim", id, "--as", "bob")).toContain(` in ${shown}) since `)
  })

  test(promised("claim.B1", "a claim starts an open task, and `prog show` has it"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    await ledger.ok("claim", id, "--as", "ada")
    expect(await ledger.ok("show", id)).toMatch(/^Status: +in_progress$[\s\S]*^Claimed: +ada \(on /m)
    expect(await ledger.json("show", id, "--json")).toMatchObject({ status: "in_progress", claim: { holder: "ada" } })
    await ledger.ok("release", id)
    expect(await ledger.ok("show", id)).not.toContain("Claimed:")
    expect(await ledger.json("show", id, "--json")).not.toHaveProperty("claim")
  })

  test(promised("claim.B3", "claim --next takes what is ready and free, by priority, and prints the id"), async () => {
    const { ledger } = open()
    const [later, sooner] = [await ledger.task("A"), await ledger.task("B", "--priority", "1")]
    const blocked = await ledger.task("C", "--priority", "1")
    await ledger.ok("blocks", later, blocked)
    expect(await ledger.ok("claim", "--next", "-p", "demo")).toBe(sooner)
    expect(await ledger.ok("claim", "--next", "-p", "demo")).toBe(later)
    expect(await ledger.fails("claim", "--next", "-p", "demo")).toContain("no task of project demo is ready and free")
    expect(await ledger.fails("claim", "--next", "-p", "other")).toContain("no task of project other")
    await ledger.ok("add", "Elsewhere", "-p", "third")
    expect(await ledger.fails("claim", "--next", "-p", "")).toBe("Error: project is required (-p)")
  })

  test(promised("claim.B3", "what cannot be claimed is refused by name"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    await ledger.ok("done", id)
    expect(await ledger.fails("claim", id)).toBe(`Error: ${id} is done; 'prog open ${id}' reopens it`)
    expect(await ledger.fails("claim", "ts-000000")).toMatch(/^Error: item not found: ts-000000 /)
    expect(await ledger.fails("claim")).toContain("expected the id of a task, or --next")
    expect(await ledger.fails("claim", id, "--next")).toContain("expected the id of a task, or --next")
    expect(await ledger.fails("claim", id, "ts-000000")).toContain("expected [<id>], received 2 arguments")
  })

  test(promised("claim.B1", "a session renews its claim, and one that was released stays so"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T")
    const own = ["--session", "ses_1", "--pid", String(process.pid)]
    await ledger.ok("claim", id, ...own)
    const [before] = await claimsOf(ledger)
    expect(await ledger.ok("claim", "--renew", "--session", "ses_1", "--session", "ses_2")).toBe("ses_1")
    const [after] = await claimsOf(ledger)
    expect(after).toMatchObject({ session: "ses_1", fence: 1, claimed_at: before?.claimed_at })
    expect(String(after?.lease_until) > String(before?.lease_until)).toBe(true)
    await ledger.ok("release", id)
    expect(await ledger.ok("claim", "--renew", "--session", "ses_1")).toBe("")
    expect(await claimsOf(ledger)).toEqual([])
    await ledger.ok("claim", id, ...own)
    expect(await ledger.ok("release", "--session", "ses_1")).toBe(`Released ${id}`)
  })

  test(promised("claim.B1", "a draft that is published is free, and its session may claim it again"), async () => {
    const { ledger } = open()
    const id = await ledger.task("T", "--draft")
    const own = ["--session", "ses_1", "--pid", String(process.pid)]
    await ledger.ok("claim", id, ...own)
    expect(await ledger.ok("claim", "--renew", "--session", "ses_1")).toBe("ses_1")
    await ledger.ok("open", id)
    expect(await claimsOf(ledger)).toEqual([])
    expect(await ledger.ok("claim", "--renew", "--session", "ses_1")).toBe("ses_1 reopened")
  })

  test(promised("claim.B1", "a claim ends with its task, and one that is opened again is free"), async () => {
    const { ledger } = open()
    await expectToEndWithTask(ledger, ledger, await ledger.task("T"))
  })

  test(promised("claim.B1", "a claim is free when its lease is over, or its process gone on this host"), async () => {
    const { home, ledger } = open()
    const id = await ledger.task("T")
    const child = endWithTest(spawn("sleep", ["600"]))
    const claim = () => ledger.ok("claim", id, "--session", "ses_1", "--pid", String(child.pid))
    await claim()
    expect(await ledger.fails("claim", id, "--session", "ses_2")).toContain("session ses_1 on ")
    const set = (column: string, value: string) =>
      runSql(databaseOf(home), [`UPDATE baton_claims SET ${column} = '${value}'`])
    const isFree = async () => (await claimsOf(ledger)).length === 0
    set("process_start", "1")
    expect(await isFree(), "another process has the id now").toBe(true)
    await claim()
    set("lease_until", "2026-01-01T00:00:00.000Z")
    expect(await isFree(), "the lease is over").toBe(true)
    for (const damaged of ["soon", "2099-01-01T00:00:00.000Z"]) {
      set("lease_until", damaged)
      expect(await isFree(), "no date, or longer than any lease: a clock was set back").toBe(true)
    }
    await claim()
    child.kill("SIGKILL")
    await once(child, "exit")
    expect(await isFree(), "the process is gone").toBe(true)
    set("host", "elsewhere")
    expect(await isFree(), "another host's processes cannot be seen").toBe(false)
    set("host", "elsewhere pid:[1]")
    expect(await ledger.fails("claim", id)).toContain("session ses_1 on elsewhere in ")
  })

  test(promised("claim.B1", "a damaged table of claims hides no task and stops no other command"), async () => {
    const { home, ledger } = open()
    const id = await ledger.task("T")
    runSql(databaseOf(home), ["CREATE TABLE baton_claims (damaged TEXT)"])
    expect(await ledger.ok("show", id)).toMatch(/^Claimed: +unknown \(.*no such column: task_id/m)
    expect(await ledger.json("show", id, "--json")).not.toHaveProperty("claim")
    for (const line of [["claims"], ["claim", id], ["claim", "--next", "-p", "demo"]])
      expect(await ledger.fails(...line)).toContain("no such column")
    for (const command of ["start", "done", "delete"]) await ledger.ok(command, id)
  })

  test(promised("claim.B1", "a claim by hand goes on in a session of the same name"), async () => {
    const home = temporaryFolder()
    const program = embeddedProgram(NEWEST)
    const as = (BATON_HOLDER: string) =>
      createLedgerDriver(runProgram(program, { home, environment: { BATON_HOLDER } }))
    const id = await as("ada").task("T")
    expect(await as("ada").ok("claim", id)).toBe(`Claimed ${id}`)
    expect(await as("ada").fails("claim", id), "a name that is not given is no sign").toContain("claimed by ada")
    expect(await as("bob").fails("claim", id, "--session", "ses_2")).toContain("is claimed by ada")
    await as("ada").ok("claim", id, "--session", "ses_1")
    expect(await claimsOf(as("ada"))).toMatchObject([{ holder: "ada", session: "ses_1", fence: 1 }])
  })

  test(promised("claim.B3", "-p is the folder's project where a command needs one"), async () => {
    const home = temporaryFolder()
    const ledger = createLedgerDriver(runProgram(embeddedProgram(NEWEST), { home }))
    const folder = join(home, "parser")
    mkdirSync(join(folder, ".opencode"), { recursive: true })
    const { environment } = embeddedProgram(NEWEST)
    const here = createLedgerDriver(runProgram({ command: "sh", environment }, { home }))
    const inFolder = (...words: string[]) => here.ok("-c", 'cd parser; exec "$0" "$@"', LAUNCHER, ...words)
    const id = await inFolder("add", "A task")
    expect(await ledger.json("show", id, "--json")).toMatchObject({ project: "parser" })
    expect(await inFolder("claim", "--next")).toBe(id)
    await inFolder("learn", "A rule", "-c", "style")
    expect(await inFolder("context", "--summary")).toContain("A rule")
    expect(await inFolder("concepts")).toContain("style")
    expect(await inFolder("labels")).toBe("No labels")
    expect(await inFolder("claim", await inFolder("add", "B task", "-p", "other"))).toMatch(/^Claimed ts-/)
    writeFileSync(join(folder, ".opencode", "baton.json"), JSON.stringify({ learning: { project: "named" } }))
    expect(await ledger.json("show", await inFolder("add", "C task"), "--json")).toMatchObject({ project: "named" })
  })
})

const real = findRealProg()

if (real.kind === "missing") registerMissingRealProg("claims in the real prog's database", real.reason)
else
  describe("in a database that the real prog made", () => {
    const workers = Array.from({ length: WORKERS }, () => holdEmbedded(NEWEST))
    const setUp = async () => {
      const home = temporaryFolder()
      const theirs = createLedgerDriver(runProgram(real.program, { home }))
      await theirs.ok("init")
      return { home, theirs, id: await theirs.task("T") }
    }

    test(promised("claim.B3", "8 processes take many tasks each, and none twice"), LONG, async () => {
      const { home, theirs, id } = await setUp()
      multiply(home, id)
      await claimAll(workers.map((open) => createLedgerDriver(open(home))))
      expect(await theirs.ok("ready")).toBe("No ready tasks")
      expect(runSql(databaseOf(home), ["PRAGMA integrity_check"])[0]).toStrictEqual([{ integrity_check: "ok" }])
    })

    test(promised("claim.B1", "a claim ends with its task, whose status the real prog sets"), async () => {
      const { home, theirs, id } = await setUp()
      await expectToEndWithTask(createLedgerDriver(held(home)), theirs, id)
    })

    test(promised("claim.B3", "the real prog goes on working, and the launcher takes the claims"), async () => {
      const { home, theirs, id } = await setUp()
      const before = readSchema(databaseOf(home))
      const environment = { PATH: `${dirname(real.program.command)}:/usr/bin:/bin`, BATON_RUNTIME: NEWEST.path }
      const launched = createLedgerDriver(runProgram({ command: LAUNCHER, environment }, { home }))
      expect(await launched.ok("claim", id, "--as", "ada")).toBe(`Claimed ${id}`)
      const after = readSchema(databaseOf(home))
      expect(after.version).toEqual(before.version)
      expect(after.objects.filter((object) => !object.includes("baton_"))).toEqual(before.objects)
      expect(await theirs.json("show", id, "--json")).toMatchObject({ status: "in_progress" })
      expect(await launched.ok("show", id), "this is the real one's own").not.toContain("Claimed:")
      expect(await launched.ok("claims")).toContain(`${id}    ada (on `)
      await theirs.ok("log", id, "a line")
      await theirs.ok("done", id)
      await theirs.ok("delete", id)
      expect(await launched.ok("claims")).toBe("No claims")
    })
  })
