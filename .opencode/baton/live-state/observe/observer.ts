import { basename, join } from "node:path"
import { describeError } from "../../host/log.ts"
import { liveFolder } from "../statefile.ts"
import { type FoundState, listStates, type ReportUnreadable } from "./state-files.ts"
import { type AgentView, createTaskReader, type Doing, type TaskNews, taskOf, toAgentView } from "./view.ts"

/** Asking the ledger starts a program, so it is asked less often than the statefiles are read. */
const NEWS_MS = 5_000

/** Caches the ledger's news of tasks for some seconds. */
const createNews = (root: string) => {
  const read = createTaskReader(root)
  const known = new Map<string, { at: number; news: TaskNews | undefined }>()
  return async (taskID: string): Promise<TaskNews | undefined> => {
    const kept = known.get(taskID)
    if (kept && performance.now() - kept.at < NEWS_MS) return kept.news
    const reading = await read(taskID)
    const news = reading.kind === "read" ? reading.news : kept?.news
    known.set(taskID, { at: performance.now(), news })
    return news
  }
}

/** A state tells when a turn ended, not when one began; the observer remembers when it first saw it busy. */
const createBusySince = () => {
  const seen = new Map<string, { kind: Doing["kind"]; since: string }>()
  return (root: string, view: AgentView, { file, ts }: FoundState): AgentView => {
    const key = join(root, file)
    const before = seen.get(key)
    const { kind } = view.doing
    const since = before?.kind === kind ? before.since : before ? ts : (view.since ?? ts)
    seen.set(key, { kind, since })
    return kind === "busy" ? { ...view, since } : view
  }
}

/**
 * @param roots absolute paths of the projects
 * @param report receives read errors, at each look; the rest is shown
 * @returns a function that reads the current state of all their agents
 */
export const createObserver = (roots: readonly string[], report: ReportUnreadable) => {
  const projects = roots.map((root) => ({ root, name: basename(root), news: createNews(root) }))
  const withBusySince = createBusySince()
  const statesOf = async (root: string): Promise<FoundState[]> => {
    try {
      return await listStates(liveFolder(root), report)
    } catch (error) {
      report(`${root}: ${describeError(error)}`)
      return []
    }
  }
  return async (): Promise<AgentView[]> => {
    const views = await Promise.all(
      projects.map(async ({ root, name, news }) =>
        Promise.all(
          (await statesOf(root)).map(async (found) => {
            const task = taskOf(found)
            return withBusySince(root, toAgentView(name, found, task ? await news(task.id) : undefined), found)
          }),
        ),
      ),
    )
    return views.flat()
  }
}
