import { PASSWORD, type Place } from "./place.ts"

/** A message of the demo's user. */
export type Said = { readonly text: string; readonly isUndone?: true }

const LISTENING = /\bhttp:\/\/127\.0\.0\.1:\d+/

/** A running server: its address, and how a message is said there. */
type Speak = (base: string, messages: readonly Said[], show: (said: Said) => void) => Promise<string>

const post = async <T>(url: string, body: object, headers: Record<string, string> = {}): Promise<T> => {
  const json = { "content-type": "application/json", ...headers }
  const response = await fetch(url, { method: "POST", headers: json, body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`opencode answered ${response.status} to ${url}: ${text}`)
  return (text === "" ? undefined : JSON.parse(text)) as T
}

const speak1: Speak = async (base, messages, show) => {
  const { id } = await post<{ id: string }>(`${base}/session`, { title: "Baton demo" })
  for (const said of messages) {
    const parts = [{ type: "text", text: said.text }]
    const { info } = await post<{ info: { parentID: string } }>(`${base}/session/${id}/message`, { parts })
    if (said.isUndone) await post(`${base}/session/${id}/revert`, { messageID: info.parentID })
    show(said)
  }
  return id
}

const speak2 =
  (directory: string): Speak =>
  async (base, messages, show) => {
    const headers = { authorization: `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString("base64")}` }
    const created = await post<{ data: { id: string } }>(`${base}/api/session`, { location: { directory } }, headers)
    const { id } = created.data
    for (const said of messages) {
      await post(`${base}/api/session/${id}/prompt`, { text: said.text }, headers)
      await post(`${base}/api/experimental/session/${id}/wait`, {}, headers)
      show(said)
    }
    return id
  }

/**
 * Says messages to a new session and undoes some, as a user in the TUI does: over OpenCode's own server, which is ended then.
 *
 * @param show called for each message once it was answered, or undone
 * @returns the session's id
 * @throws when OpenCode does not answer
 */
export const talk = async (
  { openCode, options, directory }: Place,
  messages: readonly Said[],
  show: (said: Said) => void,
): Promise<string> => {
  const end = new AbortController()
  const { promise: url, resolve: listens } = Promise.withResolvers<string>()
  const server = openCode(["serve", "--hostname", "127.0.0.1", "--port", "0"], {
    crash: end.signal,
    onLine: (line) => {
      const found = LISTENING.exec(line)?.[0]
      if (found) listens(found)
    },
  })
  const ended = server.then(({ exitCode, stderr }) => {
    throw new Error(`opencode serve exited ${exitCode}: ${stderr.trim().slice(-500)}`)
  })
  const speak = options.line.number === 1 ? speak1 : speak2(directory)
  try {
    return await Promise.race([url.then((base) => speak(base, messages, show)), ended])
  } finally {
    end.abort()
    await server.catch(() => undefined)
  }
}
