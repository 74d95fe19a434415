import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import {
  type AuditEntry,
  auditEntry,
  createAuditLog,
  isAuditEntry,
} from "../../../.opencode/baton/pass-over/audit/log.ts"
import { queryAudit } from "../../../.opencode/baton/pass-over/audit/query.ts"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { passRecord, passRequest, refusedPass, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const AT = "2026-01-01T10:20:31.000Z"
const DAY_MS = 86_400_000

const setUp = () => {
  const root = temporaryFolder()
  const log = createRecordedLog()
  const folder = join(root, ".opencode", "pass-over-logs")
  const audit = createAuditLog({ projectRoot: root, log })
  const file = (month = "2026-01") => join(folder, month, "session-ses_root-passes.jsonl")
  const lines = (month?: string): AuditEntry[] =>
    readFileSync(file(month), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  return { root, log, folder, audit, file, lines }
}

const entry = (change: Partial<AuditEntry> = {}): AuditEntry => ({
  ...auditEntry(passRecord(), { at: AT, event: "sent" }),
  ...change,
})

describe("a line of the audit", () => {
  test(promised("pass-over.E3", "a line of the audit is the document's entry, with what happened and when"), () => {
    const record = passRecord({
      state: { state: "applied", is_late: true, undecided: [], applied: ["a.ts"], rejected: [] },
      output: workOutput({ artifacts: [{ type: "message", text: "m" }] }),
      child_session_id: "ses_child",
      attempts: 2,
    })
    expect(auditEntry(record, { at: AT, event: "applied" })).toEqual({
      version: 1,
      at: AT,
      event: "applied",
      state: "applied",
      ...refusedPass(),
      child_session_id: "ses_child",
      task_id: null,
      started_at: "2026-01-01T10:20:30.000Z",
      completed_at: "2026-01-01T10:21:00.000Z",
      policy_name: "built-in",
      attempts: 2,
      artifacts_count: 1,
      status: "completed",
      is_late: true,
      applied: true,
      // The user is asked first, and has not answered yet.
      decided_by: null,
      error: null,
    })
    const released = { ...record, released_at: AT, released_by: "silence" } as const
    expect(auditEntry(released, { at: AT, event: "released" }).decided_by).toBe("silence")
    expect(auditEntry({ ...record, can_change: false }, { at: AT, event: "returned" }).decided_by).toBe("policy")
    expect(auditEntry(record, { at: AT, event: "withheld", by: "user" }).decided_by).toBe("user")
  })

  test(
    promised(
      "pass-over.E3",
      "a line of the audit is known by its version and by what a reader needs, and nothing else is one",
    ),
    () => {
      const whole = auditEntry(passRecord(), { at: AT, event: "returned" })
      expect(isAuditEntry({ ...whole, added: "by a newer version" })).toBe(true)
      for (const key of ["version", "at", "event", "state", "pass_over_id", "started_at", "subagent", "reason"])
        for (const value of [undefined, {}, 2]) expect(isAuditEntry({ ...whole, [key]: value }), key).toBe(false)
      for (const value of [null, 1, "{}", [], {}]) expect(isAuditEntry(value)).toBe(false)
    },
  )

  test(promised("pass-over.E3", "a line of the audit holds no secret, no line break and no novel"), () => {
    const reason = `use sk-${"a".repeat(30)}\nand password=hunter22 ${"x".repeat(1000)}`
    const { reason: written } = auditEntry(passRecord({ request: passRequest({ reason }) }), { at: AT, event: "sent" })
    expect(written).toMatch(/^use \[redacted\] and password=\[redacted\] x+…$/)
    expect(written.length).toBeLessThanOrEqual(501)
    // Only its begin is searched for secrets, so that a long one holds nothing up.
    const long = { request: passRequest({ reason: `${"ops_eyJ ".repeat(500)}password=hunter22` }) }
    expect(auditEntry(passRecord(long), { at: AT, event: "sent" }).reason).not.toContain("hunter22")
  })
})

describe("the audit", () => {
  test(
    promised("pass-over.E3", "the audit lies in a file a month and root session, private and ignored by git"),
    async () => {
      const { audit, folder, file, lines } = setUp()
      const next = entry({ at: "2026-02-01T00:00:00.000Z", event: "started", state: "waiting_for_return" })
      expect(await audit.append(entry())).toBe(true)
      expect(await audit.append(next)).toBe(true)
      expect([lines("2026-01"), lines("2026-02")]).toEqual([[entry()], [next]])
      expect(readdirSync(folder).sort()).toEqual([".gitignore", "2026-01", "2026-02"])
      expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*\n")
      expect(statSync(file()).mode & 0o777).toBe(0o600)
    },
  )

  test(
    promised("pass-over.E3", "the audit keeps the order of what is appended at once, and what stood there"),
    async () => {
      const { audit, lines } = setUp()
      await audit.append(entry())
      await Promise.all(Array.from({ length: 50 }, (_, attempts) => audit.append(entry({ attempts }))))
      expect(lines().map(({ attempts }) => attempts)).toEqual([0, ...Array.from({ length: 50 }, (_, at) => at)])
    },
  )

  test(promised("pass-over.E3", "the audit goes on behind a line that was cut off, which stays alone"), async () => {
    const { audit, file } = setUp()
    await audit.append(entry())
    const whole = readFileSync(file(), "utf8")
    writeFileSync(file(), `${whole}{"version":1,"at":"20`)
    await audit.append(entry({ attempts: 7 }))
    const [first, cut, last, end] = readFileSync(file(), "utf8").split("\n")
    expect([`${first}\n`, cut, end]).toEqual([whole, '{"version":1,"at":"20', ""])
    expect(JSON.parse(last ?? "")).toMatchObject({ attempts: 7 })
  })

  test(promised("pass-over.E3", "the audit costs no pass when it cannot be written, and says so"), async () => {
    const { audit, folder, log } = setUp()
    mkdirSync(join(folder, ".."), { recursive: true })
    writeFileSync(folder, "in the way")
    expect(await audit.append(entry())).toBe(false)
    expect(await audit.append(entry({ root_session_id: "../../x" }))).toBe(false)
    await audit.prune(1, Date.now())
    expect(log.lines.map(({ level }) => level)).toEqual(["warn", "warn"])
  })

  test.each(["the folder", "a month"])(
    promised(
      ["trust.A2", "pass-over.E3"],
      "the audit is not written, read or removed behind a link that came along as %s",
    ),
    async (kind) => {
      const { root, audit, folder, log } = setUp()
      const source = temporaryFolder()
      const target = kind === "the folder" ? join(source, "2026-01") : source
      const foreign = join(target, "session-ses_root-passes.jsonl")
      mkdirSync(target, { recursive: true })
      writeFileSync(foreign, `${JSON.stringify(entry())}\n`)
      utimesSync(foreign, 0, 0)
      mkdirSync(kind === "the folder" ? join(folder, "..") : folder, { recursive: true })
      symlinkSync(source, kind === "the folder" ? folder : join(folder, "2026-01"))
      const before = snapshotTree(source)
      expect(await audit.append(entry())).toBe(false)
      expect(log.lines).toMatchObject([{ level: "warn", extra: { error: expect.stringContaining("it is a link") } }])
      await audit.prune(1, Date.now())
      expect(await queryAudit(root)).toEqual({ passes: [], unreadable: [] })
      expect(snapshotTree(source)).toEqual(before)
    },
  )

  test(
    promised("pass-over.E3", "the audit is kept as long as the policy says, and nothing else is removed"),
    async () => {
      const { audit, folder, file, log } = setUp()
      await audit.append(entry({ at: "2025-11-01T00:00:00.000Z" }))
      await audit.append(entry())
      const now = Date.parse("2026-02-01T00:00:00.000Z")
      const touch = (path: string, days: number) => {
        const time = new Date(now - days * DAY_MS)
        utimesSync(path, time, time)
      }
      const notes = join(folder, "2026-01", "notes.txt")
      writeFileSync(notes, "mine")
      touch(file("2025-11"), 91)
      touch(file(), 89)
      touch(notes, 400)
      await audit.prune(90, now)
      expect(readdirSync(folder).sort()).toEqual([".gitignore", "2026-01"])
      expect(readdirSync(join(folder, "2026-01")).sort()).toEqual(["notes.txt", "session-ses_root-passes.jsonl"])
      touch(file(), 91)
      await audit.prune(90, now)
      expect(readdirSync(join(folder, "2026-01"))).toEqual(["notes.txt"])
      expect(log.lines).toEqual([])
    },
  )
})
