import { stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import type { TaskNews } from "../agent-view.ts"
import type { TaskReading } from "../task-news.ts"

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
