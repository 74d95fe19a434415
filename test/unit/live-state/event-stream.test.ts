import { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { BoardUpdate } from "../../../.opencode/baton/live-state/web/board.ts"
import { createEventStream, type EventStream } from "../../../.opencode/baton/live-state/web/live.ts"
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

describe("the stream of events", () => {
  let sequence = 1
  let events: EventStream
  const asked: (number | undefined)[] = []
  const changesSince = (since: number | undefined): BoardUpdate => {
    asked.push(since)
    return { sequence, agents: [], keys: [] }
  }
  beforeEach(() => {
    vi.useFakeTimers()
    sequence = 1
    asked.length = 0
    events = createEventStream({
      board: { sequence: () => sequence, changesSince },
      instance: "me",
      now: () => Date.now(),
    })
  })
  afterEach(() => {
    events.close()
    vi.useRealTimers()
  })
  const open = (lastEventID?: string) => {
    const page = createPage()
    events.add(page.response as unknown as ServerResponse, lastEventID)
    return page
  }
  const publish = (): void => {
    sequence++
    events.publish()
  }

  test(
    promised("live-state.C3", "writes one message to a page that does not read, and what it missed when it does"),
    () => {
      const page = open()
      page.isFull = true
      publish()
      const before = page.written.length
      for (let n = 0; n < 1_000; n++) publish()
      expect(page.written).toHaveLength(before)
      page.isFull = false
      page.response.emit("drain")
      expect(page.written).toHaveLength(before + 1)
      expect(page.written.at(-1)).toContain("id: me-1002\n")
      expect(asked.at(-1)).toBe(2)
    },
  )

  test(promised("live-state.C3", "lets go of a page that has not read for half a minute"), () => {
    const page = open()
    const closed = vi.fn()
    page.socket.on("close", closed)
    page.isFull = true
    publish()
    vi.advanceTimersByTime(29_000)
    expect(closed).not.toHaveBeenCalled()
    vi.advanceTimersByTime(10_000)
    expect(closed).toHaveBeenCalledOnce()
  })

  test(
    promised("live-state.C2", "takes up where a page left off, and begins anew with one of another observer"),
    () => {
      sequence = 9
      for (const id of ["me-7", "other-7", "nonsense"]) open(id)
      expect(asked).toEqual([7, undefined])
    },
  )

  test(
    promised("live-state.C2", "gives a sign of life every few seconds, so that silence means a lost connection"),
    () => {
      const page = open()
      const before = page.written.length
      vi.advanceTimersByTime(16_000)
      expect(page.written.slice(before).every((text) => text.startsWith("event: beat\n"))).toBe(true)
      expect(page.written).toHaveLength(before + 3)
    },
  )
})
