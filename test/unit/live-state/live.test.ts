import { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { ObservedAgent } from "../../../.opencode/baton/live-state/observe/observer.ts"
import { toAgentView } from "../../../.opencode/baton/live-state/observe/view.ts"
import { createLiveStream, type LiveStream, toPageAgent } from "../../../.opencode/baton/live-state/web/live.ts"
import { promised } from "../../requirements.ts"

/** A page whose buffer is full on the test's command. */
const createPage = () => {
  const socket = Object.assign(new EventEmitter(), { setNoDelay: () => {}, destroy: () => void socket.emit("close") })
  const response = Object.assign(new EventEmitter(), {
    socket,
    writeHead: () => response,
    end: () => {},
    write: (text: string) => {
      page.written.push(text)
      return !page.isFull
    },
  })
  const page = { response, socket, written: [] as string[], isFull: false }
  return page
}

const observed = (key: string, change: Record<string, unknown> = {}): ObservedAgent => {
  const state = { c2c_session_id: key, opencode_pid: 1, ...change }
  const view = toAgentView("project", { file: key, ts: new Date(0).toISOString(), alive: true, state }, undefined)
  return { key, root: "/project", view, history: [{ at: 0, kind: "busy" }] }
}

describe("the stream of a page", () => {
  let agents: ObservedAgent[] = []
  let stream: LiveStream
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 })
    agents = [observed("a"), observed("b")]
    stream = createLiveStream({ look: async () => agents, now: Date.now })
  })
  afterEach(() => stream.close())
  const open = async () => {
    await stream.tick()
    const page = createPage()
    stream.add(page.response as unknown as ServerResponse)
    const messages = () => page.written.map((text) => JSON.parse(text.slice(text.indexOf("{"))))
    return { ...page, page, messages, last: () => messages().at(-1) }
  }
  const keysOf = (message: { agents: { key: string }[] }) => message.agents.map(({ key }) => key)

  test(
    promised("live-state.C3", "the stream of a page is one message for a page that does not read, then all agents"),
    async () => {
      const { page, messages, last, response } = await open()
      page.isFull = true
      agents = [observed("a"), observed("b")]
      await stream.tick()
      for (let n = 0; n < 100; n++) {
        agents = [observed("a"), observed("b", { c2c_alias: String(n) })]
        await stream.tick()
      }
      expect(messages()).toHaveLength(2)
      page.isFull = false
      response.emit("drain")
      expect([keysOf(last()), last().agents[1].name]).toEqual([["a", "b"], "99"])
    },
  )

  test(
    promised("live-state.C3", "the stream of a page ends for a page that has not read for half a minute"),
    async () => {
      const { page, socket } = await open()
      const closed = vi.fn()
      socket.on("close", closed)
      page.isFull = true
      agents = [observed("a")]
      await vi.advanceTimersByTimeAsync(29_000)
      expect(closed).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(2_000)
      expect(closed).toHaveBeenCalledOnce()
    },
  )

  test(
    promised(
      "live-state.C2",
      "the stream of a page has a sign of life every five seconds: silence is a lost connection",
    ),
    async () => {
      const { messages } = await open()
      await vi.advanceTimersByTimeAsync(16_000)
      expect(messages().slice(1)).toEqual([5_000, 10_000, 15_000].map((now) => ({ now, keys: ["a", "b"], agents: [] })))
    },
  )
})

test(promised("live-state.C2", "an agent on the page has its task's newest five log entries, within bounds"), () => {
  const log = Array.from({ length: 9 }, (_, n) => ({ message: `${n} ${"x".repeat(5_000)}`, createdAt: "" }))
  const { key, root, view, history } = observed("a")
  const { news } = toPageAgent({ key, root, view: { ...view, news: { title: "T", status: "open", log } }, history })
  expect(news?.log.map(({ message }) => message.slice(0, 1))).toEqual(["4", "5", "6", "7", "8"])
  expect(news?.log.every(({ message }) => message.length <= 601)).toBe(true)
})
