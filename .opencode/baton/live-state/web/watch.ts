import { readdir, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { describeError, isNotFound } from "../../host/log.ts"
import { type FoundState, isAgentAlive, type ReportUnreadable, readState } from "../observe/state-files.ts"
import type { TaskNews, TaskReading } from "../observe/view.ts"
import { STATEFILE_ENDING } from "../statefile.ts"

export type SeenStates = {
  readonly folder: string
  /** Statefiles that changed since the last look, and those whose process has ended. */
  readonly changed: readonly FoundState[]
  readonly removed: readonly string[]
}

type StatefileWatch = { close(): void }

/** A single change is seen this soon. */
const POLL_MS = 100
/** Minimum time between looks during quick changes; the factor keeps the processor mostly free. */
const LOOK_INTERVAL_MS = 250
const REST_FACTOR = 25
/** Interval of looks without a change of the folder: for ended processes and files written in place. */
const SWEEP_MS = 2_000
/** Coarser than any file system's clock. */
const UNSETTLED_MS = 50

type Known = { readonly stamp: string; found: FoundState | undefined }

const stampOf = async (path: string): Promise<string | undefined> => {
  try {
    // ctime also covers a change of permissions, after which a file may become readable.
    const { ino, size, ctimeMs } = await stat(path)
    return `${ino} ${size} ${ctimeMs}`
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

const namesIn = async (folder: string): Promise<string[]> => {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(STATEFILE_ENDING))
  } catch (error) {
    if (isNotFound(error)) return []
    throw error
  }
}

/** Reads the statefiles of a folder that changed since the last look. */
const createLook = (folder: string, report: ReportUnreadable) => {
  const known = new Map<string, Known>()
  const lookAt = async (name: string): Promise<FoundState | undefined> => {
    const path = join(folder, name)
    const stamp = await stampOf(path)
    if (stamp === undefined) return undefined
    const before = known.get(name)
    if (before?.stamp === stamp) {
      const { found } = before
      if (!found?.alive || (await isAgentAlive(folder, name, found.state.opencode_pid))) return undefined
      before.found = { ...found, alive: false }
      return before.found
    }
    const found = await readState(folder, name, report)
    known.set(name, { stamp, found })
    return found
  }
  return async (): Promise<SeenStates> => {
    const names = await namesIn(folder)
    const changed = await Promise.all(names.map(lookAt))
    const removed = [...known.keys()].filter((name) => !names.includes(name))
    for (const name of removed) known.delete(name)
    return { folder, changed: changed.filter((found) => found !== undefined), removed }
  }
}

/**
 * Returns the time of a folder's last change: each rename into it and each removal changes it. Undefined for a change so recent
 * that another one may leave the same time.
 */
const folderStamp = async (folder: string): Promise<number | "absent" | undefined> => {
  try {
    const { mtimeMs } = await stat(folder)
    return Date.now() - mtimeMs < UNSETTLED_MS ? undefined : mtimeMs
  } catch (error) {
    if (isNotFound(error)) return "absent"
    throw error
  }
}

/**
 * Watches folders of statefiles by one `stat` per folder every 100 ms: writers replace every file by a rename. The system's
 * watchers cost more under load (docs/opencode-notes.md).
 *
 * @param onSeen called after each look that found anything
 * @param report receives read errors, at each look; reading is tried again, and the rest is still seen
 */
export const watchStatefiles = (
  folders: readonly string[],
  onSeen: (seen: readonly SeenStates[]) => void,
  report: ReportUnreadable,
): StatefileWatch => {
  const projects = folders.map((folder) => {
    const state: { stamp: Awaited<ReturnType<typeof folderStamp>>; sweptAt: number } = {
      stamp: undefined,
      sweptAt: Number.NEGATIVE_INFINITY,
    }
    return { folder, look: createLook(folder, report), state }
  })
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const lookAgain = async ({ folder, look, state }: (typeof projects)[number]): Promise<SeenStates | undefined> => {
    try {
      const stamp = await folderStamp(folder)
      const isSwept = performance.now() - state.sweptAt < SWEEP_MS
      if (isSwept && stamp !== undefined && stamp === state.stamp) return undefined
      state.stamp = stamp
      state.sweptAt = performance.now()
      return await look()
    } catch (error) {
      report(`${folder}: ${describeError(error)}`)
      return undefined
    }
  }

  const wake = async (): Promise<void> => {
    const startedAt = performance.now()
    const seen = (await Promise.all(projects.map(lookAgain))).filter((each) => each !== undefined)
    const isNew = seen.some(({ changed, removed }) => changed.length + removed.length > 0)
    if (isNew && !isClosed) onSeen(seen)
    const tookMs = performance.now() - startedAt
    const restMs = isNew ? Math.max(LOOK_INTERVAL_MS, tookMs * REST_FACTOR) - tookMs : POLL_MS
    if (!isClosed) timer = setTimeout(() => void wake(), restMs)
  }
  void wake()

  return {
    close: () => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

export type LedgerWatch = {
  /** Sets the watched tasks. Each is read once, and again when the ledger has changed. */
  want(taskIDs: Iterable<string>): void
  newsOf(taskID: string): TaskNews | undefined
  close(): void
}

type KnownTask = { readonly news: TaskNews | undefined; readonly version: string; readonly readAt: number }

/**
 * Reading a task starts a program. After each task's first reading the watch pauses fifty times as long as a reading took: it
 * uses a fiftieth of one processor, however many tasks there are and however often they change.
 */
const LEDGER_REST_FACTOR = 50
const LOOK_MS = 1_000
const FAILED = "failed"

/** The version of the database and its write-ahead log, as far as `stat` shows it. */
export const ledgerVersion = async (env: Readonly<Record<string, string | undefined>>): Promise<string> => {
  const path = env.PROG_DB || join(env.HOME || homedir(), ".prog", "prog.db")
  const stamps = await Promise.all(
    [path, `${path}-wal`].map((file) =>
      stat(file).then(
        // An empty log appears and disappears with each reader.
        ({ size, mtimeMs }) => (size === 0 ? "" : `${size} ${mtimeMs}`),
        () => "",
      ),
    ),
  )
  return stamps.join(" ")
}

/** Returns the task to read next: one never read, else the one with the oldest news that may be outdated. Pure. */
export const nextTask = (
  wanted: Iterable<string>,
  known: ReadonlyMap<string, KnownTask>,
  version: string,
): string | undefined => {
  let next: string | undefined
  let oldest = Number.POSITIVE_INFINITY
  for (const id of wanted) {
    const task = known.get(id)
    if (!task) return id
    if (task.version === version || task.readAt >= oldest) continue
    next = id
    oldest = task.readAt
  }
  return next
}

/** Keeps the ledger's news of the wanted tasks. @param onNews called after each reading that brought something new */
export const watchLedger = ({
  read,
  readVersion,
  onNews,
}: {
  read: (taskID: string) => Promise<TaskReading>
  readVersion: () => Promise<string>
  onNews: (taskID: string) => void
}): LedgerWatch => {
  const known = new Map<string, KnownTask>()
  let wanted: ReadonlySet<string> = new Set()
  let timer: NodeJS.Timeout | undefined
  let isReading = false
  let isClosed = false

  const readNext = async (): Promise<number> => {
    const before = await readVersion()
    const id = nextTask(wanted, known, before)
    if (id === undefined) return LOOK_MS
    const last = known.get(id)
    const startedAt = performance.now()
    const reading = await read(id)
    const tookMs = performance.now() - startedAt
    const news = reading.kind === "read" ? reading.news : last?.news
    // No ledger has this version, so a failed reading is tried again.
    const version = reading.kind === "read" ? before : FAILED
    known.set(id, { news, version, readAt: startedAt })
    if (!isClosed && JSON.stringify(news) !== JSON.stringify(last?.news)) onNews(id)
    return last ? tookMs * LEDGER_REST_FACTOR : 0
  }

  const tick = async (): Promise<void> => {
    isReading = true
    const restMs = await readNext()
    isReading = false
    if (!isClosed) timer = setTimeout(() => void tick(), restMs)
  }

  return {
    newsOf: (taskID) => known.get(taskID)?.news,
    want: (taskIDs) => {
      wanted = new Set(taskIDs)
      for (const id of known.keys()) if (!wanted.has(id)) known.delete(id)
      if (isReading || isClosed || [...wanted].every((id) => known.has(id))) return
      clearTimeout(timer)
      void tick()
    },
    close: () => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
