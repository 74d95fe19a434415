import { parseArgs } from "node:util"
import type { AuditFilter } from "./audit-query.ts"

export type PassesRequest =
  | {
      readonly kind: "list"
      readonly directory: string | undefined
      readonly filter: AuditFilter
      readonly json: boolean
    }
  | {
      readonly kind: "restore"
      readonly directory: string | undefined
      readonly passID: string
      readonly json: boolean
    }

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const AGO = /^(\d{1,6})([mhd])$/
const DATE = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?$/

/** @returns epoch ms. @throws with what was expected */
const parseSince = (text: string, now: number): number => {
  const [, count, unit] = AGO.exec(text) ?? []
  if (count !== undefined && (unit === "m" || unit === "h" || unit === "d")) return now - Number(count) * UNITS_MS[unit]
  const time = DATE.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) {
    throw new Error(`expected --since to be a date such as 2026-01-31, or 30m, 12h or 7d, received '${text}'`)
  }
  return time
}

/**
 * `[DIR] [--session ID] [--agent NAME] [--since WHEN] [--json]` or `restore ID [DIR] [--json]`.
 *
 * @param now epoch ms
 * @throws with what was expected and received
 */
export const parsePassesArguments = (args: readonly string[], now: number): PassesRequest => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      session: { type: "string" },
      agent: { type: "string" },
      since: { type: "string" },
    },
  })
  const { json, session, agent, since } = values
  const isRestore = positionals[0] === "restore"
  const [directory, ...more] = isRestore ? positionals.slice(2) : positionals
  if (more.length > 0) throw new Error(`expected one project folder, received ${more.length + 1}`)
  if (!isRestore) {
    const filter = { session, agent, since: since === undefined ? undefined : parseSince(since, now) }
    return { kind: "list", directory, filter, json }
  }
  const [, passID] = positionals
  if (passID === undefined) throw new Error("expected a pass to restore: baton passes restore ID")
  if (session !== undefined || agent !== undefined || since !== undefined) {
    throw new Error("expected no --session, --agent or --since with restore")
  }
  return { kind: "restore", directory, passID, json }
}
