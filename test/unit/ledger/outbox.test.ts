import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { basename, join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { RunProcess } from "../../../.opencode/baton/host/process.ts"
import { createStateFolder, type StateFolder } from "../../../.opencode/baton/host/state.ts"
import { createLedger } from "../../../.opencode/baton/ledger/client.ts"
import { splitHandoffs, textLimit } from "../../../.opencode/baton/ledger/description.ts"
import { createOutbox, createOutboxLock, type OutboxDeps } from "../../../.opencode/baton/ledger/outbox.ts"
import { createOutboxStore, type Outbox, type OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createScriptedLedger, type Fault } from "../../support/ledger/scripted-ledger.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const TASK = "ts-000001"
const OTHER = "ts-000002"
const entry = (message: string, taskID = TASK) => ({ kind: "log", taskID, message }) as const
const handoff = (section: string, specification?: string) =>
  ({ kind: "handoff", taskID: TASK, sessionID: "ses_1", section, specification }) as const

/** Adds the entries one after the other and delivers them. */
const deliver = async (outbox: Outbox, ...entries: OutboxEntry[]): Promise<void> => {
  for (const each of entries) await outbox.add(each)
  await outbox.flush(5000)
}

const setUp = () => {
  const folder = temporaryFolder()
  const scripted = createScriptedLedger([TASK, OTHER])
  const state = createStateFolder(folder)
  const disk = { full: false }
  const write: StateFolder["write"] = async (path, text) => {
    if (disk.full) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
    await state.write(path, text)
  }
  const log = createRecordedLog()
  const outboxFolder = state.path("outbox")
  const open = (deps: Partial<OutboxDeps> = {}) => {
    const all = { ...scripted, state: { ...state, write }, log, firstRetryMs: 60_000, lockGraceMs: 0, ...deps }
    const outbox = createOutbox(all)
    onTestFinished(() => outbox.stop())
    return outbox
  }
  const files = () =>
    existsSync(outboxFolder) ? readdirSync(outboxFolder).filter((name) => name.endsWith(".json")) : []
  /** Entries of an earlier process that did not reach the ledger. */
  const leave = async (entries: readonly OutboxEntry[], deps: Partial<OutboxDeps> = {}) => {
    scripted.script.readable = false
    const before = open(deps)
    await Promise.all(entries.map((each) => before.add(each)))
    await before.flush(30_000)
    before.stop()
    scripted.script.readable = true
    scripted.calls.length = 0
  }
  return { ...scripted, state, disk, log, outboxFolder, open, files, leave }
}

type Outboxes = ReturnType<typeof setUp>

const fillDisk = ({ disk }: Outboxes) => {
  disk.full = true
  return () => void Object.assign(disk, { full: false })
}

/** Puts a file where the state folder is. @returns puts the folder back */
const blockFolder = ({ state }: Outboxes) => {
  const place = state.path()
  renameSync(place, `${place}-away`)
  writeFileSync(place, "in the way")
  return () => {
    rmSync(place)
    renameSync(`${place}-away`, place)
  }
}

const blockOutbox = ({ state, outboxFolder }: Outboxes) => {
  mkdirSync(state.path(), { recursive: true })
  writeFileSync(outboxFolder, "in the way")
}

/** Holds the ledger's next call until `release`. @returns `reached` resolves when the call has come */
const holdLedger = (script: { gate: () => Promise<void> }) => {
  const held = createDeferred<void>()
  const reached = createDeferred<void>()
  script.gate = () => {
    reached.resolve()
    return held.promise
  }
  const letOthersPass = (): void => {
    script.gate = async () => {}
  }
  return { reached: reached.promise, release: () => held.resolve(), letOthersPass }
}

describe("the outbox", () => {
  test(promised("soak.B5", "a flush that is done leaves no timer"), async () => {
    const outbox = setUp().open()
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    await deliver(outbox, entry("one"))
    expect(vi.getTimerCount()).toBe(0)
  })

  test(
    promised("notices.A1", "the outbox says once that records wait, and that they are delivered again"),
    async () => {
      const { open, script } = setUp()
      const told: string[] = []
      const outbox = open({ notices: ({ title, isProblem }) => void told.push(`${title} ${isProblem}`) })
      script.readable = false
      await deliver(outbox, entry("one"))
      for (let tries = 0; tries < 3; tries++) await outbox.drain()
      expect(told).toEqual(["records wait for the ledger true"])
      script.readable = true
      for (let tries = 0; tries < 2; tries++) await outbox.drain()
      expect(told.slice(1)).toEqual(["records are delivered again true"])
    },
  )

  test(
    promised("ledger.D2", "the outbox has an entry on disk before the ledger is called, and nothing before it"),
    async () => {
      const { open, script, files, task, outboxFolder, calls } = setUp()
      const seen: number[] = []
      script.gate = async () => void seen.push(files().length)
      const outbox = open()
      expect(existsSync(outboxFolder)).toBe(false)
      expect(calls).toEqual([])
      await deliver(outbox, entry("one"))
      expect(seen).toEqual([1])
      expect(task().messages).toEqual(["one"])
      expect(files()).toEqual([])
    },
  )

  test(promised("start.A2", "the outbox delivers once the work that a request waits for is done"), async () => {
    const { open, calls, files } = setUp()
    const first = createDeferred<void>()
    const outbox = open({ firstDone: () => first.promise })
    await outbox.add(entry("one"))
    await outbox.flush(50)
    expect([calls.length, files().length]).toEqual([0, 1])
    first.resolve()
    await outbox.flush(30_000)
    expect(calls.length).toBeGreaterThan(0)
    expect(files()).toEqual([])
  })

  test(
    promised("ledger.D2", "the outbox writes a line once whose record an ended process delivered or added twice"),
    async () => {
      const { open, task, files, leave } = setUp()
      const [line, other] = ["Compaction 1: It is done. (session ses_1)", "Compaction 1: It is done. (session ses_2)"]
      task().messages.push(line)
      await leave([entry(line), entry(other), entry(other)])
      await open().flush(5000)
      expect(task().messages).toEqual([line, other])
      expect(files()).toEqual([])
    },
  )

  test("the outbox retries by itself after a failure", async () => {
    const { open, script, task, log } = setUp()
    let failures = 3
    script.fault = () => (failures-- > 0 ? "unavailable" : "none")
    await open({ firstRetryMs: 1 }).add(entry("late"))
    await expect.poll(() => task().messages).toEqual(["late"])
    expect(log.lines.filter(({ message }) => message.includes("outbox waits"))).toHaveLength(3)
  })

  test(
    promised("ledger.D2", "the outbox keeps the order even when the clock goes back between two processes"),
    async () => {
      const { open, leave, files, task } = setUp()
      const later = { now: () => new Date("2026-06-02T00:00:00Z") }
      await leave([entry("one"), entry("two"), entry("three")], later)
      expect(files()).toHaveLength(3)
      await deliver(open({ now: () => new Date("2026-06-01T00:00:00Z") }), entry("four"))
      expect(task().messages).toEqual(["one", "two", "three", "four"])
    },
  )

  test("the outbox waits for a program that an ended process may have left running", async () => {
    const { open, files, task, outboxFolder, leave } = setUp()
    await leave([entry("one")])
    const lock = join(outboxFolder, "lock")
    const held = await createOutboxLock({ lockPath: lock }).tryAcquire()
    const [token, , host, startedAt] = readFileSync(lock, "utf8").split("\n")
    await held?.release()
    writeFileSync(lock, [token, spawnSync(process.execPath, ["-e", ""]).pid, host, startedAt, ""].join("\n"))
    const outbox = open({ lockGraceMs: 8000 })
    await outbox.drain()
    expect(files()).toHaveLength(1)
    expect((await outbox.status()).lastFailure).toContain("another process is delivering")
    // The orphaned program finishes its work now.
    task().messages.push("one")
    const past = new Date(Date.now() - 9000)
    utimesSync(lock, past, past)
    await outbox.drain()
    expect(task().messages).toEqual(["one"])
    expect(files()).toEqual([])
  })

  test(
    promised("ledger.D2", "the outbox parks a record for an unknown task, and tries it when moved back"),
    async () => {
      const { open, ledger, log, task, state, outboxFolder } = setUp()
      const outbox = open()
      await deliver(outbox, entry("nowhere", "ts-add002"), entry("somewhere"))
      expect(task().messages).toEqual(["somewhere"])
      const { waiting, parked } = await outbox.status()
      expect(waiting).toBe(0)
      const record = { version: 1, createdAt: expect.any(String), entry: entry("nowhere", "ts-add002") }
      const file = expect.stringContaining(join(outboxFolder, "parked"))
      const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
      expect(parked).toEqual([{ file, record, reason: "the ledger has no task ts-add002", since }])
      const warning = { level: "warn", message: expect.stringContaining("parked") }
      expect(log.lines).toContainEqual(expect.objectContaining(warning))
      const path = parked[0]?.file ?? ""
      await ledger.addTask({ title: "Nowhere", description: "", project: "demo" })
      await createOutboxStore(state).unpark(basename(path))
      await outbox.drain()
      expect(task("ts-add002").messages).toEqual(["nowhere"])
      expect((await outbox.status()).parked).toEqual([])
    },
  )

  test.each([
    ["no JSON", "{"],
    ["empty", ""],
    ["another version", JSON.stringify({ version: 2, createdAt: "2026-01-01T00:00:00Z", entry: entry("x") })],
    ["another kind", JSON.stringify({ version: 1, createdAt: "2026-01-01T00:00:00Z", entry: { kind: "other" } })],
  ])("the outbox parks a file that is malformed (%s) byte for byte", async (_name, text) => {
    const { open, outboxFolder, task } = setUp()
    mkdirSync(outboxFolder, { recursive: true })
    writeFileSync(join(outboxFolder, "0000000000001-000000-bad.json"), text)
    const outbox = open()
    await deliver(outbox, entry("good"))
    expect(task().messages).toEqual(["good"])
    const [parked] = (await outbox.status()).parked
    expect(parked).toMatchObject({ reason: expect.stringContaining("no outbox record of version 1") })
    expect(parked).not.toHaveProperty("record")
    expect(readFileSync(parked?.file ?? "", "utf8")).toBe(text)
  })

  test(
    promised("ledger.D2", "the outbox reads for a queue the records alone whose name says they may be of it"),
    async () => {
      const { open, leave, files, outboxFolder, state } = setUp()
      await leave([entry("a"), entry("b", OTHER), handoff("h")])
      const read = (name: string) => readFileSync(join(outboxFolder, name), "utf8")
      const [other = ""] = files().filter((name) => read(name).includes(OTHER))
      // It would be found by what it holds.
      const [own = ""] = files().filter((name) => read(name).includes('"a"'))
      writeFileSync(join(outboxFolder, other), read(own))
      expect(await open().pending(TASK)).toEqual([entry("a"), handoff("h")])
      expect(await createOutboxStore(state).list()).toHaveLength(3)
    },
  )

  test(promised("ledger.D2", "the outbox keeps the order of a queue while a file of it cannot be read"), async () => {
    const { open, leave, files, state, task } = setUp()
    await leave([entry("first"), entry("second"), entry("other", OTHER)])
    const [first = ""] = files().toSorted()
    const disk = { fails: true }
    const path: StateFolder["path"] = (...names) =>
      disk.fails && names.includes(first) ? state.path("x".repeat(300)) : state.path(...names)
    const outbox = open({ state: { ...state, path } })
    await outbox.flush(5000)
    expect([task().messages, task(OTHER).messages]).toEqual([[], ["other"]])
    disk.fails = false
    await outbox.flush(5000)
    expect(task().messages).toEqual(["first", "second"])
  })

  test("the outbox lets a refused record hold up its own task alone", async () => {
    const { open, script, task } = setUp()
    script.fault = ({ id }) => (id === TASK ? "refused" : "none")
    const outbox = open()
    await deliver(outbox, entry("a1"), entry("b1", OTHER), entry("a2"), entry("b2", OTHER))
    expect(task(OTHER).messages).toEqual(["b1", "b2"])
    expect(await outbox.status()).toMatchObject({ waiting: 2, lastFailure: "scripted refused" })
    script.fault = () => "none"
    await outbox.drain()
    expect(task().messages).toEqual(["a1", "a2"])
  })

  test.each([
    ["the disk is full", "ENOSPC", fillDisk],
    ["a file stands in its folder's place", "EEXIST", blockOutbox],
  ])(
    promised("ledger.D2", "the outbox goes to the ledger directly while %s, and says so"),
    async (_what, reason, harm) => {
      const set = setUp()
      harm(set)
      const outbox = set.open()
      await outbox.add(entry("one"))
      await outbox.add(entry("two"))
      await outbox.flush(5000)
      expect(set.task().messages).toEqual(["one", "two"])
      const extra = { taskID: TASK, reason: expect.stringContaining(reason) }
      const warning = { message: expect.stringContaining("cannot be written"), extra }
      expect(set.log.lines.filter(({ level }) => level === "warn")).toMatchObject([warning, warning])
      expect(await outbox.status()).toEqual({ waiting: 0, parked: [] })
    },
  )

  test("the outbox holds a record in memory when disk and ledger both refuse, and saves it once one of them does not", async () => {
    const { open, script, disk, log, task } = setUp()
    disk.full = true
    script.readable = false
    const outbox = open()
    await deliver(outbox, entry("held"))
    expect(await outbox.status()).toMatchObject({ waiting: 1, lastFailure: expect.stringContaining("only in memory") })
    expect(log.lines).toContainEqual(expect.objectContaining({ level: "error" }))
    script.readable = true
    disk.full = false
    await deliver(outbox, entry("next"))
    expect(task().messages).toEqual(["held", "next"])
    expect(await outbox.status()).toEqual({ waiting: 0, parked: [] })
  })

  test(
    promised("ledger.D2", "the outbox keeps the order while earlier records wait and the disk is full"),
    async () => {
      const set = setUp()
      const { open, script, task, files } = set
      script.readable = false
      const outbox = open()
      await deliver(outbox, entry("saved"), handoff("saved"))
      fillDisk(set)
      script.readable = true
      await deliver(outbox, entry("direct"), handoff("direct"))
      expect(task().messages).toEqual(["saved", "direct"])
      expect(splitHandoffs(task().description).handoffs).toEqual(["direct"])
      expect(files()).toEqual([])
      expect(await outbox.status()).toEqual({ waiting: 0, parked: [] })
    },
  )

  test(
    promised("ledger.D2", "the outbox delivers the records of a folder that was away, and no older handoff"),
    async () => {
      const set = setUp()
      const { open, script, task, files } = set
      const titled = (number: number) =>
        handoff(`# Handoff after compaction ${number} (session ses_1, summary msg_1, 2026-01-0${number}T00:00:00.000Z)`)
      script.readable = false
      const outbox = open()
      await deliver(outbox, entry("saved"), titled(1))
      const mend = blockFolder(set)
      script.readable = true
      await deliver(outbox, entry("direct"), titled(2))
      expect(task().messages).toEqual(["direct"])
      mend()
      expect(files()).toHaveLength(2)
      await outbox.flush(5000)
      expect(task().messages).toEqual(["direct", "saved"])
      expect(splitHandoffs(task().description).handoffs).toEqual([titled(2).section])
      expect(await outbox.status()).toEqual({ waiting: 0, parked: [] })
    },
  )

  test("the outbox goes on at once when its folder was away in the middle of a delivery", async () => {
    const set = setUp()
    const { open, script, task, files } = set
    const { reached, release, letOthersPass } = holdLedger(script)
    const outbox = open()
    await outbox.add(entry("slow"))
    await reached
    const putBack = blockFolder(set)
    letOthersPass()
    release()
    await outbox.drain()
    putBack()
    expect(files()).toHaveLength(1)
    await deliver(outbox, entry("next"))
    expect(task().messages).toEqual(["slow", "next"])
    expect(files()).toEqual([])
  })

  test(
    promised("ledger.D2", "the outbox writes a record once that no process can remove, since the disk refuses"),
    async () => {
      const { open, disk, leave, files, outboxFolder, task } = setUp()
      await leave([entry("Compaction 1: one (session ses_1)")])
      const [name = ""] = files()
      const path = join(outboxFolder, name)
      const text = readFileSync(path, "utf8")
      disk.full = true
      for (const message of ["two", "three"]) {
        const outbox = open()
        await deliver(outbox, entry(message))
        outbox.stop()
        writeFileSync(path, text)
      }
      expect(task().messages).toEqual(["Compaction 1: one (session ses_1)", "two", "three"])
    },
  )

  test("the outbox waits for what is being delivered before a record that the disk refuses goes to the ledger", async () => {
    const { open, script, disk, log, task } = setUp()
    const { reached, release, letOthersPass } = holdLedger(script)
    const outbox = open()
    await outbox.add(entry("slow"))
    await reached
    disk.full = true
    const added = outbox.add(entry("direct"))
    letOthersPass()
    await expect.poll(() => log.lines.map(({ level }) => level)).toContain("warn")
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(task().messages).toEqual([])
    release()
    await added
    await outbox.flush(5000)
    expect(task().messages).toEqual(["slow", "direct"])
  })

  test(
    promised("words.C1", "the outbox holds no caller up while the disk refuses and the ledger is slow; a flush waits"),
    async () => {
      const { open, script, disk, task } = setUp()
      const { reached, release } = holdLedger(script)
      disk.full = true
      const outbox = open()
      await outbox.add(entry("one"))
      await reached
      await outbox.add(entry("two"))
      expect(task().messages).toEqual([])
      release()
      await outbox.flush(5000)
      expect(task().messages).toEqual(["one", "two"])
    },
  )

  test("the outbox ends a flush at its deadline when the ledger hangs, and delivers nothing twice", async () => {
    const { open, script, files, task } = setUp()
    const { reached, release, letOthersPass } = holdLedger(script)
    const outbox = open()
    await outbox.add(entry("slow"))
    await reached
    await outbox.flush(20)
    outbox.stop()
    expect(files()).toHaveLength(1)
    release()
    await expect.poll(files).toEqual([])
    letOthersPass()
    await open().flush(5000)
    expect(task().messages).toEqual(["slow"])
  })

  test("each record is delivered once when several outboxes share the folder", async () => {
    const { open, task, files } = setUp()
    const outboxes = [open(), open(), open()]
    const messages = Array.from({ length: 60 }, (_, at) => `m${at}`)
    const addTo = async (at: number, message: string) => await outboxes[at % 3]?.add(entry(message))
    await Promise.all(messages.map((message, at) => addTo(at, message)))
    await Promise.all(outboxes.map((outbox) => outbox.flush(10_000)))
    expect(files()).toEqual([])
    expect(task().messages).toHaveLength(60)
    expect(new Set(task().messages)).toEqual(new Set(messages))
  })

  test("the outbox delivers hundreds of entries in order, reading the ledger once for all of them", async () => {
    const { open, leave, task, calls } = setUp()
    const messages = Array.from({ length: runs(200) }, (_, at) => `entry ${at}`)
    await leave(messages.map((message) => entry(message)))
    await open().flush(60_000)
    expect(task().messages).toEqual(messages)
    expect(calls.filter((call) => call.startsWith("show"))).toHaveLength(1)
  }, 60_000)

  test("the outbox merges handoffs below a specification that was written over while they waited, the last one alone", async () => {
    const { open, task, calls } = setUp()
    task().description = "Progress: half."
    await deliver(open(), ...["first", "second", "second"].map((section) => handoff(section, "Build it.")))
    const { specification, handoffs } = splitHandoffs(task().description)
    expect(specification).toMatch(/^Build it\.\n[\s\S]*Progress: half\.$/)
    expect(handoffs).toEqual(["second"])
    expect(calls.filter((call) => call.startsWith("desc"))).toHaveLength(2)
  })

  describe("a description that is full", () => {
    const limit = textLimit(process.platform)
    const openFull = (description: string) => {
      const { open, ledger, task, state } = setUp()
      const run: RunProcess = async () => ({ kind: "not-started", cause: "none" })
      const shorten = createLedger({ state, run, directory: state.root, log: createRecordedLog() }).shorten
      task().description = description
      return { outbox: open({ ledger: { ...ledger, shorten } }), task }
    }
    const title = (at: string) =>
      `# Handoff after compaction 1 (session ses_a, summary msg_1, 2026-01-01T0${at}:00:00.000Z)`
    const work =
      "# Work in progress (session ses_a, 2026-01-01T09:00:00.000Z)\n\n## Facts gathered by program\n- new.ts"

    test(promised("ledger.D1", "a handoff that takes over later facts is cut in a full description"), async () => {
      const { outbox, task } = openFull("Spec")
      await deliver(outbox, handoff(`${title("1")}\n\n${"x".repeat(limit)}`), handoff(work), handoff(work))
      const { specification, handoffs } = splitHandoffs(task().description)
      expect(specification).toBe("Spec")
      expect(handoffs).toEqual([expect.stringContaining(title("9"))])
      expect(handoffs[0]).toMatch(/x{999}\n\n\[cut: /)
      expect(Buffer.byteLength(task().description)).toBeLessThanOrEqual(limit)
    })

    test(promised("ledger.D1", "a handoff without room for its title is parked"), async () => {
      const specification = "x".repeat(limit - 240)
      const { outbox, task } = openFull(specification)
      await deliver(outbox, handoff(work.repeat(9)))
      expect(task()).toMatchObject({ description: specification, messages: [] })
      expect((await outbox.status()).parked).toMatchObject([{ reason: expect.stringContaining("no room") }])
    })
  })

  test(promised("ledger.D2", "each record of the outbox comes once and in order, whatever fails"), async () => {
    const fault = fc.constantFrom<Fault>("none", "none", "refused", "unavailable", "written-unheard")
    const message = fc.record({ id: fc.constantFrom(TASK, OTHER), text: fc.constantFrom("a", "b", "") })
    const disks = fc.array(fc.boolean(), { maxLength: 3 })
    const step = fc.record({ message, faults: fc.array(fault, { maxLength: 3 }), disks, restart: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (drawn) => {
        // Each line names its record.
        const steps = drawn.map(({ message: { id, text }, ...one }, at) => ({
          ...one,
          message: entry(`${text} ${at}`, id),
        }))
        const { open, script, disk, task } = setUp()
        const faults = steps.flatMap((one) => one.faults)
        script.fault = () => faults.shift() ?? "none"
        let outbox = open()
        for (const { message, disks, restart } of steps) {
          for (const full of disks) {
            disk.full = full
            await outbox.drain()
          }
          await outbox.add(message)
          if (restart) {
            // Before the restart the disk works long enough for a new pass: what is only in memory ends with the process.
            disk.full = false
            await outbox.drain()
            await outbox.flush(5000)
            outbox.stop()
            outbox = open()
          }
        }
        disk.full = false
        while ((await outbox.status()).waiting > 0) await outbox.drain()
        outbox.stop()
        for (const id of [TASK, OTHER]) {
          const expected = steps.flatMap(({ message }) => (message.taskID === id ? message.message : []))
          expect(task(id).messages).toEqual(expected)
        }
      }),
      { numRuns: runs(40) },
    )
  }, 60_000)
})
