import type { OpencodeClient } from "@opencode-ai/sdk/client"

/** Of each OpenCode 2 that a test starts. */
export const PASSWORD = "of-the-tests"

export type Api2 = (method: string, path: string, body?: unknown) => Promise<{ status: number; data: unknown }>

const headers = {
  authorization: `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString("base64")}`,
  "content-type": "application/json",
}

/** Calls of an `opencode serve` over HTTP. @throws with OpenCode's answer when it refuses one */
export const createApi2 =
  (baseUrl: string): Api2 =>
  async (method, path, body) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${baseUrl}/api${path}`, { method, headers, ...sent })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 300)}`)
    return { status: response.status, data: text === "" ? undefined : JSON.parse(text) }
  }

export const locationQuery = (directory: string): string => `location[directory]=${encodeURIComponent(directory)}`

type Entry = { id: string; type: string; text?: string; error?: unknown; content?: { type: string; text?: string }[] }

/** A message as tests look at it: its role, and its texts. */
const toMessage = ({ id, type, text, content = [], error }: Entry) => {
  const texts = text === undefined ? content.flatMap((each) => each.text ?? []) : [text]
  const info = { id, role: type === "user" ? "user" : type, ...(error === undefined ? {} : { error }) }
  return { info, parts: texts.map((each) => ({ type: "text", text: each })) }
}

/** The events that tests wait for, by their names in OpenCode 1. */
const toEvent = (raw: { type: string; data?: Record<string, unknown> }) => {
  const { type, data = {} } = raw
  return { type, properties: type === "permission.asked" ? { ...data, patterns: data.resources } : data }
}

/** A server tells of all its folders, where OpenCode 1's client hears of its own alone. */
const isOf = ({ location }: { location?: { directory?: string } }, directory: string): boolean =>
  location?.directory === undefined || location.directory === directory

async function* readEvents(response: Response, directory: string) {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true })
    const blocks = rest.split("\n\n")
    rest = blocks.pop() ?? ""
    for (const block of blocks) {
      const data = block.split("\n").flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []))
      const raw = data.length > 0 ? JSON.parse(data.join("\n")) : undefined
      if (raw !== undefined && isOf(raw, directory)) yield toEvent(raw)
    }
  }
}

type Given = {
  path: { id: string; permissionID?: string }
  body: {
    parts: { text: string }[]
    agent?: string
    noReply?: boolean
    command: string
    arguments: string
    messageID: string
    response: string
    parentID?: string
  }
}

/** Answers as the client of OpenCode 1, which throws nothing. */
const answer =
  <Input extends Partial<Given>>(work: (given: Given) => Promise<unknown>) =>
  async (given: Input) => {
    try {
      return { data: await work(given as unknown as Given) }
    } catch (error) {
      return { error: String(error) }
    }
  }

/** The calls of OpenCode 1's client that tests make, over OpenCode 2's HTTP; calls without a counterpart are missing. */
export const createClient2 = (baseUrl: string, directory: string): OpencodeClient => {
  const api = createApi2(baseUrl)
  const get = async <T>(path: string): Promise<T> => ((await api("GET", path)).data as { data: T }).data
  const wait = (id: string) => api("POST", `/experimental/session/${id}/wait`)
  /** Messages that OpenCode holds back until the user's next one. */
  const waiting = async (id: string): Promise<Entry[]> => {
    const items = await get<{ id: string; type: string; payload?: { text?: string } }[]>(`/session/${id}/inbox`)
    return items.map(({ id, type, payload }) => ({ id, type, text: payload?.text ?? "" }))
  }
  /** Those that wait for the user's next message, too. */
  const messages = async (id: string): Promise<Entry[]> => {
    const found: Entry[] = []
    for (let cursor = ""; ; ) {
      const query = cursor === "" ? "order=asc&limit=100" : `cursor=${encodeURIComponent(cursor)}`
      const { data } = await api("GET", `/session/${id}/message?${query}`)
      const page = data as { data: Entry[]; cursor: { next?: string } }
      found.push(...page.data)
      if (page.cursor.next === undefined || page.data.length === 0) return [...found, ...(await waiting(id))]
      cursor = page.cursor.next
    }
  }
  const session = {
    create: answer(async ({ body }) => {
      if (body.parentID !== undefined) throw new Error("OpenCode 2 creates a child session for its subagents alone")
      const { data } = await api("POST", "/session", { location: { directory } })
      return (data as { data: { id: string } }).data
    }),
    prompt: answer(async ({ path: { id }, body: { agent, noReply, parts } }) => {
      if (agent !== undefined) await api("POST", `/session/${id}/agent`, { agent })
      const text = parts.map((part) => part.text).join("\n")
      await api("POST", `/session/${id}/prompt`, { text, ...(noReply ? { resume: false } : {}) })
      await wait(id)
      return (await messages(id)).map(toMessage).findLast(({ info }) => info.role === "assistant")
    }),
    summarize: answer(async ({ path: { id } }) => {
      await api("POST", `/session/${id}/compact`, {})
      await wait(id)
    }),
    command: answer(async ({ path: { id }, body }) => {
      await api("POST", `/session/${id}/command`, { name: body.command, text: body.arguments })
      await wait(id)
    }),
    messages: answer(async ({ path: { id } }) => (await messages(id)).map(toMessage)),
    fork: answer(
      async ({ path: { id } }) => ((await api("POST", `/session/${id}/fork`, {})).data as { data: unknown }).data,
    ),
    children: answer(async ({ path: { id } }) =>
      (await get<{ parentID?: string }[]>(`/session?directory=${encodeURIComponent(directory)}&limit=100`)).filter(
        ({ parentID }) => parentID === id,
      ),
    ),
    abort: answer(({ path: { id } }) => api("POST", `/session/${id}/interrupt`)),
    delete: answer(({ path: { id } }) => api("DELETE", `/session/${id}`)),
    revert: answer(({ path: { id }, body: { messageID } }) =>
      api("POST", `/session/${id}/revert/stage`, { messageID }),
    ),
    unrevert: answer(({ path: { id } }) => api("DELETE", `/session/${id}/revert`)),
  }
  const client = {
    session,
    instance: { dispose: answer(() => api("DELETE", `/debug/location?${locationQuery(directory)}`)) },
    postSessionIdPermissionsPermissionId: answer(({ path: { id, permissionID }, body: { response } }) =>
      api("POST", `/session/${id}/permission/${permissionID}/reply`, { decision: response }),
    ),
    event: {
      subscribe: async () => ({ stream: readEvents(await fetch(`${baseUrl}/api/event`, { headers }), directory) }),
    },
  }
  return client as unknown as OpencodeClient
}
