import { describe, expect, test, vi } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { Settings } from "../../../.opencode/baton/host/settings.ts"
import { createNotices, type Interface } from "../../../.opencode/baton/host/tui.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

type Options = { setting?: Settings["notices"]; userInterface?: Interface; isOnScreen?: Promise<void> }

const setUp = ({ setting = "all", userInterface = "tui", isOnScreen = Promise.resolve() }: Options = {}) => {
  const shown: string[] = []
  const last = createDeferred<void>()
  const notices = createNotices({
    tui: {
      showToast: async ({ title, message, variant }) => {
        shown.push(`${variant} ${title}: ${message}`)
        if (title === "Baton: last") last.resolve()
        return { kind: "ok", value: true }
      },
    },
    userInterface,
    setting: async () => setting,
    log: createRecordedLog(),
    signal: new AbortController().signal,
    pause: () => isOnScreen,
  })
  return { notices, shown, last: last.promise }
}

const INFO = { title: "learned", message: "No tabs." }
const PROBLEM = { title: "last", message: "The ledger does not have it.", isProblem: true }

describe("a notice", () => {
  test.each<[Options, string[]]>([
    [{}, ["success Baton: learned: No tabs.", "warning Baton: last: The ledger does not have it."]],
    [{ userInterface: "server", setting: "problems" }, ["warning Baton: last: The ledger does not have it."]],
  ])(promised("notices.A2", "a notice with %j is shown as %j"), async (options, expected) => {
    const { notices, shown, last } = setUp(options)
    notices(INFO)
    notices(PROBLEM)
    await last
    expect(shown).toEqual(expected)
  })

  test.each<Options>([{ userInterface: "run" }, { setting: "none" }])(
    promised("notices.A2", "a notice with %j is not shown"),
    async (options) => {
      const { notices, shown } = setUp(options)
      notices(INFO)
      notices(PROBLEM)
      await new Promise(setImmediate)
      expect(shown).toEqual([])
    },
  )

  test(promised("notices.A1", "a notice of one key is shown once, short and without control characters"), async () => {
    const { notices, shown, last } = setUp()
    for (let times = 0; times < 3; times++) notices({ ...INFO, key: "a" })
    notices({ title: "last", message: `\x1b[31mred\u009b\t  x\n${"long ".repeat(100)}` })
    await last
    expect(shown).toHaveLength(2)
    expect(shown[1]).toMatch(/^success Baton: last: \[31mred x\nlong long [long ]{1,180}$/)
  })

  test(promised("notices.A1", "a notice that is being shown at the end leaves no timer"), async () => {
    const ending = new AbortController()
    const onScreen = createDeferred<{ kind: "ok"; value: true }>()
    const paused = vi.fn(async () => undefined)
    const notices = createNotices({
      tui: { showToast: () => onScreen.promise },
      userInterface: "tui",
      setting: async () => "all",
      log: createRecordedLog(),
      signal: ending.signal,
      pause: paused,
    })
    notices(INFO)
    await new Promise(setImmediate)
    ending.abort()
    onScreen.resolve({ kind: "ok", value: true })
    await new Promise(setImmediate)
    expect(paused).not.toHaveBeenCalled()
  })

  test(promised("notices.A1", "a notice does not take another's place on the screen, and a flood ends"), async () => {
    const isOnScreen = createDeferred<void>()
    const { notices, shown, last } = setUp({ isOnScreen: isOnScreen.promise })
    for (let at = 1; at < 8; at++) notices({ title: `${at}`, message: "" })
    notices({ title: "last", message: "" })
    notices({ title: "one too many", message: "" })
    await new Promise(setImmediate)
    expect(shown).toHaveLength(1)
    isOnScreen.resolve()
    await last
    expect(shown).toHaveLength(8)
  })
})
