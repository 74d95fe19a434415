import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type AuditEntry, type AuditEvent, auditEntry } from "../../.opencode/baton/pass-over/audit-entry.ts"
import { AUDIT_FOLDER } from "../../.opencode/baton/pass-over/audit-log.ts"
import { createPassID } from "../../.opencode/baton/pass-over/pass-record.ts"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { runProgram } from "../../test/support/opencode-run.ts"
import { passMetadata, passRecord, passRequest } from "../../test/support/pass-over-values.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { toFigure } from "./results.ts"

const QUERY_MS = 1000
const SESSIONS = 100
const PASSES_OF_SESSION = 250
const CHANGES = ["sent", "started", "returned", "applied"] as const satisfies readonly AuditEvent[]
const AGENTS = ["audit", "scout", "inspector", "validator", "skill/review"] as const
const MONTHS = ["2026-01", "2026-02", "2026-03", "2026-04"] as const

/** The changes of one pass, in the order in which they happen. */
const entriesOf = (session: number, pass: number): AuditEntry[] => {
  const month = MONTHS[session % MONTHS.length]
  const at = new Date(Date.parse(`${month}-01T00:00:00.000Z`) + pass * 60_000)
  const created = at.toISOString()
  const record = passRecord({
    request: passRequest({
      pass_over_id: createPassID(at, `s${String(session).padStart(5, "0")}`),
      subagent_id: AGENTS[pass % AGENTS.length] ?? "audit",
      reason: `Review the change ${pass} of session ${session}`,
      metadata: passMetadata({ root_session_id: `ses_${session}`, created_at: created }),
    }),
  })
  return CHANGES.map((event) => auditEntry(record, { at: created, event }))
}

/** An audit of 100,000 lines: 100 sessions in four months, 250 passes each, four changes a pass. */
const writeAudit = (projectRoot: string): void => {
  for (let session = 0; session < SESSIONS; session++) {
    const folder = join(projectRoot, AUDIT_FOLDER, MONTHS[session % MONTHS.length] ?? "")
    const passes = Array.from({ length: PASSES_OF_SESSION }, (_, pass) => entriesOf(session, pass))
    const lines = passes.flat().map((entry) => JSON.stringify(entry))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `session-ses_${session}-passes.jsonl`), `${lines.join("\n")}\n`)
  }
}

const QUERIES = [
  { id: "all", what: "`baton passes`, all of 25,000", args: [], passes: SESSIONS * PASSES_OF_SESSION },
  { id: "agent", what: "`baton passes --agent`, one of five", args: ["--agent", "scout"], passes: 5000 },
  { id: "session", what: "`baton passes --session`, one of 100", args: ["--session", "ses_7"], passes: 250 },
] as const

/** A query over 100,000 lines of the audit as a person makes it, from the launcher's start to its end. */
export const measureAudit: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 20
  const figures = []
  for (const binary of BOTH_ENDS) {
    say(`audit on ${binary.version}: ${rounds} rounds of ${QUERIES.length} queries`)
    const values = await withBenchProject(
      binary,
      () => ({ text: "" }),
      {},
      async ({ project }) => {
        writeAudit(project.directory)
        const launcher = join(project.directory, ".opencode", "baton", "bin", "baton")
        const query = async ({ args, passes }: (typeof QUERIES)[number]): Promise<number> => {
          const environment = { BATON_OPENCODE: binary.path }
          const run = await runProgram([launcher, "passes", ...args], { project, environment })
          const lines = run.stdout.split("\n").length - 1
          if (run.exitCode === 0 && lines === passes) return run.durationMs
          throw new Error(
            `expected ${passes} passes, received ${lines}, exit ${run.exitCode}: ${run.stderr.slice(-500)}`,
          )
        }
        return await interleave(Object.fromEntries(QUERIES.map((each) => [each.id, () => query(each)])), rounds)
      },
    )
    for (const { id, what } of QUERIES) {
      const about = { id: `audit.${id}`, what, version: binary.version, unit: "ms", below: QUERY_MS } as const
      figures.push(toFigure(about, values[id] ?? []))
    }
  }
  return { figures }
}
