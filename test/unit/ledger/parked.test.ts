import { describe, expect, test } from "vitest"
import type { OutboxEntry, OutboxRecord, ParkedEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { chooseParked, keepNewer } from "../../../.opencode/baton/ledger/parked.ts"
import { promised } from "../../requirements.ts"

const AT = "2026-01-01T10:00:00.000Z"

const log = (message: string, taskID = "ts-00000a"): OutboxEntry => ({ kind: "log", taskID, message })
const section = (session: string, number: number, at = AT) =>
  `# Handoff after compaction ${number} (session ${session}, summary msg_${number}, ${at})\n\nDo.`
const own = (section: string, taskID: string) => ({ kind: "handoff", taskID, sessionID: "ses_A", section }) as const
const handoff = (text: string, taskID = "ts-00000a") =>
  ({ ...own(text, taskID), specification: "Another task's specification." }) satisfies OutboxEntry
const retired: OutboxEntry = { kind: "retire", project: "demo", folder: "", key: "k", as: "forgotten", reason: "r" }
const record = (entry: OutboxEntry) => ({ record: { version: 1, createdAt: AT, entry } as OutboxRecord })
const file = (id: string, one?: { record: OutboxRecord }) =>
  ({ file: `/p/parked/${id}.json`, reason: "r", since: AT, ...one }) satisfies ParkedEntry

describe("parked records", () => {
  const parked = [
    file("1-000000-aa", record(log("one"))),
    file("1-000001-bb", record(log("two", "ts-00000c"))),
    file("1-000002-cc"),
    file("1-000003-dd", record(retired)),
  ]

  const AA_AND_CC = ["aa", "cc"]
  test.each([
    [[], ["aa", "bb", "cc", "dd"]],
    [["1-000001-BB"], ["bb"]],
    [["/p/parked/1-000002-cc.json", "TS-00000A"], AA_AND_CC],
    [["1-000000-aa", "ts-00000a"], ["aa"]],
  ])(promised("outbox.A1", "%j chooses %j: ids, files and tasks in any case, each record once"), (names, expected) => {
    expect(chooseParked(parked, names).map((one) => one.file.slice(-7, -5))).toEqual(expected)
  })

  test.each([["ts-00000d"], ["00000"], [""], ["demo"], [".."]])("%j names no record", (name) => {
    expect(() => chooseParked(parked, ["1-000000-aa", name])).toThrow(`no record with the id or the task '${name}'`)
  })
})

describe("a parked record that is tried again", () => {
  const marked = (text: string) => `\n\n<!-- baton:handoff 000000000000, x -->\n${text}\n<!-- /baton:handoff -->`

  test.each([
    ["a newer one of its session", [section("ses_A", 2, "2026-01-01T11:00:00.000Z")], "log"],
    ["an older one of its session", [section("ses_A", 0, "2026-01-01T09:00:00.000Z")], "handoff"],
    ["the same", [section("ses_A", 1)], "handoff"],
    ["a newer one of another session", [section("ses_B", 2, "2026-01-01T11:00:00.000Z")], "handoff"],
    ["none", [], "handoff"],
  ])(promised("outbox.A1", "a handoff does not replace a newer one: there is %s"), (_what, has, expected) => {
    const own = handoff(section("ses_A", 1))
    const kept = keepNewer(own, `Spec.${has.map(marked).join("")}`)
    expect(kept.kind).toBe(expected)
    if (kept.kind === "log") expect(kept.message).toContain(section("ses_A", 1))
    else expect(kept).toBe(own)
  })

  test.each([[log("one")], [retired]])("any other record stays as it is: %j", (entry) => {
    expect(keepNewer(entry, "Spec.")).toBe(entry)
  })
})
