import { copyPath, dayOf, failurePath, MADE_BY_BATON } from "../copy-paths.ts"
import type { LedgerStore } from "./store.ts"

/** A copy that failed is not tried again before. */
const RETRY_MS = 60 * 60_000

/** For tests, and for a person who has other backups. */
const isOff = (): boolean => process.env.BATON_COPIES === "off"

const isOwn = (store: LedgerStore): boolean => {
  const [row] = store.all<{ application_id: number }>("PRAGMA application_id")
  return row?.application_id === MADE_BY_BATON
}

const isDue = async (database: string): Promise<boolean> => {
  if (await Bun.file(copyPath(database, dayOf(new Date()))).exists()) return false
  const failure = Bun.file(failurePath(database))
  return !(await failure.exists()) || Date.now() - failure.lastModified > RETRY_MS
}

/**
 * Starts the process that makes the day's copy, after a command that changed a database of Baton's own. It waits for nothing of it, and
 * never throws: the command is done.
 */
export const copyWhenDue = async (store: LedgerStore): Promise<void> => {
  try {
    if (isOff() || !isOwn(store)) return
    const { location } = store
    const database = location.startsWith("/") ? location : `${process.cwd()}/${location}`
    if (!(await isDue(database))) return
    const { aloneInBun } = await import("../../host/process.ts")
    const script = `${import.meta.dir}/make-copy.ts`
    const child = Bun.spawn([process.execPath, ...aloneInBun(), "run", "--no-install", script, database], {
      cwd: import.meta.dir,
      env: { ...process.env, BUN_BE_BUN: "1" },
      stdio: ["ignore", "ignore", "ignore"],
      detached: true,
    })
    child.unref()
  } catch {
    // Doctor says how old the newest copy is.
  }
}
