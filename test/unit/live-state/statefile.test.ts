import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { diffStates, type JSONValue, type LiveState } from "../../../.opencode/baton/live-state/protocol.ts"
import { createStatefileWriter, statefileName } from "../../../.opencode/baton/live-state/statefile.ts"
import { chooseWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { forAll } from "../../support/for-all.ts"
import { mergePatch } from "../../support/live-protocol.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

type State = Record<string, JSONValue>

/** Includes names that every object has. */
const key = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toString"))
const jsonObject = fc.dictionary(key, fc.jsonValue()) as fc.Arbitrary<State>
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test.each<[string, State, State, State]>([
  ["objects", { a: { b: 1, c: { d: 2 } } }, { a: { c: { d: 3, e: 4 } } }, { a: { b: 1, c: { d: 3, e: 4 } } }],
  ["scalars and arrays", { one: 1, list: [1, 2, 3] }, { one: 2, list: [9] }, { one: 2, list: [9] }],
  ["null", { gone: "x", kept: true }, { gone: null }, { gone: null, kept: true }],
  ["an object for null", { a: null }, { a: { x: 1 } }, { a: { x: 1 } }],
])(promised("live-state.A3", "objects merge, others replace, null clears: %s"), (_what, before, patch, after) => {
  expect(plain(mergePatch(before, patch))).toEqual(after)
  expect(diffStates(before, after)).toEqual({ kind: "patch", patch })
})

test(promised("live-state.A3", "a difference is a patch that makes one of the other, or says that none can"), () => {
  forAll(100, [jsonObject, jsonObject], (before, after) => {
    const difference = diffStates(before, after)
    if (difference.kind === "none") expect(plain(before)).toEqual(plain(after))
    if (difference.kind === "patch") expect(plain(mergePatch(before, difference.patch))).toEqual(plain(after))
  })
  expect(diffStates({ a: { b: 1 } }, { a: {} })).toEqual({ kind: "replaced" })
})

const setUp = (project = temporaryFolder(), { sessionID = "one", pid = process.pid } = {}) => {
  const log = createRecordedLog()
  let turn = 0
  const current = () => ({ turn, padding: "x".repeat(10_000) }) as unknown as LiveState
  const state = createStateFolder(project)
  const writer = createStatefileWriter({ state, sessionID, pid, current, end: () => undefined, log, retryMs: 10 })
  onTestFinished(() => writer.stop(0))
  const folder = join(project, ".opencode/state/live")
  const read = (name = "one") => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
  const publish = () => writer.publish({ event: "state.patch", ts: `T${++turn}`, patch: {} })
  const said = () => log.lines.map(({ message }) => message)
  return { project, folder, writer, publish, read, said, files: () => readdirSync(folder).sort() }
}

describe("the statefile", () => {
  test.each([
    ["opencode-project", "opencode-project"],
    ["../../etc/passwd", "etc-passwd"],
    [".hidden", "hidden"],
    ["a b\n😀", "a-b-"],
    ["", "session"],
    ["x".repeat(500), "x".repeat(100)],
  ])(promised("live-state.B1", "the statefile of %j is called %j"), (id, name) => expect(statefileName(id)).toBe(name))

  test(
    promised("live-state.B1", "the statefile has the first change at once and the last at the end, always whole"),
    async () => {
      const { writer, publish, read, files, folder } = setUp()
      publish()
      await eventually("the first write", () => files().includes("one.json") || undefined)
      expect(read()).toMatchObject({ event: "state.patch", ts: "T1", state: { turn: 1 } })
      for (let n = 0; n < 500; n++) {
        publish()
        expect(read().state.padding).toHaveLength(10_000)
        await new Promise((resolve) => setImmediate(resolve))
      }
      await writer.stop(0)
      expect(read()).toMatchObject({ ts: "T501", state: { turn: 501 } })
      expect(statSync(join(folder, "one.json")).mode & 0o777).toBe(0o600)
      expect(files()).toEqual(["one.json"])
    },
  )

  test(promised("live-state.B2", "a statefile that cannot be written is tried again, and said once"), async () => {
    const { folder, publish, read, said } = setUp()
    mkdirSync(join(folder, ".."), { recursive: true })
    writeFileSync(folder, "in the way")
    publish()
    await eventually("the complaint", () => said()[0])
    publish()
    await new Promise((resolve) => setTimeout(resolve, 30))
    rmSync(folder)
    await eventually("the file", () => said().includes("the statefile is written again") || undefined)
    expect(read().state.turn).toBe(2)
    expect(said()).toHaveLength(2)
  })

  test(
    promised("live-state.B3", "the statefile of a process that was killed at work is not overwritten, another is"),
    async () => {
      const folder = join(temporaryFolder(), ".opencode/state/live")
      mkdirSync(folder, { recursive: true })
      for (const [isIdle, expected] of [
        [false, ["one-crashed.json", "one.json"]],
        [true, ["one.json"]],
      ] as const) {
        const state = { agent: { is_idle: isIdle }, extensions: {} }
        writeFileSync(join(folder, "one.json"), JSON.stringify({ event: "state.snapshot", ts: "T0", state }))
        const next = setUp(join(folder, "../../.."))
        next.publish()
        await next.writer.stop(0)
        expect(next.files()).toEqual(expected)
        expect(next.read()).toMatchObject({ ts: "T1" })
        rmSync(join(folder, "one-crashed.json"), { force: true })
      }
    },
  )

  test(
    promised("live-state.B3", "the statefile of a living process is left alone: a second gets one of its own"),
    async () => {
      const first = setUp()
      first.publish()
      await eventually("the first", () => first.files()[0])
      const second = setUp(first.project, { pid: 42 })
      second.publish()
      await eventually("the second", () => second.files().includes("one-42.json") || undefined)
      await first.writer.stop(0)
      await second.writer.stop(0)
      expect(first.files()).toEqual(["one-42.json", "one.json"])
    },
  )
})

describe("the writer that is chosen", () => {
  const [c2c, setting] = ["/bin/c2c", ["s", "t"]]
  const choose = (given: object) => chooseWriter({ variable: undefined, setting: undefined, c2c: undefined, ...given })
  test.each([
    [{ c2c, setting, variable: '["a","b c"]' }, ["a", "b c"]],
    [{ c2c, setting }, ["s", "t"]],
    [{ c2c }, ["/bin/c2c", "oc-plugin", "stream-write-statefile"]],
  ])(
    promised("live-state.A2", "the writer that is chosen is the variable's, the setting's, c2c or Baton's own: %j"),
    (given, argv) => {
      expect(choose(given)).toEqual({ kind: "foreign", argv })
      expect(choose({})).toEqual({ kind: "own" })
    },
  )

  test.each(["not json", "{}", "[]", '["a",1]', '"a"'])(
    promised("live-state.A2", "the writer that is chosen is none for %j"),
    (variable) => {
      const reason = expect.stringContaining("expected a JSON array of program and arguments, received")
      expect(choose({ variable, c2c })).toMatchObject({ kind: "none", reason })
    },
  )
})
