import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { basename } from "node:path"
import type { FoundState, ReportUnreadable } from "../observe/state-files.ts"
import { createTaskReader, taskOf } from "../observe/view.ts"
import { liveFolder } from "../statefile.ts"
import { type AgentBoard, createAgentBoard } from "./board.ts"
import { type LedgerWatch, ledgerVersion, type SeenStates, watchLedger, watchStatefiles } from "./watch.ts"

export type EventStream = {
  /** Answers with the stream: first what the page does not have yet, then every change. */
  add(response: ServerResponse, lastEventID: string | undefined): void
  publish(): void
  close(): void
}

/** More pages than a user opens; each holds a connection. */
const MAX_PAGES = 32
/** Longer than the network of a waking laptop needs; a dropped page reconnects by itself. */
const STALLED_MS = 30_000
/** The page treats three missing beats as a lost connection. */
const BEAT_MS = 5_000
const RETRY_MS = 1_000

type Page = { response: ServerResponse; socket: Socket; sequence: number | undefined; blockedAt: number | undefined }

/**
 * Server-sent events. Nothing is queued per page: each is sent the difference to its own state when it can take it. So a page
 * that reads slowly or not at all costs one message.
 *
 * @param instance distinguishes this observer's sequence numbers from those of an earlier one
 */
export const createEventStream = ({
  board,
  instance,
  now,
}: {
  board: Pick<AgentBoard, "sequence" | "changesSince">
  instance: string
  now: () => number
}): EventStream => {
  const pages = new Set<Page>()
  let kept: { key: string; text: string } | undefined

  /** Cached, since all up-to-date pages ask for the same. */
  const changesText = (since: number | undefined): string => {
    const key = `${since} ${board.sequence()}`
    if (kept?.key !== key) {
      const { sequence, ...changes } = board.changesSince(since)
      const data = JSON.stringify({ now: now(), ...changes })
      kept = { key, text: `id: ${instance}-${sequence}\nevent: agents\ndata: ${data}\n\n` }
    }
    return kept.text
  }

  const send = (page: Page, text: string): void => {
    if (page.response.write(text)) return
    page.blockedAt = now()
    page.response.once("drain", () => {
      page.blockedAt = undefined
      update(page)
    })
  }

  const update = (page: Page): void => {
    if (page.blockedAt !== undefined || page.sequence === board.sequence()) return
    const text = changesText(page.sequence)
    page.sequence = board.sequence()
    send(page, text)
  }

  const beat = setInterval(() => {
    kept = undefined
    for (const page of pages) {
      if (page.blockedAt === undefined) send(page, `event: beat\ndata: ${now()}\n\n`)
      else if (now() - page.blockedAt > STALLED_MS) page.socket.destroy()
    }
  }, BEAT_MS)

  const sequenceOf = (lastEventID: string | undefined): number | undefined => {
    const [, of, sequence] = /^(\w+)-(\d+)$/.exec(lastEventID ?? "") ?? []
    return of === instance ? Number(sequence) : undefined
  }

  return {
    add: (response, lastEventID) => {
      if (pages.size >= MAX_PAGES) {
        response.writeHead(503, { "Retry-After": "5" }).end("too many pages are open\n")
        return
      }
      const { socket } = response
      if (!socket) return
      // Small messages must not be delayed.
      socket.setNoDelay(true)
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" })
      const page: Page = { response, socket, sequence: board.sequence(), blockedAt: undefined }
      pages.add(page)
      // The socket's end, since Bun's response does not report it.
      socket.once("close", () => pages.delete(page))
      response.write(`retry: ${RETRY_MS}\nevent: hello\ndata: ${JSON.stringify({ now: now(), instance })}\n\n`)
      // Also sent to a page that has missed nothing, to tell it that it is up to date.
      send(page, changesText(sequenceOf(lastEventID)))
    },
    publish: () => {
      for (const page of pages) update(page)
    },
    close: () => {
      clearInterval(beat)
      for (const { socket } of pages) socket.destroy()
      pages.clear()
    },
  }
}

type AgentWatch = { readonly board: AgentBoard; close(): void }

type Project = {
  readonly name: string
  readonly states: Map<string, FoundState>
  readonly ledger: LedgerWatch
}

/**
 * Watches the agents of projects: their statefiles and the ledger's news of their tasks.
 *
 * @param roots absolute paths of the projects
 * @param onChange called after each change of the board
 * @param report receives read errors, at each look; reading is tried again
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
      const folder = liveFolder(root)
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
