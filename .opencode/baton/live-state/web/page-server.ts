import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { join } from "node:path"
import type { EventStream } from "./event-stream.ts"
import { ASSETS, answerTo, SECURITY_HEADERS } from "./request-check.ts"

export type PageServer = {
  readonly port: number
  /** Ends every connection. Resolves when the port is free again. */
  close(): Promise<void>
}

const ADDRESS = "127.0.0.1"
/** A request is a line and some headers: whoever takes longer is not asking. */
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
 * The page and its stream of events on 127.0.0.1.
 *
 * @param port 0 for any that is free
 * @throws the system's own error (EADDRINUSE, EACCES, …) when the port cannot be had
 */
export const startPageServer = async ({
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
    // A client that goes away is no fault of ours.
    response.on("error", () => {})
    const answer = answerTo(request, boundPort)
    const asset = answer.kind === "asset" ? assets.get(answer.name) : undefined
    if (answer.kind === "events") events.add(response, answer.lastEventID)
    else if (asset) response.writeHead(200, { "Content-Type": asset.type }).end(asset.content)
    else if (answer.kind === "refused") {
      const allow = answer.status === 405 ? { Allow: "GET" } : {}
      // What a refused request still sends is not read.
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
