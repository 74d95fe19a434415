import { readdir, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { describeError, isNotFound } from "../../host/log.ts"
import { type FoundState, isAgentAlive, type ReportUnreadable, readState } from "../observe/state-files.ts"
import type { TaskNews, TaskReading } from "../observe/view.ts"
import { STATEFILE_ENDING } from "../statefile.ts"

export type SeenStates = {
  /** The folder that was looked into. */
  readonly folder: string
  /** Statefiles that changed since the look before, and those whose process has ended. */
  readonly changed: readonly FoundState[]
  /** Names of the files that are no more. */
  readonly removed: readonly string[]
}

type StatefileWatch = { close(): void }

/** A change that comes alone is seen this soon. */
const POLL_MS = 100
/** Changes in quick succession are looked at no more often than this, nor than leaves the processor to others. */
const LOOK_INTERVAL_MS = 250
const REST_FACTOR = 25
/** Without any sign from the folder: for processes that have ended, and files that are written in place. */
const SWEEP_MS = 2_000
/** More than any file system's clock is coarse. */
const UNSETTLED_MS = 50

type Known = { readonly stamp: string; found: FoundState | undefined }

const stampOf = async (path: string): Promise<string | undefined> => {
  try {
    // The time of the last change of rights too: a file that could not be read may have become one that can.
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

/** Looks into one folder of statefiles and reads what has changed since it last did. */
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
 * When a folder itself last changed: each rename into it and each removal changes it. Undefined when that is so lately that
 * another change may leave the same time.
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
 * Watches folders of statefiles, by one `stat` of each folder a tenth of a second: the writers put every state there by a
 * rename. The system's watchers cost more under load (docs/opencode-notes.md).
 *
 * @param onSeen after each look that found anything
 * @param report takes what could not be read, at each look; it is tried again, and the rest is seen all the same
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
  /** The tasks that are looked at now; they are read when they have not been, and again when the ledger has changed. */
  want(taskIDs: Iterable<string>): void
  newsOf(taskID: string): TaskNews | undefined
  close(): void
}

type KnownTask = { readonly news: TaskNews | undefined; readonly version: string; readonly readAt: number }

/**
 * Reading a task starts a program. After the first reading of each task this watch rests fifty times as long as a reading
 * took, so that however many tasks there are and however often they change, it takes a fiftieth of one processor.
 */
const LEDGER_REST_FACTOR = 50
const LOOK_MS = 1_000
const FAILED = "failed"

/** The database and its write-ahead log as far as `stat` can tell them apart from what they were. */
export const ledgerVersion = async (env: Readonly<Record<string, string | undefined>>): Promise<string> => {
  const path = env.PROG_DB || join(env.HOME || homedir(), ".prog", "prog.db")
  const stamps = await Promise.all(
    [path, `${path}-wal`].map((file) =>
      stat(file).then(
        // An empty one comes and goes with each reader.
        ({ size, mtimeMs }) => (size === 0 ? "" : `${size} ${mtimeMs}`),
        () => "",
      ),
    ),
  )
  return stamps.join(" ")
}

/** The task to read next: one that never was, else the one whose news are the oldest and may be out of date. Pure. */
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

/** Keeps what the ledger says of the wanted tasks. @param onNews after each reading that brought something new */
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
    // No ledger has this version: what failed is tried again.
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
