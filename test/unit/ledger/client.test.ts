import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test, vi } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { createProcessRunner, type ProcessOutcome, type RunProcess } from "../../../.opencode/baton/host/process.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createLedger, type LedgerDeps } from "../../../.opencode/baton/ledger/client.ts"
import { createCallQueue, FIRST_PAUSE_MS, LONGEST_PAUSE_MS } from "../../../.opencode/baton/ledger/runner.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

/** Content of a script that replaces the real prog, which is recognised by its module's name. */
const LEDGER = "#!/bin/sh\n# github.com/baiirun/prog\n"
const BUNDLE = join(REPOSITORY, ".opencode", "baton")
const NODE = process.execPath

const TASK = { id: "ts-000001", title: "Title", type: "task", status: "open", project: "p", description: "spec" }
const AT = "2026-01-01T00:00:00Z"
const DATABASE = "/home/me/ledger.db"
const SHOWN = { ...TASK, definition_of_done: "tests pass", logs: [{ message: "m", created_at: AT }] }

const exited = (stdout: string, exitCode = 0, stderr = "") =>
  ({ kind: "exited", exitCode, stdout, stderr }) satisfies ProcessOutcome

/** Makes a program called prog. @returns its folder */
const program = (folder: string, name: string, text: string): string => {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, "prog"), text, { mode: 0o755 })
  return join(folder, name)
}

/** A ledger that finds its program in these folders. */
const open = (paths: readonly string[], deps: Partial<LedgerDeps> = {}) => {
  const directory = temporaryFolder()
  const log = createRecordedLog()
  const state = createStateFolder(directory)
  const run = createProcessRunner({ shell: undefined })
  const env = { PATH: paths.join(":") }
  const ledger = createLedger({ run, directory, log, state, env, bundleRoot: BUNDLE, ...deps })
  return { directory, log, state, ledger }
}

/** A ledger whose real prog gives the test's answer. */
const setUp = (answer: ProcessOutcome, deps: Partial<LedgerDeps> = {}) => {
  const programs = program(temporaryFolder(), "programs", LEDGER)
  const calls: { argv: readonly string[]; options: Parameters<RunProcess>[1] }[] = []
  const run: RunProcess = async (argv, options) => {
    calls.push({ argv, options })
    return answer
  }
  const env = { PATH: programs, PROG_DB: DATABASE }
  return { ...open([programs], { run, env, ...deps }), calls, path: join(programs, "prog") }
}

describe("reading a task", () => {
  test(promised("ledger.D1", "reading a task gives what prog shows as JSON"), async () => {
    const { ledger, calls, directory, path } = setUp(exited(JSON.stringify(SHOWN)))
    const task = {
      id: TASK.id,
      title: untrusted(TASK.title),
      status: untrusted(TASK.status),
      description: untrusted(TASK.description),
      definitionOfDone: untrusted("tests pass"),
      logs: [{ message: untrusted("m"), createdAt: AT }],
      labels: [],
    }
    expect(await ledger.readTask("ts-000001")).toEqual({ kind: "found", task })
    expect(calls).toHaveLength(1)
    expect(calls[0]?.argv).toEqual([path, "show", "--json", "--", "ts-000001"])
    expect(calls[0]?.options.cwd).toBe(directory)
    expect(calls[0]?.options.deadlineMs).toBeLessThanOrEqual(2000)
  })

  test("reading a task leaves out what the task does not have", async () => {
    const shown = { ...SHOWN, description: null, definition_of_done: null, logs: null }
    const read = await setUp(exited(JSON.stringify(shown))).ledger.readTask("ts-000001")
    expect(read).toMatchObject({ kind: "found", task: { description: untrusted(""), logs: [] } })
    expect(read.kind === "found" && read.task).not.toHaveProperty("definitionOfDone")
  })

  test.each([
    ["fails", exited("", 1, "Error: database is locked (5)\nUsage:\n"), "exited with 1: database is locked (5)"],
    ["prints no JSON", exited("garbage"), 'printed "garbage"'],
    ["prints nothing", exited(""), 'printed ""'],
    ["prints another shape", exited(`{"id": 7}`), String.raw`printed "{\"id\": 7}"`],
  ])("reading a task is unavailable when prog %s", async (_what, outcome, reason) => {
    const unavailable = { kind: "unavailable", reason: expect.stringContaining(`prog show ${reason}`), answered: true }
    expect(await setUp(outcome).ledger.readTask("ts-000001")).toEqual(unavailable)
  })
})

describe("reading learnings", () => {
  const LEARNED = { id: "le-1", summary: "Use tabs", concepts: ["style"], created_at: AT, status: "active" }
  test("reading learnings leaves out what a learning does not have", async () => {
    const { ledger } = setUp(exited(JSON.stringify([{ ...LEARNED, files: null }])))
    const { created_at: createdAt, ...rest } = LEARNED
    const learnings = [{ ...rest, createdAt, detail: "", files: [] }]
    expect(await ledger.readLearnings("p")).toEqual({ kind: "found", learnings })
  })

  test.each(["garbage", "{}", "[7]", JSON.stringify([{ ...LEARNED, concepts: [7] }]), '[{"id": "le-1"}]'])(
    "reading learnings is unavailable when prog prints %s",
    async (printed) => {
      const reason = expect.stringContaining("prog context printed no list: ")
      const read = await setUp(exited(printed)).ledger.readLearnings("p")
      expect(read).toEqual({ kind: "unavailable", reason, answered: true })
    },
  )
})

describe("writing", () => {
  test.each([
    ["unknown", exited("", 1, "Error: failed to add log: constraint failed: FOREIGN KEY constraint failed (787)\n")],
    ["refused", exited("", 1, "Error: database is locked (5)\n")],
    ["unavailable", exited("", 137)],
    ["unavailable", { kind: "not-started", cause: "ENOENT" } as const],
  ])("writing is %s when prog ends so", async (kind, outcome) => {
    expect(await setUp(outcome).ledger.appendLog("ts-000001", "m")).toMatchObject({ kind })
  })

  test(promised("ledger.D1", "writing cuts a text that is too long and keeps the whole"), async () => {
    const { ledger, calls, state } = setUp(exited(""), { maxTextBytes: 300 })
    const message = "é".repeat(400)
    expect(await ledger.appendLog("ts-000001", message)).toEqual({ kind: "written" })
    const sent = calls[0]?.argv.at(-1) ?? ""
    expect(Buffer.byteLength(sent)).toBeLessThanOrEqual(300)
    const [file = ""] = readdirSync(state.path("long-texts"))
    expect(sent).toContain(`.opencode/state/long-texts/${file}`)
    expect(readFileSync(state.path("long-texts", file), "utf8")).toBe(message)
  })

  test("writing refuses a description that is too long, since it cannot cut a specification", async () => {
    const { ledger, calls } = setUp(exited(""), { maxTextBytes: 300 })
    expect(await ledger.replaceDescription("ts-000001", "x".repeat(301))).toMatchObject({ kind: "refused" })
    expect(calls).toEqual([])
  })
})

test.each([
  ["embedded", `Error: failed to open database ${DATABASE}: no ledger is there. Restore it\n`],
  ["real", "Error: migration failed: migration to v3 failed: SQL logic error: no such table: items (1)\nUsage:\n"],
])(promised("task.C2", "%s: a missing database is named, and made by a first learning"), async (_which, stderr) => {
  const { ledger, state } = setUp(exited("", 1, stderr))
  const missing = { kind: "unavailable", reason: `its database is missing at ${DATABASE}` }
  expect(await ledger.readTask("ts-000001")).toEqual({ ...missing, missingDatabase: DATABASE })
  expect(await ledger.appendLog("ts-000001", "m")).toMatchObject(missing)
  expect(await ledger.listTasks()).toBeUndefined()
  expect(await ledger.readLearnings("p")).toEqual({ kind: "found", learnings: [] })
  await state.write(state.path("tasks", "ses_1.json"), "{}")
  expect(await ledger.readLearnings("p")).toMatchObject({ kind: "unavailable" })
})

describe("a ledger that hangs", () => {
  test(promised("ledger.D1", "prog is not called for a while after a timeout, and calls answer at once"), async () => {
    const { ledger, calls, log } = setUp({ kind: "timed-out", deadlineMs: 2000 })
    expect(await ledger.readTask("ts-000001")).toMatchObject({ kind: "unavailable" })
    const reason = expect.stringContaining("no calls for another 30 s")
    expect(await ledger.appendLog("ts-000001", "m")).toMatchObject({ kind: "unavailable", reason })
    expect(calls).toHaveLength(1)
    const warnings = log.lines.filter(({ level }) => level === "warn")
    expect(warnings.map(({ extra }) => extra?.retryInMs)).toContain(30_000)
  })

  test("a ledger that hangs is not blamed for a deadline that a busy machine may miss", async () => {
    const { ledger, calls } = setUp({ kind: "timed-out", deadlineMs: 1_000 })
    await ledger.readTask("ts-000001", { deadlineMs: 1_000 })
    await ledger.readTask("ts-000001", { deadlineMs: 1_000 })
    expect(calls).toHaveLength(2)
  })
})

describe("finding the program", () => {
  const find = async (paths: readonly string[], deps: Partial<LedgerDeps> = {}) => {
    const opened = open(paths, deps)
    return { ...opened, status: await opened.ledger.status() }
  }
  const onBun = { execPath: NODE, isBun: true, platform: process.platform }
  const onNode = { execPath: NODE, isBun: false, platform: process.platform }

  test(
    promised("ledger.D1", "finding the program skips a foreign prog without running it, names it once, takes the real"),
    async () => {
      const folder = temporaryFolder()
      const foreign = program(folder, "foreign", "#!/bin/sh\nsleep 1000\n")
      const run: RunProcess = () => Promise.reject(new Error("nothing is run"))
      const { ledger, log, status } = await find([foreign, program(folder, "real", LEDGER)], { run })
      const reason = expect.stringContaining("names neither github.com/baiirun/prog nor PROG_DB")
      expect(status.program).toEqual({ kind: "real", path: join(folder, "real", "prog") })
      expect(status.foreign).toEqual([{ path: join(foreign, "prog"), reason }])
      await ledger.status()
      expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1)
    },
  )

  test.each([-12, 0])(
    "finding the program finds a name %i bytes from where a piece of the program ends",
    async (offset) => {
      const name = "github.com/baiirun/prog"
      const content = `${"x".repeat(1024 * 1024 + offset)}${name}`
      const { status } = await find([program(temporaryFolder(), "real", content)])
      expect(status.program.kind).toBe("real")
    },
  )

  test("finding the program takes the embedded ledger when PATH has no real prog, by the launcher on Node", async () => {
    const folder = temporaryFolder()
    const paths = [program(folder, "foreign", "#!/bin/sh\nexit 1\n"), "relative", "", join(folder, "missing")]
    const main = join(BUNDLE, "ledger", "embedded", "main.ts")
    expect((await find(paths, { runtime: onBun })).status.program).toEqual({ kind: "embedded", path: main })
    const launcher = join(BUNDLE, "bin", "prog")
    expect((await find(paths, { runtime: onNode })).status.program).toEqual({ kind: "embedded", path: launcher })
  })

  test("finding the program never takes Baton's own launcher for the real one, linked or copied", async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, "linked"))
    symlinkSync(join(BUNDLE, "bin", "prog"), join(folder, "linked", "prog"))
    const copy = program(folder, "copied", readFileSync(join(BUNDLE, "bin", "prog"), "utf8"))
    const { status } = await find([join(BUNDLE, "bin"), join(folder, "linked"), copy])
    expect(status).toMatchObject({ program: { kind: "embedded" }, foreign: [] })
  })

  test("finding the program does as BATON_LEDGER says", async () => {
    const real = program(temporaryFolder(), "real", LEDGER)
    const found = async (BATON_LEDGER: string, PATH: string) =>
      (await find([], { env: { PATH, BATON_LEDGER } })).status.program
    expect((await found("embedded", real)).kind).toBe("embedded")
    expect((await found("real", real)).kind).toBe("real")
    const reason = expect.stringContaining("BATON_LEDGER asks for the real prog")
    expect(await found("real", "")).toMatchObject({ kind: "unavailable", reason })
  })

  test(
    promised("ledger.D4", "finding the program takes a script that names another database anywhere in it"),
    async () => {
      const folder = temporaryFolder()
      for (const before of ["", "#\n".repeat(1024 * 512 - 10), "#\n".repeat(1024 * 1024)]) {
        const text = `#!/bin/sh\n${before}PROG_DB=/team.db exec prog "$@"\n`
        const wrapper = program(folder, `wrapper${before.length}`, text)
        expect((await find([wrapper])).status.program).toEqual({ kind: "real", path: join(wrapper, "prog") })
      }
    },
  )

  test("the program is looked for again when the one that was found is gone", async () => {
    const folder = temporaryFolder()
    const first = program(folder, "first", LEDGER)
    const second = join(folder, "second")
    const { ledger, status } = await find([first, second])
    expect(status.program).toEqual({ kind: "real", path: join(first, "prog") })
    chmodSync(join(first, "prog"), 0o644)
    expect(await ledger.readTask("ts-000001")).toMatchObject({ kind: "unavailable" })
    program(folder, "second", LEDGER)
    expect((await ledger.status()).program).toEqual({ kind: "real", path: join(second, "prog") })
  })
})

describe("the queue of calls", () => {
  test(promised("ledger.D1", "the queue of calls runs one call at a time, in their order"), async () => {
    const queue = createCallQueue()
    const happened: string[] = []
    const numbers = Array.from({ length: 20 }, (_, at) => at)
    const call = (at: number) => async () => {
      happened.push(`${at} begins`)
      await new Promise((resolve) => setImmediate(resolve))
      happened.push(`${at} ends`)
    }
    await Promise.all(numbers.map((at) => queue.take(5000, call(at))))
    expect(happened).toEqual(numbers.flatMap((at) => [`${at} begins`, `${at} ends`]))
  })

  test(promised("ledger.D1", "a reader behind a slow writer gives up at its own deadline"), async () => {
    const queue = createCallQueue()
    const slow = createDeferred<void>()
    const writing = queue.take(5000, () => slow.promise)
    const read = vi.fn(async () => {})
    expect(await queue.take(20, read)).toEqual({ kind: "busy" })
    slow.resolve()
    await writing
    expect(await queue.take(5000, async () => "next")).toEqual({ kind: "ran", value: "next" })
    expect(read).not.toHaveBeenCalled()
  })

  test("the queue of calls gives a call only what is left of its deadline", async () => {
    let now = 0
    const queue = createCallQueue(() => now)
    const first = queue.take(5000, async () => {
      now += 1500
    })
    const second = await queue.take(2000, async (remaining) => remaining())
    await first
    expect(second).toEqual({ kind: "ran", value: 500 })
  })

  test(
    promised("ledger.D1", "a hung program is not called for a while, longer each time, until it answers again"),
    async () => {
      let now = 0
      const queue = createCallQueue(() => now)
      expect(queue.open()).toBe(FIRST_PAUSE_MS)
      now += FIRST_PAUSE_MS - 1
      expect(await queue.take(5000, async () => "ran")).toEqual({ kind: "open", forMs: 1 })
      now += 1
      expect(await queue.take(5000, async () => "ran")).toEqual({ kind: "ran", value: "ran" })
      expect(queue.open()).toBe(2 * FIRST_PAUSE_MS)
      for (let times = 0; times < 10; times += 1) queue.open()
      expect(queue.open()).toBe(LONGEST_PAUSE_MS)
      queue.close()
      expect(queue.open()).toBe(FIRST_PAUSE_MS)
    },
  )

  test("the queue of calls goes on after a call that throws", async () => {
    const queue = createCallQueue()
    await expect(queue.take(5000, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken")
    expect(await queue.take(5000, async () => "next")).toEqual({ kind: "ran", value: "next" })
  })
})

describe("whether there may be learnings", () => {
  /** @param script a prog that is a script, on PATH before the embedded ledger */
  const openDatabase = (script?: string) => {
    const folder = temporaryFolder()
    const [database, changes] = [join(folder, "prog.db"), join(folder, "prog.db-wal")]
    const run = vi.fn<RunProcess>()
    const PATH = script === undefined ? "" : program(folder, "programs", script)
    return { database, changes, run, ledger: open([], { run, env: { PATH, PROG_DB: database } }).ledger }
  }

  test(
    promised(
      "learning.C3",
      "whether there may be learnings is seen in the ledger's files at each change, without a program",
    ),
    async () => {
      const { database, changes, ledger, run } = openDatabase()
      expect(await ledger.mayHaveLearnings(), "no ledger").toBe(false)
      writeFileSync(database, "SQLite: a task and its log")
      expect(await ledger.mayHaveLearnings(), "no learning").toBe(false)
      writeFileSync(changes, "a learning: lrn-0a1b2c")
      expect(await ledger.mayHaveLearnings(), "not in the database yet").toBe(true)
      truncateSync(changes)
      expect(await ledger.mayHaveLearnings(), "not written").toBe(false)
      writeFileSync(database, "SQLite: a task, its log and lrn-0a1b2c")
      expect(await ledger.mayHaveLearnings(), "in the database").toBe(true)
      expect(run).not.toHaveBeenCalled()
    },
  )

  test(
    promised(
      "learning.C3",
      "whether there may be learnings is taken for granted of a large database and of a script's own",
    ),
    async () => {
      const { database, ledger } = openDatabase()
      writeFileSync(database, "")
      truncateSync(database, 17 * 1024 * 1024)
      expect(await ledger.mayHaveLearnings()).toBe(true)
      expect(await openDatabase(`${LEDGER}PROG_DB=elsewhere exec prog "$@"`).ledger.mayHaveLearnings()).toBe(true)
    },
  )
})
