import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect } from "vitest"
import { type AuditEntry, auditEntry } from "../../../.opencode/baton/pass-over/audit/log.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { passRecord } from "../../support/opencode/pass-over-values.ts"

const entry = (change: Partial<AuditEntry>): AuditEntry => ({
  ...auditEntry(passRecord(), { at: "2026-01-01T10:20:30.000Z", event: "sent" }),
  ...change,
})

const passA = { pass_over_id: "pass_20260101102030000_aaaa" }
const passB = {
  ...{ pass_over_id: "pass_20260201000000000_bbbb", originating_agent: "plan", subagent: "scout" },
  ...{ root_session_id: "ses_other", originating_session_id: "ses_other", started_at: "2026-02-01T00:00:00.000Z" },
}
const ENTRIES: readonly AuditEntry[] = [
  entry(passA),
  entry({ ...passA, at: "2026-01-01T10:20:31.000Z", event: "started", state: "waiting_for_return" }),
  entry({
    ...{ ...passA, at: "2026-01-01T10:20:40.000Z", event: "applied", state: "applied", applied: true },
    ...{ status: "completed", completed_at: "2026-01-01T10:20:34.500Z", child_session_id: "ses_child" },
    ...{ artifacts_count: 2, attempts: 2 },
  }),
  entry({
    ...{ ...passB, at: "2026-02-01T00:00:01.000Z", event: "refused", state: "refused" },
    error: { code: "E003", message: "scout is at work" },
  }),
]
const LINE_A =
  "2026-01-01 10:20  pass_20260101102030000_aaaa  build → audit  applied  2 artifacts  2 attempts  4.5 s  code_review\n"
const LINE_B =
  "2026-02-01 00:00  pass_20260201000000000_bbbb  plan → scout  refused  code_review  E003: scout is at work\n"

const createProject = shareBundle()

describe.each(BOTH_ENDS)("baton passes on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const { project, baton, options } = createProject(binary)
    const passes = (...args: string[]) => baton("passes", ...args)
    const write = (text: string, name = "2026-01/session-ses_root-passes.jsonl") => {
      const path = join(project, ".opencode", "pass-over-logs", name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text, { flag: "a" })
    }
    for (const each of ENTRIES)
      write(`${JSON.stringify(each)}\n`, `${each.at.slice(0, 7)}/session-${each.root_session_id}-passes.jsonl`)
    /** A reader that takes no output until the list is complete and waiting. */
    const readSlowly = () => {
      const command = ".opencode/baton/bin/baton passes --json | { sleep 2; cat; }"
      return spawnSync("sh", ["-c", command], options).stdout
    }
    return { passes, readSlowly, write }
  }

  once(
    promised("pass-over.E3", "baton passes lists each pass once, as it is now, and chooses by session, agent and time"),
    () => {
      const { passes } = setUp()
      const listed = passes()
      expect([listed.stdout, listed.stderr, listed.status]).toEqual([LINE_A + LINE_B, "", 0])
      for (const session of ["ses_root", "ses_child"]) expect(passes("--session", session).stdout).toBe(LINE_A)
      for (const agent of ["plan", "scout"]) expect(passes("--agent", agent).stdout).toBe(LINE_B)
      expect(passes("--since", "2026-01-15").stdout).toBe(LINE_B)
      expect(passes("--since", "2026-01-01T10:20:35Z", "--agent", "audit").stdout).toBe(LINE_A)
      expect(passes("--since", "2026-03-01").stdout).toBe("No passes\n")
    },
  )

  once(promised("pass-over.E3", "baton passes gives the same as data, with everything that happened to a pass"), () => {
    const { passes } = setUp()
    const [first, second] = JSON.parse(passes("--json").stdout)
    const { pass_over_id: id, task_id: taskID, chain_depth: chainDepth, at, reason } = ENTRIES[2] ?? {}
    const history = [{ event: "sent" }, { event: "started" }, { event: "applied" }]
    expect(first).toMatchObject({ id, taskID, chainDepth, at, reason, history })
    const refusal = { event: "refused", error: { code: "E003" } }
    expect(second).toMatchObject({ id: passB.pass_over_id, state: "refused", history: [refusal] })
  })

  once(promised("pass-over.E3", "baton passes names lines that it cannot read, and shows the rest"), () => {
    const { passes, write } = setUp()
    write('{"version":1,"at":"2026\n{"version":2}\n')
    write("not ours\n", "2026-01/notes.txt")
    const listed = passes()
    expect([listed.stdout, listed.status]).toEqual([LINE_A + LINE_B, 1])
    expect(listed.stderr).toMatch(/^passes: 2 lines of .*session-ses_root-passes\.jsonl could not be read\n$/)
  })

  once(promised("pass-over.E3", "baton passes gives all of a long list to a slow reader"), () => {
    const { readSlowly, write } = setUp()
    const many = Array.from({ length: 2_000 }, (_, at) => entry({ ...passA, pass_over_id: `pass_2026_${at}` }))
    write(many.map((each) => `${JSON.stringify(each)}\n`).join(""))
    expect(JSON.parse(readSlowly())).toHaveLength(2_002)
  })

  once(
    promised(["pass-over.A12", "pass-over.B3"], "baton passes tells of a pass that is not there, and exits with 1"),
    () => {
      const { passes } = setUp()
      for (const action of ["show", "diff", "apply", "reject", "restore"]) {
        const refused = passes(action, "pass_20260101102030000_none")
        expect([refused.status, refused.stdout]).toEqual([1, ""])
        expect(refused.stderr).toMatch(/^passes: .*pass_20260101102030000_none/)
      }
    },
  )
})
