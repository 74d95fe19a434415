import { describe, expect, test } from "vitest"
import { createLruMap } from "../../../.opencode/baton/host/async.ts"

describe("what is remembered by session", () => {
  test("is bounded: what was not asked for or set for longest falls out and is told of", () => {
    const released: [string, number][] = []
    const recent = createLruMap<number>({ limit: 2, release: (...entry) => released.push(entry) })
    recent.set("ses_1", 1)
    recent.set("ses_2", 2)
    expect(recent.get("ses_1")).toBe(1)
    recent.set("ses_3", 3)
    expect(released).toEqual([["ses_2", 2]])
    expect([recent.has("ses_1"), recent.has("ses_2"), recent.has("ses_3")]).toEqual([true, false, true])
  })

  test("tells nothing of what is deleted, and keeps nothing of it", () => {
    const released: string[] = []
    const recent = createLruMap<number>({ limit: 1, release: (key) => released.push(key) })
    recent.set("ses_1", 1)
    expect([recent.delete("ses_1"), recent.delete("ses_1")]).toEqual([true, false])
    recent.set("ses_2", 2)
    expect(released).toEqual([])
  })
})
