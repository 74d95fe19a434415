import { stat } from "node:fs/promises"
import { join } from "node:path"
import { listFolder, readOwnText } from "../../host/untrusted.ts"
import { AUDIT_FILE, AUDIT_FOLDER, type AuditEntry, isAuditEntry, listMonths } from "./log.ts"

export type AuditFilter = {
  /** The root session, the originator's, or the child's. */
  readonly session?: string | undefined
  /** Originator or subagent. */
  readonly agent?: string | undefined
  /** Epoch ms; earlier events are left out. */
  readonly since?: number | undefined
}

/** A pass in the audit: its newest line, and its events, oldest first. */
export type AuditedPass = AuditEntry & {
  readonly history: readonly (Pick<AuditEntry, "at" | "event" | "state" | "error"> & {
    readonly decidedBy: AuditEntry["decided_by"]
  })[]
}

type AuditRead = {
  /** In the order of their start. */
  readonly passes: readonly AuditedPass[]
  /** Lines of an unknown form or cut off by a crash. */
  readonly unreadable: readonly { readonly path: string; readonly lines: number }[]
}

/** Finds the files that may hold events since a time, oldest month first. */
const findFiles = async (folder: string, since: number): Promise<string[]> => {
  const firstMonth = Number.isFinite(since) ? new Date(since).toISOString().slice(0, 7) : ""
  const months = listMonths(folder).filter((month) => month >= firstMonth)
  const paths: string[] = []
  for (const month of months) {
    for (const name of listFolder(join(folder, month))) {
      const path = join(folder, month, name)
      if (AUDIT_FILE.test(name) && (await stat(path)).mtimeMs >= since) paths.push(path)
    }
  }
  return paths
}

const isWanted = (pass: AuditEntry, { session, agent }: AuditFilter): boolean =>
  (session === undefined ||
    [pass.root_session_id, pass.originating_session_id, pass.child_session_id].includes(session)) &&
  (agent === undefined || [pass.originating_agent, pass.subagent].includes(agent))

type Found = { newest: AuditEntry; readonly history: AuditedPass["history"][number][] }

/**
 * Reads the audit of a project.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws the file system's own error
 */
export const queryAudit = async (projectRoot: string, filter: AuditFilter = {}): Promise<AuditRead> => {
  const since = filter.since ?? Number.NEGATIVE_INFINITY
  const earliest = Number.isFinite(since) ? new Date(since).toISOString() : ""
  const found = new Map<string, Found>()
  const unreadable: { path: string; lines: number }[] = []

  const parseLine = (line: string): AuditEntry | undefined => {
    try {
      const value: unknown = JSON.parse(line)
      return isAuditEntry(value) ? value : undefined
    } catch {
      return undefined
    }
  }
  const take = (entry: AuditEntry): void => {
    if (entry.at < earliest) return
    const { at, event, state, decided_by, error } = entry
    const known = found.get(entry.pass_over_id)
    if (known) known.newest = entry
    const pass = known ?? { newest: entry, history: [] }
    pass.history.push({ at, event, state, decidedBy: decided_by, error })
    if (!known) found.set(entry.pass_over_id, pass)
  }

  for (const path of await findFiles(join(projectRoot, AUDIT_FOLDER), since)) {
    let lines = 0
    for (const line of (await readOwnText(path)).split("\n")) {
      if (line === "") continue
      const entry = parseLine(line)
      if (entry) take(entry)
      else lines++
    }
    if (lines > 0) unreadable.push({ path, lines })
  }
  const passes = [...found.values()]
    .filter(({ newest }) => isWanted(newest, filter))
    .map(({ newest, history }) => ({ ...newest, history }))
    .sort((a, b) => (a.started_at === b.started_at ? 0 : a.started_at < b.started_at ? -1 : 1))
  return { passes, unreadable }
}
