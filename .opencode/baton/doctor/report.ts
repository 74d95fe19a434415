import { existsSync } from "node:fs"
import { join } from "node:path"
import { describeError } from "../host/log.ts"
import { broken, type Check, type Finding, type Observation, type Status, type Subject } from "./finding.ts"

/** The document that `--json` prints; its shape is described in docs/doctor.md. */
export type Report = {
  /** Version of this shape, raised when a field changes its meaning. */
  readonly version: 1
  readonly directory: string
  readonly findings: readonly Finding[]
  readonly summary: Readonly<Record<Status, number>>
}

const CHECK_DEADLINE_MS = 30_000

/** A check that fails or hangs is itself a finding: the other checks still tell what they see. */
const examine = async (check: Check, subject: Subject, deadlineMs: number): Promise<readonly Observation[]> => {
  const fix = "Report it with this message; the other findings stand."
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<readonly Observation[]>((resolve) => {
    timer = setTimeout(() => resolve([broken(`this check gave no answer within ${deadlineMs} ms`, fix)]), deadlineMs)
  })
  try {
    return await Promise.race([check.examine(subject), late])
  } catch (error) {
    return [broken(`this check failed: ${describeError(error)}`, fix)]
  } finally {
    clearTimeout(timer)
  }
}

/** Runs every check, side by side, and keeps their order. */
export const createReport = async (
  subject: Subject,
  checks: readonly Check[],
  deadlineMs = CHECK_DEADLINE_MS,
): Promise<Report> => {
  const hasBundle = existsSync(join(subject.root, ".opencode", "baton"))
  const perCheck = await Promise.all(
    checks
      .filter((check) => hasBundle || !check.needsBundle)
      .map(async (check) => {
        const observations = await examine(check, subject, deadlineMs)
        return observations.map((observation): Finding => ({ id: check.id, ...observation }))
      }),
  )
  const findings = perCheck.flat()
  const count = (status: Status) => findings.filter((finding) => finding.status === status).length
  const summary = { ok: count("ok"), warning: count("warning"), broken: count("broken") }
  return { version: 1, directory: subject.root, findings, summary }
}
