import { type IncomingMessage, request } from "node:http"
import { describe, expect, test } from "vitest"
import { servePage } from "../../../.opencode/baton/live-state/web/server.ts"
import { promised } from "../../requirements.ts"
import { casesOf, testsOnce } from "../../support/opencode/ends.ts"
import { listenToEvents } from "../../support/opencode/event-client.ts"
import { createStatefileFolder, observePage, startBatonObserve } from "../../support/opencode/observed-page.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

/** One request with the given headers. @returns status, headers and body */
const ask = (
  port: number,
  options: { path?: string; method?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }> =>
  new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, agent: false, ...options }, (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text
      })
      response.on("error", reject)
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    asked.on("error", reject)
    asked.end()
  })

const DEAD = 2 ** 22 + 1
const MAX_PAGES = 32
const isGone = (doing: unknown): boolean => JSON.stringify(doing) === '{"kind":"gone"}'

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const

describe.each(BOTH_ENDS)("the page's server on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = async () => {
    const states = createStatefileFolder()
    const page = await observePage({ binary, cwd: states.project, environment: states.environment })
    return { states, page }
  }

  once(
    promised(
      "live-state.C2",
      "the page's server gives the page and its files to this machine, nothing to anybody else",
    ),
    async () => {
      const { page } = await setUp()
      const whole = await ask(page.port)
      expect(whole.status).toBe(200)
      expect(whole.headers["content-security-policy"]).toContain("default-src 'none'")
      expect(whole.headers["access-control-allow-origin"]).toBeUndefined()
      for (const [, path] of whole.body.matchAll(/(?:src|href)="(\/[^"]+)"/g))
        expect((await ask(page.port, { path: path ?? "" })).status, path).toBe(200)
      const statusOf = async (options: Parameters<typeof ask>[1]) => (await ask(page.port, options)).status
      expect(await statusOf({ headers: { host: "evil.example" } })).toBe(421)
      expect(await statusOf({ headers: { host: "evil.example" }, path: "/events" })).toBe(421)
      expect(await statusOf({ method: "POST" })).toBe(405)
      expect(await statusOf({ method: "DELETE", path: "/events" })).toBe(405)
      expect(await statusOf({ path: "/../../../etc/passwd" })).toBe(404)
      expect(await statusOf({ headers: { "sec-fetch-site": "cross-site" }, path: "/events" })).toBe(403)
    },
  )

  once(
    promised("trust.A8", "the page's server tells of the agents only to one who has the address that was printed"),
    async () => {
      const { states, page } = await setUp()
      const token = new URL(page.url).hash.slice(1)
      expect(token).toMatch(/^[0-9a-f]{64}$/)
      const wrong = ["", "?", `?${token.slice(1)}`, `?${token.replace(/^./, (first) => (first === "0" ? "1" : "0"))}`]
      for (const query of wrong) {
        // More than are served at once: none of them may take the place of the page of this account.
        const answers = await Promise.all(
          Array.from({ length: MAX_PAGES }, () => ask(page.port, { path: `/events${query}` })),
        )
        for (const { status, body } of answers) expect([status, body]).toEqual([403, expect.stringContaining("token")])
      }
      states.write("one")
      const client = await listenToEvents(page.url)
      await client.agents((agents) => agents.some(({ name }) => name === "one"))
      client.close()
    },
  )

  once(
    promised(
      "trust.A8",
      "the page's server knows no token of an earlier start: another account may have been given it",
    ),
    async () => {
      const { states, page } = await setUp()
      page.kill("SIGINT")
      await page.ended
      const { environment } = states
      const next = await observePage({ binary, cwd: states.project, args: ["--port", String(page.port)], environment })
      await expect(listenToEvents(page.url)).rejects.toThrow("the events answered 403")
      const client = await listenToEvents(next.url)
      client.close()
    },
  )

  once(
    promised("live-state.C2", "the page's server tells what changes, and a page opened late what went on before"),
    async () => {
      const { states, page } = await setUp()
      const first = await listenToEvents(page.url)
      states.write("one")
      await first.agents((agents) => agents.some(({ name }) => name === "one"))
      states.write("one", { agent: { is_idle: true, turn_count: 1, last_step: null } })
      states.write("two", { opencode_pid: DEAD })
      await first.agents((agents) => agents.some(({ name, doing }) => name === "two" && isGone(doing)))
      await first.agents((agents) => agents.some(({ name, turns }) => name === "one" && turns === 1))
      first.close()
      const late = await listenToEvents(page.url)
      const { agents } = await late.agents((agents) => agents.length === 2)
      const kinds = ["busy", "turn", "idle"].map((kind) => expect.objectContaining({ kind }))
      expect(agents[0]).toMatchObject({ history: kinds })
      states.remove("two")
      const { keys } = await late.agents((agents) => agents.length === 0)
      expect(keys).toEqual(["0/one.json"])
      late.close()
    },
  )

  once(
    promised("live-state.C3", "the page's server lets go of pages that went away, and refuses more than it can serve"),
    async () => {
      const { page } = await setUp()
      const openAll = () => Promise.allSettled(Array.from({ length: MAX_PAGES }, () => listenToEvents(page.url)))
      const served = async (): Promise<[opened: number, next: string]> => {
        const opened = (await openAll()).filter((outcome) => outcome.status === "fulfilled")
        const next = await listenToEvents(page.url).then(
          (client) => {
            client.close()
            return "served"
          },
          (error: Error) => error.message,
        )
        for (const { value } of opened) value.close()
        return [opened.length, next]
      }
      const full = [MAX_PAGES, "the events answered 503"]
      expect(await served()).toEqual(full)
      // The server learns a moment later that a page was closed: until then it may refuse one of the first, or still have room for
      // the next.
      await expect.poll(served).toEqual(full)
    },
  )

  test.each(casesOf(binary, SIGNALS))(
    promised("live-state.C2", "the page's server ends by itself at %s, and tells an open page so"),
    async (signal) => {
      const { page } = await setUp()
      const client = await listenToEvents(page.url)
      page.kill(signal)
      expect(await page.ended).toBe(0)
      await eventually("the end", () => client.events.find(({ event }) => event === "end"))
      client.close()
    },
  )

  once(
    promised(
      "live-state.C2",
      "the page's server says so when the port is taken or none, and takes the one it is given",
    ),
    async () => {
      const { states, page } = await setUp()
      const run = async (...args: string[]) => {
        const { ended, stderr } = startBatonObserve({
          binary,
          cwd: states.project,
          args,
          environment: states.environment,
        })
        return [await ended, stderr()]
      }
      const port = String(page.port)
      expect(await run("--port", port)).toEqual([1, expect.stringContaining(`port ${port} is taken`)])
      expect(await run("--port", "0")).toEqual([2, expect.stringContaining("expected --port between 1 and 65535")])
      page.kill("SIGTERM")
      await page.ended
      const { environment } = states
      const named = await observePage({ binary, cwd: states.project, args: ["--port", port], environment })
      expect(named.port).toBe(page.port)
    },
  )
})

test(promised("live-state.C2", "the server runs on Node alone, sees agents begin, ends when asked to"), async () => {
  const states = createStatefileFolder()
  const page = await servePage({ roots: [states.project], port: 0, say: () => {} })
  let ended = (): unknown => undefined
  try {
    const client = await listenToEvents(page.url)
    states.write("one")
    await client.agents((agents) => agents.some(({ name, project }) => name === "one" && typeof project === "string"))
    ended = () => client.events.find(({ event }) => event === "end")
  } finally {
    await page.close()
  }
  await eventually("the end", ended)
  await expect(ask(Number(new URL(page.url).port))).rejects.toThrow("ECONNREFUSED")
})
