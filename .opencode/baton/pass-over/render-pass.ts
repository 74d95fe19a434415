import type { AuditedPass } from "./audit-query.ts"

const REASON_CHARACTERS = 60

const duration = ({ started_at, completed_at }: AuditedPass): string[] => {
  const ms = completed_at === null ? Number.NaN : Date.parse(completed_at) - Date.parse(started_at)
  return Number.isNaN(ms) ? [] : [`${(ms / 1000).toFixed(1)} s`]
}

const outcome = ({ state, status, is_late }: AuditedPass): string =>
  [
    state.replaceAll("_", " "),
    ...(status === null || status === "completed" ? [] : [status]),
    ...(is_late ? ["late"] : []),
  ].join(", ")

/** One pass in one line: when, which, from whom to whom, what became of it, how long, what for, and what was wrong. */
export const renderPass = (pass: AuditedPass): string => {
  const { started_at, pass_over_id, originating_agent, subagent, artifacts_count, attempts, task_id, error } = pass
  const reason = pass.reason.length > REASON_CHARACTERS ? `${pass.reason.slice(0, REASON_CHARACTERS)}…` : pass.reason
  return [
    started_at.slice(0, 16).replace("T", " "),
    pass_over_id,
    `${originating_agent} → ${subagent}`,
    outcome(pass),
    ...(artifacts_count === 0 ? [] : [`${artifacts_count} artifact${artifacts_count === 1 ? "" : "s"}`]),
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...duration(pass),
    ...(task_id === null ? [] : [task_id]),
    reason,
    ...(error ? [`${error.code}: ${error.message}`] : []),
  ].join("  ")
}
