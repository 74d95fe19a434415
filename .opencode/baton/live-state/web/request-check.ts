import type { IncomingHttpHeaders } from "node:http"

export type Answer =
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

/** Everything there is, by path. */
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
 * A page somewhere on the web can have its own name resolve to 127.0.0.1 and read what answers there (DNS rebinding): its
 * name is then in Host. Only names that mean this machine are let through.
 */
export const isOwnHost = (host: string | undefined, port: number): boolean =>
  ["127.0.0.1", "localhost"].some((name) => host?.toLowerCase() === `${name}:${port}` || (port === 80 && host === name))

const header = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value)

/** What a request gets. Pure: the whole of what this server may ever give away is decided here. */
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
  // A browser tells what made it ask: another site may link here and no more. What is no browser does not say.
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
 * Nothing from anywhere else, nothing inline, no markup made from text (Trusted Types without any policy): what an agent
 * wrote can only ever be text.
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
