import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeFileSync } from "node:fs"
import { readdir, rm, rmdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError, errorCode, isAbsent, type Log } from "../host/log.ts"
import type { AuditEntry } from "./audit-entry.ts"

export const AUDIT_FOLDER = ".opencode/pass-over-logs"
export const AUDIT_MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/
export const AUDIT_FILE = /^session-([A-Za-z0-9_-]{1,128})-passes\.jsonl$/

const DAY_MS = 86_400_000
/** What a pass is about is not everybody's to read. */
const PRIVATE = 0o600
const LINE_END = "\n".charCodeAt(0)

/** The audit of a project: one file a month and root session, only ever appended to. No call throws. */
export type AuditLog = {
  /** @returns whether the line is in the file; it survives the end of this process, however that comes */
  append(entry: AuditEntry): Promise<boolean>
  /** Removes files whose newest line is older than this. @param now epoch ms */
  prune(retentionDays: number, now: number): Promise<void>
}

/** A line in one write behind a whole line: a crash in the middle of an earlier one costs that one alone. */
const appendLine = (path: string, line: string): void => {
  const file = openSync(path, "a+", PRIVATE)
  try {
    const { size } = fstatSync(file)
    const last = Buffer.alloc(1)
    if (size > 0) readSync(file, last, 0, 1, size - 1)
    const isCutOff = size > 0 && last[0] !== LINE_END
    writeFileSync(file, `${isCutOff ? "\n" : ""}${line}\n`)
  } finally {
    closeSync(file)
  }
}

const monthFolders = async (folder: string): Promise<string[]> => {
  try {
    return (await readdir(folder)).filter((name) => AUDIT_MONTH.test(name)).sort()
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

/** @param projectRoot absolute path of the folder that holds `.opencode` */
export const createAuditLog = ({ projectRoot, log }: { projectRoot: string; log: Pick<Log, "warn"> }): AuditLog => {
  const folder = join(projectRoot, AUDIT_FOLDER)

  const ensure = (month: string): void => {
    mkdirSync(join(folder, month), { recursive: true })
    try {
      writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" })
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error
    }
  }

  /** Without waiting, so that lines stand in the order of the changes. */
  const write = (entry: AuditEntry): boolean => {
    const month = entry.at.slice(0, 7)
    const name = `session-${entry.root_session_id}-passes.jsonl`
    try {
      if (!AUDIT_MONTH.test(month) || !AUDIT_FILE.test(name)) throw new Error(`no name for a file: ${month}/${name}`)
      ensure(month)
      appendLine(join(folder, month, name), JSON.stringify(entry))
      return true
    } catch (error) {
      const { pass_over_id: passID, event } = entry
      log.warn("the audit could not be written", { passID, event, error: describeError(error) })
      return false
    }
  }

  const pruneMonth = async (month: string, before: number): Promise<void> => {
    const names = await readdir(join(folder, month))
    for (const name of names.filter((each) => AUDIT_FILE.test(each))) {
      const path = join(folder, month, name)
      if ((await stat(path)).mtimeMs < before) await rm(path, { force: true })
    }
    await rmdir(join(folder, month)).catch((error: unknown) => {
      if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errorCode(error) ?? "")) throw error
    })
  }

  return {
    append: async (entry) => write(entry),
    prune: async (retentionDays, now) => {
      try {
        for (const month of await monthFolders(folder)) await pruneMonth(month, now - retentionDays * DAY_MS)
      } catch (error) {
        log.warn("old audits could not be removed", { error: describeError(error) })
      }
    },
  }
}
