import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { shorten } from "../../host/text.ts"
import type { HistoryEvent } from "../observe/history.ts"
import type { ObservedAgent } from "../observe/observer.ts"
import type { AgentView } from "../observe/view.ts"

/** One agent as the page receives it, whole. */
export type PageAgent = AgentView & { readonly key: string; readonly history: readonly HistoryEvent[] }

export type PageMessage = {
  /** The observer's clock, ms since the epoch. */
  readonly now: number
  /** Keys of all agents; an agent that is not listed is gone. */
  readonly keys: readonly string[]
  /** Those that changed, or all. */
  readonly agents: readonly PageAgent[]
}

/** More pages than a user opens; each holds a connection. */
const MAX_PAGES = 32
const LOOK_MS = 250
/** A message without agents, as a sign of life; the page treats three missing ones as a lost connection. */
const BEAT_MS = 5_000
/** Longer than the network of a waking laptop needs; a dropped page reconnects by itself. */
const STALLED_MS = 30_000
const RETRY_MS = 1_000
/** A task's log may be long; older entries are in the ledger. */
const SHOWN_LOG_ENTRIES = 5
const MAX_LOG_CHARACTERS = 600

export const toPageAgent = ({ key, view, history }: ObservedAgent): PageAgent => {
  const log = view.news?.log.slice(-SHOWN_LOG_ENTRIES).map(({ message, createdAt }) => ({
    createdAt,
    message: shorten(message, MAX_LOG_CHARACTERS),
  }))
  return { ...view, ...(view.news && log ? { news: { ...view.news, log } } : {}), key, history }
}

type Page = { response: ServerResponse; socket: Socket; sentAt: number; blockedAt: number | undefined }

/**
 * Server-sent events. Nothing is queued for a page: one that did not read gets all agents once it does, so it costs one message.
 */
export const createLiveStream = ({
  look,
  now,
}: {
  look: () => Promise<readonly ObservedAgent[]>
  now: () => number
}) => {
  const pages = new Set<Page>()
  let shown = new Map<string, { readonly agent: ObservedAgent; readonly json: string }>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const render = (agents: Iterable<{ readonly json: string }>): string => {
    const keys = JSON.stringify([...shown.keys()])
    return `data: {"now":${now()},"keys":${keys},"agents":[${[...agents].map(({ json }) => json).join(",")}]}\n\n`
  }

  const send = (page: Page, text: string): void => {
    page.sentAt = now()
    if (page.response.write(text)) return
    page.blockedAt = now()
    page.response.once("drain", () => {
      page.blockedAt = undefined
      send(page, render(shown.values()))
    })
  }

  /** Looks at the agents once, and sends what changed. */
  const tick = async (): Promise<void> => {
    const before = shown
    const seen = await look()
    shown = new Map(
      seen.map((agent) => {
        const known = before.get(agent.key)
        return [agent.key, known?.agent === agent ? known : { agent, json: JSON.stringify(toPageAgent(agent)) }]
      }),
    )
    const changed = [...shown].filter(([key, each]) => before.get(key) !== each).map(([, each]) => each)
    const isNew = changed.length > 0 || before.size !== shown.size
    const news = isNew ? render(changed) : ""
    for (const page of pages) {
      if (page.blockedAt !== undefined) {
        if (now() - page.blockedAt > STALLED_MS) page.socket.destroy()
      } else if (isNew) send(page, news)
      else if (now() - page.sentAt >= BEAT_MS) send(page, render([]))
    }
  }

  const run = async (): Promise<void> => {
    await tick()
    if (!isClosed) timer = setTimeout(() => void run(), LOOK_MS)
  }
  void run()

  return {
    tick,
    /** Answers with the stream: first all agents, then each that changes. */
    add: (response: ServerResponse): void => {
      const { socket } = response
      if (pages.size >= MAX_PAGES) {
        response.writeHead(503, { "Retry-After": "5" }).end("too many pages are open\n")
        return
      }
      if (!socket) return
      // Small messages must not be delayed.
      socket.setNoDelay(true)
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" })
      const page: Page = { response, socket, sentAt: 0, blockedAt: undefined }
      pages.add(page)
      // The socket's end, since Bun's response does not report it.
      socket.once("close", () => pages.delete(page))
      send(page, `retry: ${RETRY_MS}\n${render(shown.values())}`)
    },
    close: (): void => {
      isClosed = true
      clearTimeout(timer)
      // A page that is told stops asking: any program may listen on the port next.
      for (const { response } of pages) response.end("event: end\ndata:\n\n")
    },
  }
}

export type LiveStream = ReturnType<typeof createLiveStream>
