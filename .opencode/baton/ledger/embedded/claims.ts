import { hasEnded, readHost } from "../../host/process-identity.ts"
import { escapeCharacter } from "../../host/text.ts"
import { localMinute } from "./format.ts"
import { isClosed } from "./items.ts"
import { type Cell, type ClaimRow, type ItemRow, LedgerError, type LedgerStore } from "./store.ts"

/*
 * A claim says who works on a task. It holds until it is released, the task is closed or opened again, its lease is over, or,
 * seen from the same host, its process is gone.
 */

/** Longer than any lease, by more than clocks differ: the clock was set back since. */
const TOO_LONG_MS = 24 * 60 * 60_000
/** A person may say how long a claim by hand holds. */
export const LONGEST_BY_HAND_MS = 31 * TOO_LONG_MS

export const isUnstarted = ({ type, status }: ItemRow): boolean => type === "task" && status === "open"

/** A claim starts its task: one that is not started now was opened again since, perhaps by prog, which knows no claims. */
export const isClaimed = (claim: ClaimRow | undefined, item: ItemRow, nowMs: number): claim is ClaimRow => {
  if (claim === undefined || isClosed(item.status) || isUnstarted(item)) return false
  const leftMs = Date.parse(claim.lease_until) - nowMs
  const longestMs = claim.session_id === "" && claim.pid === 0 ? LONGEST_BY_HAND_MS + TOO_LONG_MS : TOO_LONG_MS
  // Not a number when it was released, ended with its task, or is damaged.
  if (!(leftMs > 0 && leftMs < longestMs)) return false
  return claim.pid === 0 || claim.host !== readHost() || !hasEnded(claim.pid, claim.process_start)
}

const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Writes line ends, control characters and changes of direction as `\u000a`: a claim is shown to agents within a sentence. */
export const escapeUnprintable = (text: string): string => text.replaceAll(UNPRINTABLE, escapeCharacter)

/** Held by a session of the same OpenCode, which runs this program with its own pid in BATON_PID. */
const isOfOwnProcess = ({ pid, host }: ClaimRow): boolean =>
  String(pid) === process.env.BATON_PID && host === readHost()

/** `ada (session ses_1 on host in /folder) since 2026-02-09 22:17`, or `your other session ses_1 since 2026-02-09 22:17` */
export const describeClaim = (claim: ClaimRow): string => {
  const { holder, session_id, host, directory, claimed_at } = claim
  const since = `since ${localMinute(claimed_at)}`
  if (isOfOwnProcess(claim)) return `your other session ${session_id} ${since}`
  const place = `on ${host.split(" ")[0]} in ${directory}`
  return `${holder} (${session_id === "" ? "" : `session ${session_id} `}${place}) ${since}`
}

export const ownName = (): string => {
  const { BATON_HOLDER, USER, LOGNAME } = process.env
  return BATON_HOLDER || USER || LOGNAME || "someone"
}

/** A claim in JSON: with `show --json`, and in the lists of `claims --json`. */
export const claimEntry = (claim: ClaimRow) => ({
  holder: claim.holder,
  session: claim.session_id,
  host: claim.host.split(" ")[0],
  directory: claim.directory,
  claimed_at: claim.claimed_at,
  lease_until: claim.lease_until,
  fence: claim.fence,
  /** Made by hand under the name that this program claims under. */
  own: claim.session_id === "" && claim.holder === ownName(),
  summary: describeClaim(claim),
})

export type ShownClaim = {
  readonly claim?: ReturnType<typeof claimEntry>
  /** The claim in words, or why it is not known. */
  readonly claimed?: string
}

/** Beside prog's own tables and without a foreign key, so that prog can go on deleting tasks. */
const TABLE = `
CREATE TABLE IF NOT EXISTS baton_claims (
	task_id TEXT PRIMARY KEY,
	holder TEXT NOT NULL,
	session_id TEXT NOT NULL,
	host TEXT NOT NULL,
	directory TEXT NOT NULL,
	pid INTEGER NOT NULL,
	process_start TEXT NOT NULL,
	claimed_at TEXT NOT NULL,
	lease_until TEXT NOT NULL,
	fence INTEGER NOT NULL
)`

/** None as long as there is no table for them. */
const selectClaims = (store: LedgerStore, rest: string, ...values: readonly Cell[]): ClaimRow[] => {
  const [table] = store.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'baton_claims'")
  return table === undefined ? [] : store.all(`SELECT * FROM baton_claims ${rest}`, ...values)
}

/** The latest claim first. */
export const readClaims = (store: LedgerStore): ClaimRow[] => selectClaims(store, "ORDER BY claimed_at DESC, task_id")

/** The claims of these sessions, which may have ended. */
export const readClaimsOf = (store: LedgerStore, sessions: readonly string[]): ClaimRow[] =>
  selectClaims(store, `WHERE session_id IN (${sessions.map(() => "?").join(", ")}) ORDER BY task_id`, ...sessions)

/** The newest claim on the task, which may have ended. */
export const findClaim = (store: LedgerStore, taskId: string): ClaimRow | undefined =>
  selectClaims(store, "WHERE task_id = ?", taskId)[0]

/** Makes the table; within a transaction that writes. */
export const ensureClaimTable = (store: LedgerStore): void => void store.run(TABLE)

export const putClaim = (store: LedgerStore, claim: ClaimRow): void => {
  ensureClaimTable(store)
  store.insert("baton_claims", claim, "OR REPLACE")
}

/** The claim that holds on a task. */
export const readCurrentClaim = (store: LedgerStore, item: ItemRow, nowMs: number): ClaimRow | undefined => {
  const claim = findClaim(store, item.id)
  return isClaimed(claim, item, nowMs) ? claim : undefined
}

/** The lease of a claim that ended with its task: its session may claim again when the task is opened again. */
export const ENDED_WITH_TASK = "closed"

/** Ends the claim on a task that is closed or opened, so that none comes back when it is started again. */
export const endClaimWithTask = (store: LedgerStore, taskID: string): void => {
  try {
    const claim = findClaim(store, taskID)
    if (claim !== undefined && claim.lease_until !== "") putClaim(store, { ...claim, lease_until: ENDED_WITH_TASK })
  } catch (error) {
    // A table of claims that cannot be read keeps no task from being closed.
    if (!(error instanceof LedgerError)) throw error
  }
}

/** The claim of a task that is shown. A table of claims that cannot be read hides no task. */
export const shownClaim = (store: LedgerStore, item: ItemRow, nowMs: number): ShownClaim => {
  try {
    const row = findClaim(store, item.id)
    if (!isClaimed(row, item, nowMs)) return {}
    const claim = claimEntry(row)
    return { claim, claimed: claim.summary }
  } catch (error) {
    return { claimed: `unknown (${error instanceof Error ? error.message : String(error)})` }
  }
}
