import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { diffStates, type JSONValue, mergePatch } from "../../../.opencode/baton/live-state/protocol.ts"
import {
  claimStatefile,
  createLineReader,
  EMPTY_REDUCTION,
  reduceLine,
  statefileName,
} from "../../../.opencode/baton/live-state/statefile.ts"
import { chooseWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

type State = Record<string, JSONValue>

/** Includes names that every object has. */
const key = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toString"))
const jsonObject = fc.dictionary(key, fc.jsonValue()) as fc.Arbitrary<State>
const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
/** States and patches whose fields keep their type, as in the protocol. */
const shaped = fc.record(
  {
    scalar,
    list: fc.array(scalar),
    object: fc.record(
      { one: scalar, two: fc.record({ three: scalar, four: scalar }, { requiredKeys: [] }) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<State>
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("the merge", () => {
  test.each<[string, State, State, State]>([
    ["objects", { a: { b: 1, c: { d: 2 } } }, { a: { c: { d: 3, e: 4 } } }, { a: { b: 1, c: { d: 3, e: 4 } } }],
    ["scalars and arrays", { one: 1, list: [1, 2, 3] }, { one: 2, list: [9] }, { one: 2, list: [9] }],
    ["null", { gone: "x", kept: true }, { gone: null }, { gone: null, kept: true }],
    ["an object for null", { a: null }, { a: { x: 1 } }, { a: { x: 1 } }],
    ["an object for a scalar", { a: 1 }, { a: { x: 1 } }, { a: { x: 1 } }],
    ["an object for an array", { a: [1] }, { a: { x: 1 } }, { a: { x: 1 } }],
  ])(
    promised("live-state.B1", "objects merge, scalars and arrays replace, null clears, what is left out stays: %s"),
    (_what, state, patch, merged) => {
      const before = structuredClone(state)
      expect(plain(mergePatch(state, patch))).toEqual(merged)
      expect(state).toEqual(before)
    },
  )

  test(promised("live-state.B2", "the same patches give the same state one by one and merged in one go"), () => {
    const merge = (state: State, patches: State[]) =>
      patches.reduce((merged: ReturnType<typeof mergePatch>, patch) => mergePatch(merged, patch), state)
    fc.assert(
      fc.property(shaped, fc.array(shaped), (state, patches) => {
        expect(plain(merge(state, patches))).toEqual(plain(mergePatch(state, merge({}, patches))))
      }),
    )
  })

  test(promised("live-state.B2", "a key such as __proto__ is a key like any other"), () => {
    const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    mergePatch({}, patch)
    expect(Reflect.get({}, "polluted")).toBeUndefined()
  })

  test(promised("live-state.B2", "a patch nested without end is refused"), () => {
    const deep = JSON.parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`)
    expect(() => mergePatch({}, deep)).toThrow(RangeError)
    const line = JSON.stringify({ event: "state.patch", ts: "t", patch: deep })
    const started = reduceLine(EMPTY_REDUCTION, JSON.stringify({ event: "state.snapshot", ts: "t", state: { a: 1 } }))
    expect(reduceLine(started, line)).toEqual({ ...started, skipped: 1 })
  })

  test(
    promised("live-state.A3", "a difference is a patch that makes the one of the other, or says that none can"),
    () => {
      fc.assert(
        fc.property(jsonObject, jsonObject, (before, after) => {
          const difference = diffStates(before, after)
          if (difference.kind === "none") expect(plain(before)).toEqual(plain(after))
          if (difference.kind === "patch") expect(plain(mergePatch(before, difference.patch))).toEqual(plain(after))
        }),
      )
      expect(diffStates({ a: { b: 1 } }, { a: {} })).toEqual({ kind: "replaced" })
    },
  )
})

describe("the reader of the stream", () => {
  const bytes = (text: string) => new TextEncoder().encode(text)

  test(promised("live-state.B2", "gives the same lines however the bytes are cut"), () => {
    const text = '{"a":"é漢😀"}\n\n{"b":2}\r\n{"c":3}'
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 40 })), (cuts) => {
        const all = bytes(text)
        const reader = createLineReader()
        const places = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length]
        const lines = places.slice(1).flatMap((end, index) => reader.push(all.subarray(places[index] ?? 0, end)))
        expect([...lines, ...reader.end()].map((line) => line?.trim())).toEqual(['{"a":"é漢😀"}', '{"b":2}', '{"c":3}'])
      }),
    )
  })

  test(promised("live-state.B2", "skips an oversized line and invalid UTF-8, and goes on behind them"), () => {
    const reader = createLineReader(10)
    expect(reader.push(bytes(`${"x".repeat(50)}`))).toEqual([])
    expect(reader.push(bytes(`${"x".repeat(50)}\nok\n`))).toEqual([undefined, "ok"])
    expect(reader.push(new Uint8Array([0xff, 0xfe, 0x0a, 0x6f, 0x6b, 0x0a]))).toEqual([undefined, "ok"])
  })

  test.each([
    ["no JSON", "{"],
    ["no object", "[1]"],
    ["an unknown event", '{"event":"state.other","ts":"t","state":{}}'],
    ["no time", '{"event":"state.snapshot","state":{}}'],
    ["no state", '{"event":"state.snapshot","ts":"t","state":7}'],
    ["a patch before any snapshot", '{"event":"state.patch","ts":"t","patch":{"a":1}}'],
  ])(promised("live-state.B2", "%s is skipped and counted"), (_what, line) => {
    expect(reduceLine(EMPTY_REDUCTION, line)).toEqual({ skipped: 1 })
    expect(reduceLine(EMPTY_REDUCTION, undefined)).toEqual({ skipped: 1 })
  })

  test(promised("live-state.B1", "the time of the statefile never goes back"), () => {
    const at = (ts: string) => JSON.stringify({ event: "state.snapshot", ts, state: { ts } })
    const reduced = reduceLine(reduceLine(EMPTY_REDUCTION, at("2026-01-02")), at("2026-01-01"))
    expect(reduced.envelope).toEqual({ event: "state.snapshot", ts: "2026-01-02", state: { ts: "2026-01-01" } })
  })
})

describe("the statefile", () => {
  test.each([
    ["opencode-project", "opencode-project"],
    ["../../etc/passwd", "etc-passwd"],
    [".hidden", "hidden"],
    ["a b\n😀", "a-b-"],
    ["", "session"],
    ["x".repeat(500), "x".repeat(100)],
  ])(promised("live-state.B1", "of %j is called %j"), (id, name) => expect(statefileName(id)).toBe(name))

  test(promised("live-state.B1", "is readable to its owner alone, and leaves nothing else behind"), async () => {
    const folder = temporaryFolder()
    const file = await claimStatefile(folder, "one", process.pid)
    await file.write("a")
    await file.write("b")
    expect(readFileSync(file.path, "utf8")).toBe("b")
    expect(statSync(file.path).mode & 0o777).toBe(0o600)
    await file.release()
    expect(readdirSync(folder)).toEqual(["one.json"])
  })

  test(
    promised("live-state.B3", "of a living writer is left alone: who comes second gets one of its own"),
    async () => {
      const folder = temporaryFolder()
      const first = await claimStatefile(folder, "one", 41)
      const second = await claimStatefile(folder, "one", 42)
      expect([first.path, second.path]).toEqual([join(folder, "one.json"), join(folder, "one-42.json")])
      await second.release()
      await expect(claimStatefile(folder, "one", 43)).resolves.toMatchObject({ path: join(folder, "one-43.json") })
      await first.release()
      expect((await claimStatefile(folder, "one", 44)).path).toBe(first.path)
    },
  )
})

describe("which writer is started", () => {
  const given = {
    variable: undefined,
    setting: undefined,
    c2c: undefined,
    runtime: "/bin/opencode",
    script: "/x/state-writer.ts",
    directory: "/project",
  }
  const c2c = "/bin/c2c"
  const setting = ["s", "t"]

  test.each([
    [{ c2c, setting, variable: '["a","b c"]' }, "foreign", ["a", "b c"]],
    [{ c2c, setting }, "foreign", ["s", "t"]],
    [{ c2c }, "foreign", ["/bin/c2c", "oc-plugin", "stream-write-statefile"]],
    [
      {},
      "embedded",
      "/bin/opencode --no-env-file --config=/dev/null run --no-install /x/state-writer.ts /project".split(" "),
    ],
  ])(
    promised("live-state.A2", "the variable's, the settings', c2c, the embedded one, in this order: of %j the %s one"),
    (change, kind, argv) => {
      expect(chooseWriter({ ...given, ...change })).toMatchObject({ kind, command: { argv } })
    },
  )

  test(promised("live-state.A2", "none where nothing can run the embedded one"), () => {
    expect(chooseWriter({ ...given, runtime: undefined })).toMatchObject({ kind: "none" })
  })

  test.each(["not json", "{}", "[]", '["a",1]', '"a"'])(
    promised("live-state.A2", "a variable %j is refused with what was expected"),
    (variable) =>
      expect(chooseWriter({ ...given, variable })).toMatchObject({
        kind: "none",
        reason: expect.stringContaining("expected a JSON array of program and arguments, received"),
      }),
  )
})
