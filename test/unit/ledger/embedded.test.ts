import { readFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  COMMAND_NAMES,
  loadAllCommands,
  loadCommandsNear,
} from "../../../.opencode/baton/ledger/embedded/command-tree.ts"
import * as format from "../../../.opencode/baton/ledger/embedded/format.ts"
import { blockedIds, deriveEpicStatus } from "../../../.opencode/baton/ledger/embedded/items.ts"
import type { ItemRow } from "../../../.opencode/baton/ledger/embedded/store.ts"
import { promised } from "../../requirements.ts"
import { reachedFrom, sourceFiles } from "../../support/files/source-files.ts"
import { forAll } from "../../support/for-all.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const { formatTimestamp, goJson, minuteText, parseTimestamp, rfc3339 } = format
const MAX_FILES_OF_LOG = 20
const NOON = Date.UTC(2026, 1, 9, 12, 0, 0)
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

describe("times", () => {
  test.each([
    [0, "2026-02-09 12:00:00.5 +0000 UTC"],
    [60, "2026-02-09 13:00:00.5 +0100 +01"],
    [-300, "2026-02-09 07:00:00.5 -0500 -05"],
    [330, "2026-02-09 17:30:00.5 +0530 LMT"],
    [-210, "2026-02-09 08:30:00.5 -0330 LMT"],
  ])(promised("ledger.D3", "a time %i minutes from UTC is written as Go writes it"), (offset, text) => {
    expect(formatTimestamp((NOON + 500) * 1000, offset)).toBe(text)
  })

  test(promised("ledger.D3", "what is written is read back to the millisecond, and sorts as text"), () => {
    const micros = fc.integer({ min: 0, max: 4_000_000_000_000_000 })
    const offset = fc.integer({ min: -56, max: 56 }).map((quarters) => quarters * 15)
    forAll(100, [micros, fc.integer({ min: 1, max: 10_000_000 }), offset], (earlier, later, offsetMinutes) => {
      const text = formatTimestamp(earlier, offsetMinutes)
      expect(parseTimestamp(text)).toStrictEqual({ epochMs: Math.floor(earlier / 1000), offsetMinutes })
      expect(text < formatTimestamp(earlier + later, offsetMinutes)).toBe(true)
    })
  })

  test.each([
    ["2026-02-09 12:00:00.123456789 +0000 UTC m=+0.002", NOON + 123, 0],
    ["2026-02-09 13:00:00 +0100 CET", NOON, 60],
    ["2026-02-09 12:00:00", NOON, 0],
    ["2026-02-09T12:00:00Z", NOON, 0],
    ["2026-02-09T07:00:00-05:00", NOON, -300],
    ["2026-02-09 12:00", NOON, 0],
    ["2026-02-09", NOON - 12 * HOUR, 0],
    ["yesterday", 0, 0],
  ])(promised("ledger.D3", "the stored time %s is read"), (text, epochMs, offsetMinutes) => {
    expect(parseTimestamp(text)).toStrictEqual({ epochMs, offsetMinutes })
  })

  test(promised("ledger.D3", "times are shown in the zone they were stored with, and ages in words"), () => {
    expect(rfc3339({ epochMs: NOON, offsetMinutes: 0 })).toBe("2026-02-09T12:00:00Z")
    expect(rfc3339({ epochMs: NOON, offsetMinutes: -210 })).toBe("2026-02-09T08:30:00-03:30")
    expect(minuteText({ epochMs: NOON, offsetMinutes: 60 })).toBe("2026-02-09 13:00")
    const ago = (ageMs: number): string => format.timeAgo({ epochMs: NOON, offsetMinutes: 0 }, NOON + ageMs)
    const ages = [MINUTE - 1, MINUTE, HOUR - 1, HOUR, DAY - 1, DAY, 7 * DAY - 1, 7 * DAY]
    const words = ["just now", "1m ago", "59m ago", "1h ago", "23h ago", "1d ago", "6d ago", "2026-02-09"]
    expect(ages.map(ago)).toStrictEqual(words)
    expect([HOUR - 1, HOUR, DAY - 1, DAY].map(format.shortAge)).toStrictEqual(["<1h", "1h", "23h", "1d"])
  })
})

describe("text as Go prints it", () => {
  test(promised("ledger.D3", "JSON escapes what Go escapes; table summaries have 40 characters"), () => {
    expect(goJson({ a: "<b>&\u2028", b: [] })).toBe('{\n  "a": "\\u003cb\\u003e\\u0026\\u2028",\n  "b": []\n}')
    expect(format.tableSummary("x".repeat(40))).toBe("x".repeat(40))
    expect(format.tableSummary("x".repeat(41))).toBe(`${"x".repeat(37)}...`)
    expect(format.tableSummary("🙂".repeat(41))).toBe(`${"🙂".repeat(37)}...`)
  })
})

describe("statuses", () => {
  test.each([
    ["open", [], "open"],
    ["done", ["open"], "done"],
    ["open", ["blocked", "done"], "blocked"],
    ["open", ["blocked", "open"], "open"],
    ["open", ["open", "canceled"], "open"],
    ["open", ["draft", "canceled"], "draft"],
    ["open", ["draft", "open"], "open"],
  ])(promised("ledger.D3", "an epic stored as %s with children %j is shown as %s"), (stored, children, shown) => {
    expect(deriveEpicStatus(stored, children)).toBe(shown)
  })

  test(promised("ledger.D3", "an item waits for what is open, and not for an epic whose work is done"), () => {
    const item = (id: string, status: string, more: Partial<ItemRow> = {}) =>
      ({ id, status, type: "task", parent_id: null, ...more }) as ItemRow
    const items = [
      item("done", "done"),
      item("open", "open"),
      item("full", "open", { type: "epic" }),
      item("child", "canceled", { parent_id: "full" }),
      item("empty", "open", { type: "epic" }),
    ]
    const waits = ["done", "open", "full", "empty", "gone"].map((id) => ({ item_id: `after ${id}`, depends_on: id }))
    expect([...blockedIds(items, waits)]).toStrictEqual(["after open", "after empty"])
  })
})

describe("what is loaded", () => {
  const embedded = ".opencode/baton/ledger/embedded"
  /** The modules that the files load, apart from one another. */
  const modulesOf = (files: readonly string[]): string[] => {
    const text = files.map((file) => readFileSync(join(REPOSITORY, file), "utf8")).join("\n")
    const imports = text.matchAll(/^import (?!type )[^"]*?"([^".][^"]*)"/gm)
    return [...new Set([...imports].map(([, name = ""]) => name))]
  }

  test(promised(["ledger.D3", "speed.G4"], "log loads few files, and of modules bun:sqlite alone"), () => {
    const loaded = reachedFrom([`${embedded}/main.ts`, `${embedded}/commands/write-tasks.ts`])
    expect(modulesOf(loaded)).toStrictEqual(["bun:sqlite"])
    expect(loaded.length).toBeLessThan(MAX_FILES_OF_LOG)
    expect(loaded).not.toContainEqual(expect.stringContaining("help.ts"))
  })

  test(promised("ledger.D3", "the commands know the store by its port: none loads a module of Bun"), () => {
    const loaded = reachedFrom(sourceFiles(`${embedded}/commands`))
    expect([...modulesOf(loaded), ...loaded].filter((name) => /^bun:|sqlite/.test(name))).toStrictEqual([])
  })

  test(promised("ledger.D3", "each command is found in the group that names it"), async () => {
    expect((await loadAllCommands()).map(({ name }) => name).toSorted()).toStrictEqual(COMMAND_NAMES.toSorted())
    for (const name of COMMAND_NAMES) {
      expect((await loadCommandsNear(name)).map((command) => command.name)).toContain(name)
    }
    expect(await loadCommandsNear("nothing")).toStrictEqual([])
  })
})
