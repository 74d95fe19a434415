import { randomBytes, timingSafeEqual } from "node:crypto"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http"
import { join } from "node:path"
import { complain, print } from "../../host/cli.ts"
import { errorCode } from "../../host/log.ts"
import { readOwnBytes } from "../../host/untrusted.ts"
import { createObserver } from "../observe/observer.ts"
import { listProjects } from "../projects.ts"
import { createLiveStream } from "./live.ts"

type Answer =
  | { readonly kind: "asset"; readonly name: string }
  | { readonly kind: "events" }
  | { readonly kind: "refused"; readonly status: 403 | 404 | 405 | 421; readonly reason: string }

type Asset = { readonly file: string; readonly type: string }

const CSS = "text/css; charset=utf-8"
const JS = "text/javascript; charset=utf-8"

/** All files that are served, by path. */
export const ASSETS: Readonly<Record<string, Asset>> = {
  "/": { file: "index.html", type: "text/html; charset=utf-8" },
  "/page.css": { file: "page.css", type: CSS },
  "/row.css": { file: "row.css", type: CSS },
  "/icon.svg": { file: "icon.svg", type: "image/svg+xml" },
  "/page.js": { file: "page.js", type: JS },
  "/row.js": { file: "row.js", type: JS },
  "/timeline.js": { file: "timeline.js", type: JS },
  "/words.js": { file: "words.js", type: JS },
}

const EVENTS_PATH = "/events"

/**
 * Checks the Host header against DNS rebinding: a web page can have its own name resolve to 127.0.0.1 and read what answers
 * there. Only names that mean this machine pass.
 */
export const isOwnHost = (host: string | undefined, port: number): boolean =>
  ["127.0.0.1", "localhost"].some((name) => host?.toLowerCase() === `${name}:${port}` || (port === 80 && host === name))

const isSame = (given: string, expected: string): boolean => {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/**
 * Decides the answer to a request. Pure; every answer that this server gives is decided here. The page itself holds nothing: other
 * accounts can open it, and have no token for the events.
 */
export const answerTo = (
  request: {
    readonly method?: string | undefined
    readonly url?: string | undefined
    readonly headers: IncomingHttpHeaders
  },
  { port, token }: { port: number; token: string },
): Answer => {
  const { method, url = "", headers } = request
  const refuse = (status: 403 | 404 | 405 | 421, reason: string): Answer => ({ kind: "refused", status, reason })
  if (!isOwnHost(headers.host, port)) return refuse(421, `expected the host 127.0.0.1:${port} or localhost:${port}`)
  // A browser tells what caused the request: another site may only link here. Other programs do not send the header.
  const site = headers["sec-fetch-site"] ?? "none"
  const isLink = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  if (site !== "same-origin" && site !== "none" && !isLink) return refuse(403, "not for other sites")
  if (method !== "GET") return refuse(405, "expected GET: there is nothing here to change")
  const [path = "", query = ""] = url.split("?", 2)
  if (path === EVENTS_PATH)
    return isSame(query, token) ? { kind: "events" } : refuse(403, "expected the token of the address that was printed")
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
      { type, content: readOwnBytes(join(PAGE_FOLDER, file), { isForeign: true }) },
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

const describeListening = (error: unknown, port: number): string => {
  if (errorCode(error) === "EADDRINUSE")
    return `port ${port} is taken. Name another one with --port, or leave --port out for any that is free`
  if (errorCode(error) === "EACCES") return `port ${port} is not ours to take. Expected one from 1024 on`
  return `127.0.0.1:${port} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`
}

type ServedPage = {
  /** Ends in the token. A browser keeps what is behind `#` to itself: the page asks for the events with it. */
  readonly url: string
  /** Ends every connection. Resolves when the port is free again. */
  close(): Promise<void>
}

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
  const assets = loadAssets()
  const reported = new Set<string>()
  const report = (problem: string): void => {
    if (!reported.has(problem)) say(`left out until it can be read: ${problem}`)
    reported.add(problem)
  }
  const observer = createObserver(roots, report, () => listProjects(report))
  const events = createLiveStream({ look: observer.look, now: Date.now })
  // Another one at each start: a page that is left open gives it to any program that listens on the port next.
  const token = randomBytes(32).toString("hex")
  let boundPort = port

  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    // A client that disconnects is not an error.
    response.on("error", () => {})
    const answer = answerTo(request, { port: boundPort, token })
    const asset = answer.kind === "asset" ? assets.get(answer.name) : undefined
    if (answer.kind === "events") events.add(response)
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
  const stopWatching = (): void => {
    observer.close()
    events.close()
  }
  try {
    boundPort = await listen(server, port)
  } catch (error) {
    stopWatching()
    throw new Error(describeListening(error, port), { cause: error })
  }
  return {
    url: `http://${ADDRESS}:${boundPort}/#${token}`,
    close: () =>
      new Promise((resolve) => {
        stopWatching()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/**
 * Serves until SIGINT, SIGTERM or SIGHUP. The address goes to stdout, everything else to stderr.
 *
 * @returns the exit code: 1 when the port is not available
 */
export const servePageUntilSignal = async (options: { roots: readonly string[]; port: number }): Promise<number> => {
  const say = (text: string): void => complain(`observe: ${text}`)
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
  print(`The agents are on ${page.url}\nCtrl-C ends it.`)
  await ended
  await page.close()
  return 0
}
