/**
 * `bun run make-copy.ts DATABASE`: makes today's copy of a ledger, in a process that no command waits for. A copy is whole under its
 * name, or not there; several processes may make it at once.
 */

import { Database } from "bun:sqlite"
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { listCopies, listUnfinished } from "../copies.ts"
import { copyPath, dayOf, failurePath, KEPT_COPIES } from "../copy-paths.ts"

const BUSY_TIMEOUT_MS = 5000
/** A copy takes seconds: an older one was cut off. */
const UNFINISHED_MS = 60 * 60_000

/**
 * SQLite copies one moment of the database, while others write. It takes a file that is empty, so the name is private from the start. A
 * connection that may only read would leave its files beside the database.
 */
const writeCopy = (database: string, path: string): void => {
  writeFileSync(path, "", { flag: "wx", mode: 0o600 })
  const source = new Database(database, { readwrite: true })
  try {
    source.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    source.run("VACUUM INTO ?", [path])
  } finally {
    source.close()
  }
  const file = openSync(path, "r+")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const removeOld = (database: string): void => {
  const old = listCopies(database).slice(KEPT_COPIES)
  for (const { path } of old) rmSync(path, { force: true })
  for (const path of listUnfinished(database)) {
    const begun = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    if (begun !== undefined && Date.now() - begun > UNFINISHED_MS) rmSync(path, { force: true })
  }
}

const makeCopy = (database: string): void => {
  const now = new Date()
  const path = copyPath(database, dayOf(now))
  if (existsSync(path)) return
  const temporary = `${path}.${crypto.randomUUID()}.tmp`
  try {
    writeCopy(database, temporary)
    renameSync(temporary, path)
    rmSync(failurePath(database), { force: true })
    removeOld(database)
  } catch (error) {
    rmSync(temporary, { force: true })
    const reason = error instanceof Error ? error.message : String(error)
    writeFileSync(failurePath(database), `${now.toISOString()}: ${reason}\n`, { mode: 0o600 })
  }
}

const [, , database] = process.argv
if (database !== undefined) makeCopy(database)
