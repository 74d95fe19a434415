import { AsyncLocalStorage, createHook } from "node:async_hooks"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createTaskStore } from "../../../.opencode/baton/task/session-task.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createRecordedLog, recordOf, temporaryFolder } from "../../support/unit.ts"

const RECORD = recordOf(BINDING)

const open = (root = temporaryFolder()) => ({ root, state: createStateFolder(root), log: createRecordedLog() })

const openStore = () => {
  const deps = open()
  return { ...deps, store: createTaskStore(deps) }
}

describe("stored session state", () => {
  test(promised("task.B2", "what is written is read back, and leaves no temporary file"), async () => {
    const { store, state } = openStore()
    expect(await store.write("ses_1", RECORD)).toBe(true)
    expect(await store.read("ses_1")).toEqual(RECORD)
    expect(readdirSync(state.path("tasks"))).toEqual(["ses_1.json"])
    expect(readFileSync(state.path(".gitignore"), "utf8")).toBe("*\n")
  })

  test.each([
    ["garbage", "{not json"],
    ["nothing", ""],
    ["another version", JSON.stringify({ ...RECORD, version: 2 })],
    ["a missing field", JSON.stringify({ version: 1, sessionID: "ses_1" })],
    ["bytes that are no text", "\u0000\u0001\ufffd"],
  ])(promised("faults.F1", "%s in a state file is ignored with a warning"), async (_what, content) => {
    const { store, state, log } = openStore()
    mkdirSync(state.path("tasks"), { recursive: true })
    writeFileSync(state.path("tasks", "ses_1.json"), content)
    expect(await store.read("ses_1")).toBeUndefined()
    expect(log.lines).toMatchObject([{ level: "warn", extra: { path: state.path("tasks", "ses_1.json") } }])
    expect(await store.write("ses_1", RECORD)).toBe(true)
    expect(readFileSync(state.path("tasks", "ses_1.json.unusable"), "utf8")).toBe(content)
    await store.remove("ses_1")
    expect(readdirSync(state.path("tasks"))).toEqual([])
  })

  test(promised("faults.F1", "what the disk refuses is known to this process, until the disk takes it"), async () => {
    const { store, log, root } = openStore()
    mkdirSync(join(root, ".opencode"))
    writeFileSync(join(root, ".opencode", "state"), "a file in the way")
    expect(await store.write("ses_1", RECORD)).toBe(false)
    expect(log.lines).toMatchObject([{ level: "warn" }])
    expect(await store.read("ses_1")).toEqual(RECORD)
    expect(await store.keys()).toEqual(["ses_1"])
    expect(store.isUnsaved("ses_1")).toBe(true)
    rmSync(join(root, ".opencode", "state"))
    expect(await store.write("ses_1", RECORD)).toBe(true)
    expect(store.isUnsaved("ses_1")).toBe(false)
  })

  test(promised("faults.F1", "a file that cannot be read is not overwritten"), async () => {
    const { store, state } = openStore()
    // A folder cannot be read as a file, even by root.
    mkdirSync(state.path("tasks", "ses_1.json"), { recursive: true })
    expect(await store.read("ses_1")).toBeUndefined()
    expect(await store.write("ses_1", RECORD)).toBe(false)
    expect(await store.read("ses_1")).toEqual(RECORD)
    expect(readdirSync(state.path("tasks"))).toEqual(["ses_1.json"])
  })

  test("a session id that is no file name is refused", async () => {
    const { store, root } = openStore()
    expect(await store.write("../../escaped", RECORD)).toBe(false)
    expect(await store.read("../../escaped")).toBeUndefined()
    expect(readdirSync(root)).toEqual([])
  })
})

/** Counts the flushes of a write: the only requests to the file system that a write makes without blocking the process. */
const flushesOf = async (write: () => Promise<void>): Promise<number> => {
  const scope = new AsyncLocalStorage<true>()
  let flushes = 0
  const hook = createHook({
    init: (_id, type) => {
      if (type === "FSREQCALLBACK" && scope.getStore()) flushes += 1
    },
  }).enable()
  try {
    await scope.run(true, write)
  } finally {
    hook.disable()
  }
  return flushes
}

test(promised("faults.F2", "a written file and its new name are flushed to disk unless it need not last"), async () => {
  const { state } = open()
  const path = state.path("outbox", "record.json")
  expect(await flushesOf(() => state.write(path, "{}"))).toBe(2)
  expect(await flushesOf(() => state.write(path, "{}", { isDurable: false }))).toBe(0)
})
