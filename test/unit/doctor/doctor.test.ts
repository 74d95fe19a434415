import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { checkImport, checkVersion } from "../../../.opencode/baton/doctor/checks/opencode.ts"
import { checkHeader, parseHeader } from "../../../.opencode/baton/doctor/checks/records.ts"
import type { Context } from "../../../.opencode/baton/doctor/context.ts"
import { parseManifest } from "../../../.opencode/baton/doctor/installed.ts"
import type { Check, Report } from "../../../.opencode/baton/doctor/report.ts"
import { broken, createReport, ok, renderText, warning } from "../../../.opencode/baton/doctor/report.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const SUBJECT: Context = {
  root: "/nonexistent/project",
  home: "/nonexistent/home",
  environment: {},
  scratch: "/nonexistent/scratch",
  run: () => Promise.reject(new Error("no program runs in a unit test")),
}

test(promised("install.E2", "a check that throws or hangs becomes a finding in the report"), async () => {
  const checks: Check[] = [
    { id: "throws", run: () => Promise.reject(new TypeError("no such thing")) },
    { id: "hangs", run: () => new Promise(() => {}) },
    { id: "works", run: async () => [ok("fine"), warning("hm", "do this")] },
  ]
  const { findings, summary } = await createReport(SUBJECT, checks, 20)
  const found = findings.map(({ id, status }) => `${id} ${status}`)
  expect(found).toEqual(["throws broken", "hangs broken", "works ok", "works warning"])
  expect(findings[0]?.message).toContain("TypeError: no such thing")
  expect(findings[1]?.message).toContain("20 ms")
  expect(summary).toEqual({ ok: 1, warning: 1, broken: 2 })
})

describe("rendering", () => {
  const FINE = { id: "long-id", ...ok("all is well") }
  const report: Report = {
    version: 1,
    directory: "/a\u001b[31mb",
    findings: [FINE, { id: "x", ...broken("a\nb\u0007c", "mend\u0085it") }],
    summary: { ok: 1, warning: 0, broken: 1 },
  }

  test(
    promised("install.E2", "the report aligns findings, passes no control character on, colours the status when asked"),
    () => {
      expect(renderText(report, { color: false })).toBe(
        [
          "Baton in /ab",
          "",
          "  ok       long-id  all is well",
          "  broken   x        a b c",
          "                    fix: mend it",
          "",
          "1 broken, 0 warnings, 1 ok",
          "",
        ].join("\n"),
      )
      const text = renderText(report, { color: true })
      expect(text).toContain("\u001b[31mbroken \u001b[0m  x")
      expect(text.replace(/\p{Cc}\[\d+m/gu, "")).toBe(renderText(report, { color: false }))
    },
  )
})

const VERSIONS = {
  ok: ["1.2.15", "1.18.33", "1.3.0-beta.1", "2.0.15", "opencode v2.0.15", "opencode v2.1.0"],
  broken: ["1.2.14", "1.1.99", "2.0.0", "opencode v2.0.14", "3.0.0"],
  warning: ["0.0.0-dev-202601010000", "local"],
}
test.each(Object.entries(VERSIONS))(promised("install.E2", "OpenCode is %s: %j"), (status, versions) => {
  for (const version of versions) expect(checkVersion(version, "/bin/opencode").status, version).toBe(status)
})

test.each(["1.2.14", "2.0.3", "3.0.0"])(
  promised("package.A7", "doctor says of %s which versions there are"),
  (version) => {
    expect(checkVersion(version, "/bin/opencode")).toMatchObject({
      fix: expect.stringContaining("1.2.15 to 1.18.33 and 2.0.15"),
    })
  },
)

test.each([
  ["1.18.33", "tested: 1.2.15 to 1.18.33 and 2.0.15"],
  ["2.0.15", "tested: 1.2.15 to 1.18.33 and 2.0.15"],
  ["1.19.0", "newer than 1.18.33, the newest that Baton was run on: if something fails, report it"],
  ["2.0.26", "newer than 2.0.15, the newest that Baton was run on: if something fails, report it"],
])(promised("package.A7", "doctor says of %s: %s"), (version, said) => {
  expect(checkVersion(version, "/bin/opencode")).toMatchObject({ status: "ok", message: expect.stringContaining(said) })
})

test(promised("v2.C0", "doctor says of OpenCode 2 what is not there yet"), () => {
  const { message } = checkVersion("opencode v2.0.15", "/bin/opencode")
  expect(message).toContain("not there yet on OpenCode 2: handoff, live state, passes")
})

const TWO = '{"exports":{"A":"function","B":"function"}}'
const IMPORTS = {
  ok: [
    '{"exports":{"Thing":"function"}}',
    '{"exports":{"default":"function"}}',
    '{"exports":{"Thing":"function","default":"object"}}',
  ],
  broken: [
    '{"exports":{"default":"object"}}',
    '{"exports":{}}',
    TWO,
    '{"exports":{"A":"object"}}',
    '{"error":"Error: no"}',
    "",
    "not json",
  ],
}
test.each(Object.entries(IMPORTS))(promised("install.E2", "a plugin is %s whose import says %j"), (status, lines) => {
  for (const line of lines) expect(checkImport("thing.ts", line).status, line).toBe(status)
})

describe("the manifest", () => {
  test(promised("install.E2", "the manifest gives version, own files and both sums, and never throws"), () => {
    const { version, files } = parseManifest(
      "# What scripts/install put here. Baton 0.1.0\n1a\t2\tprompts/a b.md\n3\t4\tprompts/a b.md\n5\t6\tprompts/../../b\n7\t8\t/etc/passwd\ndir\t-\tprompts\nbroken line\n",
    )
    expect(version).toBe("0.1.0")
    expect([...files.keys()]).toEqual(["prompts/a b.md"])
    expect(files.get("prompts/a b.md")).toEqual(["1a", "3"])
    forAll(100, [fc.string({ unit: "binary" })], (text) => void parseManifest(text))
  })
})

test(promised("install.E2", "a database whose log is not merged yet is not judged by its header"), () => {
  expect(parseHeader(Buffer.from("SQLite format 3"))).toEqual({ kind: "foreign" })
  const header = { kind: "sqlite", version: 0 } as const
  expect(checkHeader("prog.db", header, true)).toMatchObject({ status: "ok" })
  expect(checkHeader("prog.db", header, false)).toMatchObject({ status: "warning" })
  expect(checkHeader("prog.db", { ...header, version: 2 }, false)).toMatchObject({ status: "ok" })
})
