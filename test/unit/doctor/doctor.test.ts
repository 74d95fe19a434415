import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseManifest, posixChecksum } from "../../../.opencode/baton/doctor/checks/files.ts"
import { checkImport, checkVersion } from "../../../.opencode/baton/doctor/checks/opencode.ts"
import { checkHeader, parseHeader } from "../../../.opencode/baton/doctor/checks/records.ts"
import {
  broken,
  type Check,
  type Context,
  createReport,
  ok,
  type Report,
  renderText,
  warning,
} from "../../../.opencode/baton/doctor/report.ts"
import { promised } from "../../requirements.ts"

const SUBJECT: Context = {
  root: "/nonexistent/project",
  home: "/nonexistent/home",
  environment: {},
  scratch: "/nonexistent/scratch",
  run: () => Promise.reject(new Error("no program runs in a unit test")),
}

describe("the report", () => {
  test(promised("install.E2", "turns a check that throws or hangs into a finding, and keeps the others"), async () => {
    const checks: Check[] = [
      { id: "throws", run: () => Promise.reject(new TypeError("no such thing")) },
      { id: "hangs", run: () => new Promise(() => {}) },
      { id: "works", run: async () => [ok("fine"), warning("hm", "do this")] },
    ]
    const { findings, summary } = await createReport(SUBJECT, checks, 20)
    expect(findings.map(({ id, status }) => `${id} ${status}`)).toEqual([
      "throws broken",
      "hangs broken",
      "works ok",
      "works warning",
    ])
    expect(findings[0]?.message).toContain("TypeError: no such thing")
    expect(findings[1]?.message).toContain("20 ms")
    expect(summary).toEqual({ ok: 1, warning: 1, broken: 2 })
  })
})

describe("rendering", () => {
  const report: Report = {
    version: 1,
    directory: "/a\u001b[31mb",
    findings: [
      { id: "long-id", ...ok("all is well") },
      { id: "x", ...broken("a\nb\u0007c", "mend\u009bit") },
    ],
    summary: { ok: 1, warning: 0, broken: 1 },
  }

  test(promised("install.E2", "aligns findings and passes no control character on to a terminal"), () => {
    expect(renderText(report, { color: false })).toBe(
      [
        "Baton in /a [31mb",
        "",
        "  ok       long-id  all is well",
        "  broken   x        a b c",
        "                    fix: mend it",
        "",
        "1 broken, 0 warnings, 1 ok",
        "",
      ].join("\n"),
    )
  })

  test(promised("install.E2", "colours the status alone, and only when asked"), () => {
    const text = renderText(report, { color: true })
    expect(text).toContain("\u001b[31mbroken \u001b[0m  x")
    expect(text.replace(/\p{Cc}\[\d+m/gu, "")).toBe(renderText(report, { color: false }))
  })
})

test.each([
  ["1.2.15", "ok"],
  ["1.18.33", "ok"],
  ["1.3.0-beta.1", "ok"],
  ["1.2.14", "broken"],
  ["1.1.99", "broken"],
  ["2.0.0", "broken"],
  ["0.0.0-dev-202601010000", "warning"],
  ["local", "warning"],
])(promised("install.E2", "OpenCode %s is %s"), (version, status) => {
  expect(checkVersion(version, "/bin/opencode").status).toBe(status)
})

test.each([
  ['{"exports":{"Thing":"function"}}', "ok"],
  ['{"exports":{"default":"function"}}', "ok"],
  ['{"exports":{}}', "broken"],
  ['{"exports":{"A":"function","B":"function"}}', "broken"],
  ['{"exports":{"A":"object"}}', "broken"],
  ['{"error":"Error: no"}', "broken"],
  ["", "broken"],
  ["not json", "broken"],
])(promised("install.E2", "a plugin whose import says %s is %s"), (line, status) => {
  expect(checkImport("thing.ts", line).status).toBe(status)
})

describe("the manifest", () => {
  test(promised("install.E2", "is summed as POSIX cksum does"), () => {
    const sums = ["", "mine\n", "123456789", "x".repeat(70_000)].map((text) => posixChecksum(Buffer.from(text)))
    expect(sums).toEqual([
      { crc: 4294967295, size: 0 },
      { crc: 2428462921, size: 5 },
      { crc: 930766865, size: 9 },
      { crc: 4215398528, size: 70_000 },
    ])
  })

  test(promised("install.E2", "gives its version and files, two sums where a run was interrupted"), () => {
    const { version, files } = parseManifest(
      "# What scripts/install put here. Baton 0.1.0\n1\t2\ta b.md\n3\t4\ta b.md\ndir\t-\tprompts\nbroken line\n",
    )
    expect(version).toBe("0.1.0")
    expect(Object.fromEntries(files)).toEqual({
      "a b.md": [
        { crc: 1, size: 2 },
        { crc: 3, size: 4 },
      ],
    })
  })

  test(promised("install.E2", "never throws on a damaged file"), () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => parseManifest(text).files.size >= 0))
  })
})

test(promised("install.E2", "a database whose log is not merged yet is not judged by its header"), () => {
  expect(parseHeader(Buffer.from("SQLite format 3"))).toEqual({ kind: "foreign" })
  const header = { kind: "sqlite", version: 0 } as const
  expect(checkHeader("prog.db", header, true)).toMatchObject({ status: "ok" })
  expect(checkHeader("prog.db", header, false)).toMatchObject({ status: "warning" })
  expect(checkHeader("prog.db", { ...header, version: 2 }, false)).toMatchObject({ status: "ok" })
})
