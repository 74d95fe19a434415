/*
 * Names of the daily copies of a database that the embedded ledger made. They are beside it: `prog.db.copy-2026-01-31`. Loads nothing,
 * since each command of the embedded ledger that writes asks for one of them.
 */

/** "Bato", `PRAGMA application_id` of such a database. prog leaves it at 0. */
export const MADE_BY_BATON = 0x4261746f

export const KEPT_COPIES = 7

/** The local day: `2026-01-31`. */
export const dayOf = (at: Date): string =>
  [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-")

export const copyPath = (database: string, day: string): string => `${database}.copy-${day}`

/** Says why the last copy failed; a good one removes it. */
export const failurePath = (database: string): string => `${database}.copy-failed`
