import { realpathSync } from "node:fs"
import { stat } from "node:fs/promises"
import { basename, join } from "node:path"
import { describeError, isNotFound } from "../../host/log.ts"
import { findForeign } from "../../host/state-mark.ts"
import { databasePath, stampOf } from "../../ledger/runner.ts"
import { liveFolder } from "../statefile.ts"
import { isOver, isWaiting } from "../web/page/words.js"
import { eventsBetween, type HistoryEvent, isStatus, MAX_EVENTS, type Sample, toSample } from "./history.ts"
import { type FoundState, isAgentAlive, listStatefiles, type ReportUnreadable, readState } from "./state-files.ts"
import { type AgentView, createTaskReader, type TaskReading, type TaskSummary, taskOf, toAgentView } from "./view.ts"

/** One agent; the same object as long as nothing is new. */
export type ObservedAgent = {
  /** Stable while the statefile exists. */
  readonly key: string
  /** Folder of its project. */
  readonly root: string
  readonly view: AgentView
  /** Oldest first, from this observer's first look on. */
  readonly history: readonly HistoryEvent[]
}

type KnownTask = { readonly news: TaskSummary | undefined; readonly version: string; readonly readAt: number }

/** Reading a task starts a program: readings that may change nothing take a fiftieth of one processor at most. */
const LEDGER_REST_FACTOR = 50
const LEDGER_LOOK_MS = 1_000
/** No ledger has this version, so a failed reading is tried again. */
const FAILED = "failed"

/** The stamp of the ledger's database; "" where it cannot be looked at. */
const ledgerVersion = (): string => {
  try {
    return stampOf(databasePath(process.env)) ?? ""
  } catch {
    return ""
  }
}

/** Returns the task to read next: one never read, else the one with the oldest summary that may be outdated. Pure. */
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

/** Keeps the ledger's summaries of the wanted tasks: each is read once, and again when the database has changed. */
const watchTasks = (read: (taskID: string) => Promise<TaskReading>) => {
  const known = new Map<string, KnownTask>()
  let wanted: ReadonlySet<string> = new Set()
  let timer: NodeJS.Timeout | undefined
  let reading: Promise<void> | undefined
  let isClosed = false

  const readNext = async (): Promise<void> => {
    const version = ledgerVersion()
    const id = nextTask(wanted, known, version)
    let restMs = LEDGER_LOOK_MS
    if (id !== undefined) {
      const last = known.get(id)
      const startedAt = performance.now()
      const answer = await read(id)
      const result = answer.kind === "read" ? { news: answer.news, version } : { news: last?.news, version: FAILED }
      known.set(id, { ...result, readAt: startedAt })
      restMs = last ? (performance.now() - startedAt) * LEDGER_REST_FACTOR : 0
    }
    if (isClosed) return
    if (restMs === 0) return readNext()
    timer = setTimeout(start, restMs)
  }
  const start = (): void => {
    clearTimeout(timer)
    reading ??= readNext().finally(() => {
      reading = undefined
    })
  }

  return {
    of: (taskID: string): TaskSummary | undefined => known.get(taskID)?.news,
    want: (taskIDs: Iterable<string>): void => {
      wanted = new Set(taskIDs)
      for (const id of known.keys()) if (!wanted.has(id)) known.delete(id)
      if (!isClosed && [...wanted].some((id) => !known.has(id))) start()
    },
    settled: async (): Promise<void> => {
      while (!isClosed && [...wanted].some((id) => !known.has(id))) await (reading ?? start())
    },
    close: (): void => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

type Entry = {
  readonly stamp: string
  found: FoundState | undefined
  sample?: Sample
  news?: TaskSummary | undefined
  agent?: ObservedAgent
}

/** Undefined if the file is gone. ctime also covers a change of permissions, after which a file may become readable. */
const statefileStamp = async (path: string): Promise<string | undefined> => {
  try {
    const { ino, size, ctimeMs } = await stat(path)
    return `${ino} ${size} ${ctimeMs}`
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** @param waitingOnly leaves all other agents out, and does not read their tasks */
const observeProject = (root: string, index: number, report: ReportUnreadable, { waitingOnly = false } = {}) => {
  const folder = liveFolder(root)
  const tasks = watchTasks(createTaskReader(root))
  let entries = new Map<string, Entry>()

  const names = (): string[] => {
    try {
      return listStatefiles(folder)
    } catch (error) {
      report(`${folder}: ${describeError(error)}`)
      return []
    }
  }

  const lookAt = async (name: string): Promise<[string, Entry] | undefined> => {
    const stamp = await statefileStamp(join(folder, name))
    if (stamp === undefined) return undefined
    const before = entries.get(name)
    if (before?.stamp !== stamp) return [name, { ...before, stamp, found: await readState(folder, name, report) }]
    const { found } = before
    if (found?.alive && !(await isAgentAlive(folder, name, found.state.opencode_pid)))
      before.found = { ...found, alive: false }
    return [name, before]
  }

  const readEntry = (name: string): Promise<[string, Entry] | undefined> =>
    lookAt(name).catch((error: unknown) => {
      report(`${join(folder, name)}: ${describeError(error)}`)
      return undefined
    })

  const toAgent = (name: string, entry: Entry, wasFound: FoundState | undefined): ObservedAgent | undefined => {
    const { found, agent, sample, news } = entry
    if (!found) return undefined
    const task = taskOf(found)
    const summary = task ? tasks.of(task.id) : undefined
    if (agent && found === wasFound && summary === news) return agent
    const view = toAgentView(basename(root), found, summary)
    const next = toSample(found, view)
    const earlier = agent?.history ?? []
    const history = [...earlier, ...eventsBetween(sample, next, earlier.at(-1)?.at)].slice(-MAX_EVENTS)
    // Known without extensions, too, once a change was seen.
    const seenSince = sample ? history.filter(isStatus).slice(1).at(-1)?.at : undefined
    const since = view.since ?? (seenSince === undefined ? undefined : new Date(seenSince).toISOString())
    entry.sample = next
    entry.news = summary
    entry.agent = { key: `${index}/${name}`, root, view: since === undefined ? view : { ...view, since }, history }
    return entry.agent
  }

  return {
    tasks,
    look: async (): Promise<ObservedAgent[]> => {
      const before = new Map([...entries].map(([name, { found }]) => [name, found]))
      const read = await Promise.all(names().map(readEntry))
      entries = new Map(read.filter((entry) => entry !== undefined))
      if (!waitingOnly)
        tasks.want([...entries.values()].flatMap(({ found }) => (found ? (taskOf(found)?.id ?? []) : [])))
      const agents = [...entries].flatMap(([name, entry]) => toAgent(name, entry, before.get(name)) ?? [])
      return waitingOnly ? agents.filter(({ view }) => isWaiting(view)) : agents
    },
  }
}

/**
 * Watches the agents of projects: their statefiles at each look, and the ledger's summaries of their tasks in between.
 *
 * @param roots absolute paths of the projects
 * @param report receives read errors; the rest is shown
 * @param others the account's projects: of those that are not among the roots, the agents that wait are shown
 */
export const createObserver = (
  roots: readonly string[],
  report: ReportUnreadable,
  others: () => readonly string[] = () => [],
) => {
  const projects = roots.map((root, index) => observeProject(root, index, report))
  const known = new Set(roots.map((root) => realpathSync(root)))
  const addOthers = (): void => {
    for (const root of others()) {
      if (known.has(root)) continue
      known.add(root)
      const foreign = findForeign(root)
      if (foreign === undefined) projects.push(observeProject(root, projects.length, report, { waitingOnly: true }))
      else report(`the state of ${root}: ${foreign}`)
    }
  }
  return {
    /** Reads the statefiles that changed since the last look. Never throws. */
    look: async (): Promise<readonly ObservedAgent[]> => {
      addOthers()
      const seen = (await Promise.all(projects.map(({ look }) => look()))).flat()
      // A session that goes on in another process has not crashed any more.
      const running = new Set(seen.flatMap(({ view }) => (isOver(view) ? [] : view.session)))
      return seen.filter(({ view }) => view.doing.kind !== "crashed" || !running.has(view.session))
    },
    /** Resolves when every task that was seen has been read from the ledger. */
    settled: async (): Promise<void> => void (await Promise.all(projects.map(({ tasks }) => tasks.settled()))),
    close: (): void => {
      for (const { tasks } of projects) tasks.close()
    },
  }
}
