import { get } from "node:http"
import { eventually } from "./opencode-server.ts"

type PageEvent = { event?: string; data: string }

type AgentsEvent = { keys: string[]; agents: Record<string, unknown>[] }

type EventClient = {
  events: readonly PageEvent[]
  /** Resolves with the last event about agents once it matches. */
  agents(fits: (agents: readonly Record<string, unknown>[]) => boolean): Promise<AgentsEvent>
  close(): void
}

const parseEvent = (block: string): PageEvent => {
  const fields = Object.fromEntries(
    block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  )
  return { data: "", ...fields }
}

/** Listens to the page's events as a browser would. @param url as it is printed, with its token */
export const listenToEvents = (url: string): Promise<EventClient> =>
  new Promise((resolve, reject) => {
    const events: PageEvent[] = []
    const asked = get(url.replace("#", "events?"), { agent: false }, (response) => {
      let rest = ""
      response.setEncoding("utf8").on("data", (text: string) => {
        const blocks = (rest + text).split("\n\n")
        rest = blocks.pop() ?? ""
        events.push(...blocks.map(parseEvent))
      })
      response.on("error", () => {})
      if (response.statusCode !== 200) reject(new Error(`the events answered ${response.statusCode}`))
      resolve({
        events,
        agents: (fits) =>
          eventually("an event about the agents", () => {
            const found = events.findLast(({ data }) => data !== "" && fits(JSON.parse(data).agents))
            return found && JSON.parse(found.data)
          }),
        close: () => asked.destroy(),
      })
    })
    asked.on("error", reject)
  })
