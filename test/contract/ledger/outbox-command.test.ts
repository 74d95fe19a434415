import { execFileSync, spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { endWithTest } from "../../support/files/with-test.ts"
import { SYSTEM_PATH } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { ALL_LINES, NEWEST } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { testRandom } from "../../support/test-random.ts"

const found = findRealProg()
if (found.kind === "missing") registerMissingRealProg("baton outbox on the real prog", found.reason)

const LEDGERS = [
  ...ALL_LINES.map((binary) => ({ name: `embedded ledger of OpenCode ${binary.version}`, binary, prog: "" })),
  ...(found.kind === "found" ? [{ name: "real prog", binary: NEWEST, prog: found.program.command }] : []),
]

const UNKNOWN = "ts-ffffff"
const AT = "2026-01-01T10:20:30.000Z"
const createProject = shareBundle()

const log = (message: string, taskID = UNKNOWN) => ({ kind: "log", taskID, message })
const handoff = (text: string, taskID = UNKNOWN) => ({
  kind: "handoff",
  taskID,
  sessionID: "ses_A",
  section: `# Handoff after compaction 1 (session ses_A, summary msg_1, ${AT})\n\n${text}`,
})

/** State and id of each line. */
const outcomes = (stdout: string) => [...stdout.matchAll(/^(\w+) +(\S+)/gm)].map(([, state, id]) => `${state} ${id}`)

describe.each(LEDGERS)("baton outbox on the $name", ({ binary, prog: real }) => {
  const testHere = real ? test : testsOnce(binary)
  const setUp = () => {
    const { project, options } = createProject(binary)
    const programs = join(project, "programs")
    mkdirSync(programs)
    if (real) symlinkSync(real, join(programs, "prog"))
    const chosen = { BATON_RUNTIME: binary.path, BATON_LEDGER: real ? "real" : "embedded" }
    const env = { ...options.env, PATH: `${programs}:${SYSTEM_PATH}`, ...chosen }
    const program = (name: string) => join(project, ".opencode/baton/bin", name)
    const outbox = (args: readonly string[], extra: Record<string, string> = {}) => {
      const started = { ...options, env: { ...env, ...extra }, timeout: 50_000 }
      const { status, stdout, stderr } = spawnSync(program("baton"), ["outbox", ...args], started)
      return { status, stdout, stderr }
    }
    const prog = (...args: string[]) => execFileSync(program("prog"), args, { ...options, env }).trim()
    const show = (id: string) => {
      const task = JSON.parse(prog("show", id, "--json"))
      return { ...task, messages: task.logs.map(({ message }: { message: string }) => message) }
    }
    const addTask = (title: string) => prog("add", title, "-p", "demo", "--desc", "Build it.")
    const folder = join(project, ".opencode/state/outbox")
    const parkedFolder = join(folder, "parked")
    mkdirSync(parkedFolder, { recursive: true })
    if (real) prog("init")
    let count = 0
    const leave = (where: string, entry: { taskID: string }): string => {
      const tag = createHash("sha256").update(entry.taskID).digest("hex").slice(0, 8)
      const id = `1767262830000-${String(count++).padStart(6, "0")}-1a2b-${tag}`
      writeFileSync(join(where, `${id}.json`), JSON.stringify({ version: 1, createdAt: AT, entry }))
      return id
    }
    const park = (entry: { taskID: string }): string => {
      const id = leave(parkedFolder, entry)
      const reason = `2026-01-02T03:04:06.000Z\nthe ledger has no task ${entry.taskID}\n`
      writeFileSync(join(parkedFolder, `${id}.json.reason`), reason)
      return id
    }
    const start = (...args: string[]) =>
      endWithTest(spawn(program("baton"), ["outbox", ...args], { cwd: project, env, stdio: "ignore" }))
    const wait = (entry: { taskID: string }) => leave(folder, entry)
    return { project, folder, parkedFolder, outbox, start, prog, show, addTask, park, wait }
  }

  testHere(
    promised("outbox.A1", "baton outbox lists what waits and what is parked, with the reasons, and changes nothing"),
    () => {
      const { project, folder, parkedFolder, outbox, addTask, park, wait } = setUp()
      for (const args of [[], ["retry", project]])
        expect(outbox(args)).toEqual({ status: 0, stdout: "No records\n", stderr: "" })
      const task = addTask("A task")
      const parked = park(log("Compaction 1: done\nand more"))
      const waiting = [wait(log("\u001b[31mRed\u001b[0m\u0007 text", task)), wait(log("Lost", "ts-eeeeee"))]
      const before = [readdirSync(folder), readdirSync(parkedFolder)]
      const listed = outbox(["list"])
      expect(listed.stdout.split("\n")).toEqual([
        `${waiting[0]}  2026-01-01 10:20  log of ${task}  Red text`,
        "  waiting: it was not delivered yet; the ledger answers",
        `${waiting[1]}  2026-01-01 10:20  log of ts-eeeeee  Lost`,
        "  waiting: the ledger has no task ts-eeeeee",
        `${parked}  2026-01-01 10:20  log of ${UNKNOWN}  Compaction 1: done`,
        `  parked since 2026-01-02 03:04: the ledger has no task ${UNKNOWN}`,
        "",
        "Deliver parked records again: baton outbox retry",
        "",
      ])
      expect([readdirSync(folder), readdirSync(parkedFolder)]).toEqual(before)
      expect(JSON.parse(outbox(["--json"]).stdout).at(-1)).toEqual({
        ...{ id: parked, state: "parked", reason: `the ledger has no task ${UNKNOWN}`, createdAt: AT },
        ...{ parkedAt: "2026-01-02T03:04:06.000Z", entry: log("Compaction 1: done\nand more") },
      })
    },
  )

  testHere(
    promised("outbox.A1", "baton outbox retry delivers in order what it can, and says why the rest cannot be"),
    () => {
      const { outbox, show, addTask, park, wait } = setUp()
      const task = addTask("A task")
      const [one, lost, two] = [park(log("one", task)), park(log("lost")), park(handoff("Go on.", task))]
      const three = wait(log("three", task))
      const tried = outbox(["retry"])
      expect(tried.status).toBe(1)
      const expected = [`delivered ${one}`, `parked ${lost}`, `delivered ${two}`, `delivered ${three}`]
      expect(outcomes(tried.stdout)).toEqual(expected)
      expect(tried.stdout).toContain(`lost  the ledger has no task ${UNKNOWN}; prog list shows its tasks`)
      expect(show(task).messages).toEqual(["one", "three"])
      expect(show(task).description).toContain("Go on.")
      expect(outbox(["retry", lost]).status).toBe(1)
      expect(outbox(["retry", task]).stderr).toBe(`outbox: no record with the id or the task '${task}' is parked\n`)
    },
  )

  testHere(promised("outbox.A1", "baton outbox retry brings the records of a task to it, none twice"), () => {
    const { outbox, prog, show, addTask, park } = setUp()
    const task = addTask("A task")
    prog("log", task, "written by hand")
    const logs = ["one", "written by hand", "same", "same"].map((message) => log(message, task))
    const ids = [...logs, handoff("Go on.", task)].map(park)
    const kept = park(log("not meant", "ts-eeeeee"))
    const moved = outbox(["retry", task.toUpperCase()])
    expect(moved, moved.stderr).toMatchObject({ status: 0 })
    expect(outcomes(moved.stdout)).toEqual(ids.map((id) => `delivered ${id}`))
    // An equal line is the same record.
    expect(show(task).messages).toEqual(["written by hand", "one", "same"])
    expect(show(task).description).toMatch(/^Build it\.\n\n<!-- baton:handoff [\s\S]*Go on\./)
    expect(JSON.parse(outbox(["--json"]).stdout)).toMatchObject([{ id: kept, state: "parked" }])
  })

  testHere(promised("outbox.A1", "several retries at once bring each record to its task, once"), async () => {
    const { outbox, start, show, addTask, park } = setUp()
    const tasks = [addTask("A task"), addTask("Another")]
    const messages = ["one", "two", "three", "four"]
    for (const task of tasks) for (const message of messages) park(log(message, task))
    await Promise.all([1, 2, 3, 4].map(() => once(start("retry"), "exit")))
    // One may have found all delivered by another.
    expect(outbox([])).toMatchObject({ stdout: "No records\n" })
    expect(tasks.map((task) => show(task).messages)).toEqual([messages, messages])
  })

  testHere(promised("outbox.A1", "a kill -9 in the middle of a retry neither loses nor doubles a record"), async () => {
    const { outbox, start, show, addTask, park } = setUp()
    const task = addTask("A task")
    const messages = Array.from({ length: 12 }, (_, at) => `record ${at}`)
    for (const message of messages) park(log(message, task))
    const random = testRandom()
    for (let kill = 0; kill < runs(2); kill++) {
      const child = start("retry")
      const timer = setTimeout(() => child.kill("SIGKILL"), 100 + random() * 700)
      await once(child, "exit")
      clearTimeout(timer)
    }
    // Records wait while a program that the killed process started may still be writing.
    await eventually("an empty outbox", () => outbox(["retry"]).status === 0 || undefined, 40_000, 500)
    expect(show(task).messages).toEqual(messages)
  })

  testHere(promised("outbox.A1", "baton outbox leaves what is no record as it is, and ends"), () => {
    const { project, parkedFolder, folder, outbox, show, addTask, park } = setUp()
    const task = addTask("A task")
    const secret = join(project, "secret.json")
    writeFileSync(secret, JSON.stringify({ version: 1, createdAt: AT, entry: log("secret", task) }))
    writeFileSync(join(parkedFolder, "binary.json"), Buffer.from([0, 255, 27, 91, 50, 74, 10, 0]))
    writeFileSync(join(parkedFolder, "version.json"), JSON.stringify({ version: 2, createdAt: AT, entry: log("x") }))
    mkdirSync(join(parkedFolder, "folder.json"))
    mkdirSync(join(parkedFolder, "binary.json.reason"))
    symlinkSync(secret, join(parkedFolder, "link.json"))
    execFileSync("mkfifo", [join(parkedFolder, "pipe.json"), join(folder, "0000000000000-000000-pipe.json")])
    symlinkSync(secret, join(folder, "0000000000001-000000-link.json"))
    const id = park(log("good", task))
    const listed = outbox([])
    expect(listed.status).toBe(0)
    for (const name of ["binary", "version"])
      expect(listed.stdout).toContain(`${name}\n  parked: no outbox record of version 1`)
    for (const told of [
      "folder\n  parked: it is a folder, not a file",
      "link\n  parked: it is a link",
      "pipe\n  parked: it is not a regular file",
      "000000-pipe\n  waiting: it is not a regular file",
    ])
      expect(listed.stdout).toContain(told)
    expect(listed.stdout).not.toMatch(/secret|[^\P{Cc}\n]/u)

    const tried = outbox(["retry"])
    expect(tried.status).toBe(1)
    expect(tried.stdout).toContain(`delivered  ${id}`)
    expect(show(task).messages).toEqual(["good"])
    const left = readdirSync(parkedFolder).filter((name) => name.endsWith(".json"))
    const waited = ["0000000000000-000000-pipe", "0000000000001-000000-link"]
    const names = [...waited, "binary", "folder", "link", "pipe", "version"]
    expect(left.sort()).toEqual(names.map((name) => `${name}.json`))
    expect(readFileSync(join(parkedFolder, "binary.json"))).toEqual(Buffer.from([0, 255, 27, 91, 50, 74, 10, 0]))
  })

  testHere(
    promised("outbox.A1", "baton outbox keeps every record when the ledger does not answer, and says so"),
    () => {
      const { project, outbox, show, addTask, park, wait } = setUp()
      const task = addTask("A task")
      const ids = [park(log("one", task)), wait(log("two", task))]
      const without = { BATON_LEDGER: "real", PATH: SYSTEM_PATH }
      const reason = "BATON_LEDGER asks for the real prog and PATH has none"
      expect(outbox([], without).stdout).toContain(`\n  waiting: ${reason}\n`)
      const [first, second] = [`parked     ${ids[0]}  log of ${task}  one`, `waiting    ${ids[1]}  log of ${task}  two`]
      const stdout = `${first}  ${reason}\n${second}  ${reason}\n`
      expect(outbox(["retry"], without)).toMatchObject({ status: 1, stdout })
      mkdirSync(join(project, "retry"))
      expect(outbox(["retry"])).toMatchObject({ status: 0 })
      expect(show(task).messages).toEqual(["one", "two"])
    },
  )
})
