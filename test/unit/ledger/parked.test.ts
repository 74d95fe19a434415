import { describe, expect, test } from "vitest"
import type { OutboxEntry, OutboxRecord, ParkedEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { checkHasTask, chooseParked, renewRecords } from "../../../.opencode/baton/ledger/parked.ts"
import { promised } from "../../requirements.ts"

const AT = "2026-01-01T10:00:00.000Z"
const RIGHT = { id: "ts-00000b", description: "Spec." }

const log = (message: string, taskID = "ts-00000a"): OutboxEntry => ({ kind: "log", taskID, message })
const section = (session: string, number: number, at = AT) =>
  `# Handoff after compaction ${number} (session ${session}, summary msg_${number}, ${at})\n\nDo.`
const own = (section: string, taskID: string) => ({ kind: "handoff", taskID, sessionID: "ses_A", section }) as const
const handoff = (text: string, taskID = "ts-00000a") =>
  ({ ...own(text, taskID), specification: "Another task's specification." }) satisfies OutboxEntry
const retired: OutboxEntry = { kind: "retire", project: "demo", folder: "", key: "k", as: "forgotten", reason: "r" }
const record = (entry: OutboxEntry, attempt?: OutboxRecord["attempt"]) => ({
  record: { version: 1, createdAt: AT, entry, ...(attempt ? { attempt } : {}) } as OutboxRecord,
})
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

  test("a record of no task cannot go to one", () => {
    const [ofTask, , damaged, ofProject] = parked
    expect(() => ofTask && checkHasTask(ofTask)).not.toThrow()
    expect(() => damaged && checkHasTask(damaged)).toThrow("1-000002-cc is no record that can be read")
    expect(() => ofProject && checkHasTask(ofProject)).toThrow("1-000003-dd is a retire of demo, which belongs to no")
  })
})

describe("a record that is put back", () => {
  const renew = (...entries: OutboxEntry[]) => {
    const records = entries.map((entry) => record(entry))
    return renewRecords(records, RIGHT).map((one) => one.record)
  }

  test(promised("outbox.A1", "goes to its new task without the old one's specification and attempt"), () => {
    const before = { at: AT, by: "1-a", equalBefore: 4 }
    const [moved] = renewRecords([record(log("one"), before)], RIGHT)
    const attempt = { at: AT, by: "baton outbox", equalBefore: 0 }
    expect(moved?.record).toEqual({ version: 1, createdAt: AT, entry: log("one", RIGHT.id), attempt })
    const [redirected] = renew(handoff(section("ses_A", 1)))
    expect(redirected?.entry).toEqual(own(section("ses_A", 1), RIGHT.id))
  })

  test("stays as it is for its own task, with the attempt that was begun", () => {
    const before = { at: AT, by: "1-a", equalBefore: 4 }
    const own = record(log("one", RIGHT.id), before)
    expect(renewRecords([own], RIGHT)).toEqual([own])
    expect(renew(handoff(section("ses_A", 1), RIGHT.id))[0]?.entry).toHaveProperty("specification")
    expect(renew(retired)[0]).toMatchObject({ entry: retired })
  })

  test.each([
    ["a newer one of its session", [section("ses_A", 2, "2026-01-01T11:00:00.000Z")], "log"],
    ["an older one of its session", [section("ses_A", 0, "2026-01-01T09:00:00.000Z")], "handoff"],
    ["the same", [section("ses_A", 1)], "handoff"],
    ["a newer one of another session", [section("ses_B", 2, "2026-01-01T11:00:00.000Z")], "handoff"],
    ["none", [], "handoff"],
  ])(promised("outbox.A1", "a handoff does not replace a newer one: there is %s"), (_what, has, expected) => {
    const marked = (text: string) => `\n\n<!-- baton:handoff 000000000000, x -->\n${text}\n<!-- /baton:handoff -->`
    const target = { ...RIGHT, description: `Spec.${has.map(marked).join("")}` }
    const [one] = renewRecords([record(handoff(section("ses_A", 1)))], target)
    expect(one?.record.entry.kind).toBe(expected)
    if (one?.record.entry.kind === "log") expect(one.record.entry.message).toContain(section("ses_A", 1))
  })
})
