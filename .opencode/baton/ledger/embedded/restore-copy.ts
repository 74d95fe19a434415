import { chmodSync, constants, copyFileSync, renameSync, rmSync, statSync } from "node:fs"
import { listCopies } from "../copies.ts"
import { LedgerError } from "./store.ts"

/** The changes that are not in the database's file yet belong to it. */
const FILES = ["", "-wal", "-shm"]

type Restored = {
  readonly tasks: number /** The place of the database that was there. */
  readonly aside: string | undefined
}

/**
 * Puts a copy in the place of the database, which is moved aside.
 *
 * @param countTasks throws LedgerError for a database that is damaged
 * @throws LedgerError when there is no such copy, it is damaged, or a file cannot be written; the database is then as it was
 */
export const restoreCopy = (
  database: string,
  day: string,
  { at, countTasks }: { at: Date; countTasks: (path: string) => number },
): Restored => {
  const copy = listCopies(database).find((one) => one.day === day)
  if (copy === undefined)
    throw new LedgerError(`there is no copy of ${day} beside ${database}; 'prog copies' lists them`)
  const temporary = `${database}.restored-${process.pid}.tmp`
  const aside = `${database}.before-${at.toISOString().replaceAll(/[-:.]/g, "")}`
  try {
    const tasks = countTasks(copy.path)
    copyFileSync(copy.path, temporary, constants.COPYFILE_EXCL)
    const before = statSync(database, { throwIfNoEntry: false })
    chmodSync(temporary, (before?.mode ?? 0o600) & 0o777)
    for (const file of FILES)
      if (statSync(`${database}${file}`, { throwIfNoEntry: false })) renameSync(`${database}${file}`, `${aside}${file}`)
    renameSync(temporary, database)
    return { tasks, aside: before && aside }
  } catch (error) {
    rmSync(temporary, { force: true })
    if (error instanceof LedgerError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new LedgerError(`failed to restore ${copy.path}: ${reason}`, 0, error)
  }
}
