import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http"
import { join } from "node:path"
import { errorCode } from "../../host/log.ts"
import { createEventStream, type EventStream, watchAgents } from "./live.ts"

type Answer =
  | { readonly kind: "asset"; readonly name: string }
  | { readonly kind: "events"; readonly lastEventID?: string }
  | { readonly kind: "refused"; readonly status: 400 | 403 | 404 | 405 | 421; readonly reason: string }

type Asset = { readonly file: string; readonly type: string }

const TYPES = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
} as const

const asset = (name: string, ending: keyof typeof TYPES): [string, Asset] => {
  const file = `${name}.${ending}`
  return [`/${file}`, { file, type: TYPES[ending] }]
}

const SCRIPTS = ["agent-list", "agent-row", "element", "keyboard", "page", "stream", "timeline", "words"]
const STYLES = ["bar", "base", "density", "notices", "row-parts", "rows"]

/** All files that are served, by path. */
export const ASSETS: Readonly<Record<string, Asset>> = {
  "/": { file: "index.html", type: TYPES.html },
  ...Object.fromEntries([
    ...SCRIPTS.map((name) => asset(name, "js")),
    ...STYLES.map((name) => asset(name, "css")),
    asset("icon", "svg"),
  ]),
}

const EVENTS_PATH = "/events"
const MAX_EVENT_ID = 100

/**
 * Checks the Host header against DNS rebinding: a web page can have its own name resolve to 127.0.0.1 and read what answers
 * there. Only names that mean this machine pass.
 */
export const isOwnHost = (host: string | undefined, port: number): boolean =>
  ["127.0.0.1", "localhost"].some((name) => host?.toLowerCase() === `${name}:${port}` || (port === 80 && host === name))

const header = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value)

/** Decides the answer to a request. Pure; every answer that this server gives is decided here. */
export const answerTo = (
  request: {
    readonly method?: string | undefined
    readonly url?: string | undefined
    readonly headers: IncomingHttpHeaders
  },
  port: number,
): Answer => {
  const { method, url = "", headers } = request
  const refuse = (status: 400 | 403 | 404 | 405 | 421, reason: string): Answer => ({ kind: "refused", status, reason })
  if (!isOwnHost(headers.host, port)) return refuse(421, `expected the host 127.0.0.1:${port} or localhost:${port}`)
  // A browser tells what caused the request: another site may only link here. Other programs do not send the header.
  const site = header(headers["sec-fetch-site"]) ?? "none"
  const isLink = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  if (site !== "same-origin" && site !== "none" && !isLink) return refuse(403, "not for other sites")
  if (method !== "GET") return refuse(405, "expected GET: there is nothing here to change")
  const path = url.split("?", 1)[0] ?? ""
  if (path === EVENTS_PATH) {
    const lastEventID = header(headers["last-event-id"])
    if ((lastEventID?.length ?? 0) > MAX_EVENT_ID) return refuse(400, "that is no event of this server")
    return { kind: "events", ...(lastEventID === undefined ? {} : { lastEventID }) }
  }
  return Object.hasOwn(ASSETS, path) ? { kind: "asset", name: path } : refuse(404, "there is no such page")
}

/**
 * Only this server's own files, nothing inline, no markup from text (Trusted Types without a policy): an agent's text can only
 * ever be shown as text.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
}

type PageServer = {
  readonly port: number
  /** Ends every connection. Resolves when the port is free again. */
  close(): Promise<void>
}

const ADDRESS = "127.0.0.1"
/** A request is one line and some headers; a slower client is dropped. */
const REQUEST_DEADLINE_MS = 5_000
const MAX_HEADER_BYTES = 16_384
const MAX_CONNECTIONS = 100
const PAGE_FOLDER = join(import.meta.dirname, "page")

const loadAssets = () =>
  new Map(
    Object.entries(ASSETS).map(([path, { file, type }]) => [
      path,
      { type, content: readFileSync(join(PAGE_FOLDER, file)) },
    ]),
  )

const listen = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host: ADDRESS, port, exclusive: true }, () => {
      server.off("error", reject)
      const bound = server.address()
      resolve(typeof bound === "object" && bound ? bound.port : port)
    })
  })

/**
 * Serves the page and its stream of events on 127.0.0.1.
 *
 * @param port 0 for any free one
 * @throws the system's own error (EADDRINUSE, EACCES, …) when the port is not available
 */
const startPageServer = async ({
  port,
  events,
}: {
  port: number
  events: Pick<EventStream, "add">
}): Promise<PageServer> => {
  const assets = loadAssets()
  let boundPort = port

  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    // A client that disconnects is not an error.
    response.on("error", () => {})
    const answer = answerTo(request, boundPort)
    const asset = answer.kind === "asset" ? assets.get(answer.name) : undefined
    if (answer.kind === "events") events.add(response, answer.lastEventID)
    else if (asset) response.writeHead(200, { "Content-Type": asset.type }).end(asset.content)
    else if (answer.kind === "refused") {
      const allow = answer.status === 405 ? { Allow: "GET" } : {}
      // The body of a refused request is not read.
      response.writeHead(answer.status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close", ...allow })
      response.end(`${answer.reason}\n`)
    }
  }

  const server = createServer(
    { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: REQUEST_DEADLINE_MS, requestTimeout: REQUEST_DEADLINE_MS },
    respond,
  )
  server.maxConnections = MAX_CONNECTIONS
  boundPort = await listen(server, port)
  return {
    port: boundPort,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const describeListening = (error: unknown, port: number): string => {
  if (errorCode(error) === "EADDRINUSE")
    return `port ${port} is taken. Name another one with --port, or leave --port out for any that is free`
  if (errorCode(error) === "EACCES") return `port ${port} is not ours to take. Expected one from 1024 on`
  return `127.0.0.1:${port} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`
}

type ServedPage = { readonly url: string; close(): Promise<void> }

/**
 * Serves the page of the agents of some projects on 127.0.0.1.
 *
 * @param roots absolute paths of the projects
 * @param port 0 for any free one
 * @param say receives messages for the user
 * @throws Error in words for the user when the port is not available
 */
export const servePage = async ({
  roots,
  port,
  say,
}: {
  roots: readonly string[]
  port: number
  say: (text: string) => void
}): Promise<ServedPage> => {
  let events: EventStream | undefined
  const reported = new Set<string>()
  const observer = watchAgents(roots, {
    onChange: () => events?.publish(),
    report: (problem) => {
      if (!reported.has(problem)) say(`left out until it can be read: ${problem}`)
      reported.add(problem)
    },
  })
  events = createEventStream({ board: observer.board, instance: randomBytes(6).toString("hex"), now: () => Date.now() })
  const stream = events
  try {
    const server = await startPageServer({ port, events: stream })
    return {
      url: `http://127.0.0.1:${server.port}/`,
      close: () => {
        observer.close()
        stream.close()
        return server.close()
      },
    }
  } catch (error) {
    observer.close()
    stream.close()
    throw new Error(describeListening(error, port), { cause: error })
  }
}

/**
 * Serves until SIGINT, SIGTERM or SIGHUP. The address goes to stdout, everything else to stderr.
 *
 * @returns the exit code: 1 when the port is not available
 */
export const servePageUntilSignal = async (options: { roots: readonly string[]; port: number }): Promise<number> => {
  const say = (text: string): void => void process.stderr.write(`observe: ${text}\n`)
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve())
  })
  let page: ServedPage
  try {
    page = await servePage({ ...options, say })
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    return 1
  }
  // The program that reads stdout may have ended.
  process.stdout.on("error", () => {})
  process.stdout.write(`The agents are on ${page.url}\nCtrl-C ends it.\n`)
  await ended
  await page.close()
  return 0
}
