import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createJsonStore, createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { sessionTaskSchema } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const openStore = (root = temporaryFolder()) => {
  const log = createRecordedLog()
  const state = createStateFolder(root)
  return { log, state, root, store: createJsonStore({ state, folder: "tasks", schema: sessionTaskSchema, log }) }
}

describe("stored session state", () => {
  test(promised("task.B2", "what is written is read back, and leaves no temporary file"), async () => {
    const { store, state } = openStore()
    expect(await store.write("ses_1", BINDING)).toBe(true)
    expect(await store.read("ses_1")).toEqual(BINDING)
    expect(readdirSync(state.path("tasks"))).toEqual(["ses_1.json"])
    expect(readFileSync(state.path(".gitignore"), "utf8")).toBe("*\n")
  })

  test.each([
    ["garbage", "{not json"],
    ["nothing", ""],
    ["another version", JSON.stringify({ ...BINDING, version: 2 })],
    ["a missing field", JSON.stringify({ version: 1, sessionID: "ses_1" })],
    ["bytes that are no text", "\u0000\u0001\ufffd"],
  ])(
    promised("faults.F1", "%s in a state file is ignored with a warning that names the file"),
    async (_what, content) => {
      const { store, state, log } = openStore()
      mkdirSync(state.path("tasks"), { recursive: true })
      writeFileSync(state.path("tasks", "ses_1.json"), content)
      expect(await store.read("ses_1")).toBeUndefined()
      expect(log.lines).toMatchObject([{ level: "warn", extra: { path: state.path("tasks", "ses_1.json") } }])
      expect(await store.write("ses_1", BINDING)).toBe(true)
      expect(readFileSync(state.path("tasks", "ses_1.json.unusable"), "utf8")).toBe(content)
      await store.remove("ses_1")
      expect(readdirSync(state.path("tasks"))).toEqual([])
    },
  )

  test(promised("faults.F1", "what the disk refuses is known to this process, until the disk takes it"), async () => {
    const { store, log, root } = openStore()
    mkdirSync(join(root, ".opencode"))
    writeFileSync(join(root, ".opencode", "state"), "a file in the way")
    expect(await store.write("ses_1", BINDING)).toBe(false)
    expect(log.lines).toMatchObject([{ level: "warn" }])
    expect(await store.read("ses_1")).toEqual(BINDING)
    expect(await store.keys()).toEqual(["ses_1"])
    expect(store.isUnsaved("ses_1")).toBe(true)
    rmSync(join(root, ".opencode", "state"))
    expect(await store.write("ses_1", BINDING)).toBe(true)
    expect(store.isUnsaved("ses_1")).toBe(false)
  })

  test(promised("faults.F1", "a file that cannot be read is not overwritten"), async () => {
    const { store, state } = openStore()
    // A folder cannot be read as a file, even by root.
    mkdirSync(state.path("tasks", "ses_1.json"), { recursive: true })
    expect(await store.read("ses_1")).toBeUndefined()
    expect(await store.write("ses_1", BINDING)).toBe(false)
    expect(await store.read("ses_1")).toEqual(BINDING)
    expect(readdirSync(state.path("tasks"))).toEqual(["ses_1.json"])
  })

  test("a session id that is no file name is refused", async () => {
    const { store, root } = openStore()
    expect(await store.write("../../escaped", BINDING)).toBe(false)
    expect(await store.read("../../escaped")).toBeUndefined()
    expect(readdirSync(root)).toEqual([])
  })
})
