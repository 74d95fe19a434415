import { basename, join } from "node:path"
import { taskOf } from "../agent-view.ts"
import type { FoundState, ReportUnreadable } from "../found-states.ts"
import { createTaskReader } from "../task-news.ts"
import { type AgentBoard, createAgentBoard } from "./agent-board.ts"
import { type LedgerWatch, ledgerVersion, watchLedger } from "./ledger-watch.ts"
import { type SeenStates, watchStatefiles } from "./statefile-watch.ts"

export type AgentWatch = { readonly board: AgentBoard; close(): void }

type Project = {
  readonly name: string
  readonly states: Map<string, FoundState>
  readonly ledger: LedgerWatch
}

/**
 * Watches the agents of projects: their statefiles and what the ledger says of their tasks.
 *
 * @param roots absolute paths of the projects
 * @param onChange after each change of the board
 * @param report takes what could not be read, at each look; it is tried again
 */
export const watchAgents = (
  roots: readonly string[],
  { onChange, report }: { onChange: () => void; report: ReportUnreadable },
): AgentWatch => {
  const board = createAgentBoard()

  const keyOf = (folder: string, file: string): string => `${folders.indexOf(folder)}/${file}`
  const see = (folder: string, { name, ledger }: Project, found: FoundState): void => {
    const task = taskOf(found)
    board.see(keyOf(folder, found.file), name, found, task ? ledger.newsOf(task.id) : undefined, Date.now())
  }

  const takeNews = (folder: string, taskID: string): void => {
    const project = projects.get(folder)
    if (!project) return
    const before = board.sequence()
    for (const found of project.states.values()) if (taskOf(found)?.id === taskID) see(folder, project, found)
    if (board.sequence() !== before) onChange()
  }

  const take = ({ folder, changed, removed }: SeenStates): void => {
    const project = projects.get(folder)
    if (!project) return
    const { states, ledger } = project
    for (const file of removed) {
      states.delete(file)
      board.drop(keyOf(folder, file))
    }
    for (const found of changed) {
      states.set(found.file, found)
      see(folder, project, found)
    }
    ledger.want([...states.values()].flatMap((found) => taskOf(found)?.id ?? []))
  }

  const projects = new Map<string, Project>(
    roots.map((root) => {
      const folder = join(root, ".opencode", "state", "live")
      const ledger = watchLedger({
        read: createTaskReader(root),
        readVersion: () => ledgerVersion(process.env),
        onNews: (taskID) => takeNews(folder, taskID),
      })
      return [folder, { name: basename(root), states: new Map(), ledger }]
    }),
  )
  const folders = [...projects.keys()]
  const watching = watchStatefiles(
    folders,
    (seen) => {
      const before = board.sequence()
      for (const each of seen) take(each)
      if (board.sequence() !== before) onChange()
    },
    report,
  )
  return {
    board,
    close: () => {
      watching.close()
      for (const { ledger } of projects.values()) ledger.close()
    },
  }
}
