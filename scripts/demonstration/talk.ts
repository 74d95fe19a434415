import type { Place } from "./place.ts"

/** A message of the demo's user. */
export type Said = { readonly text: string; readonly isUndone?: true }

const LISTENING = /\bhttp:\/\/127\.0\.0\.1:\d+/

/**
 * Says messages to a new session and undoes some, as a user in the TUI does: over OpenCode's own server, which is ended then.
 *
 * @param show called for each message once it was answered, or undone
 * @returns the session's id
 * @throws when OpenCode does not answer
 */
export const talk = async (
  { openCode }: Place,
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
  const post = async <T>(path: string, body: object): Promise<T> => {
    const base = await Promise.race([url, ended])
    const headers = { "content-type": "application/json" }
    const response = await fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`opencode answered ${response.status} to ${path}: ${await response.text()}`)
    return (await response.json()) as T
  }
  try {
    const { id } = await post<{ id: string }>("/session", { title: "Baton demo" })
    for (const said of messages) {
      const parts = [{ type: "text", text: said.text }]
      const { info } = await post<{ info: { parentID: string } }>(`/session/${id}/message`, { parts })
      if (said.isUndone) await post(`/session/${id}/revert`, { messageID: info.parentID })
      show(said)
    }
    return id
  } finally {
    end.abort()
    await server.catch(() => undefined)
  }
}
