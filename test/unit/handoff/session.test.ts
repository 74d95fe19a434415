import { describe, expect, test } from "vitest"
import { createDelivery, NEW_SESSION_SETTLE_MS } from "../../../.opencode/baton/handoff/delivery.ts"
import { createHandoffSession } from "../../../.opencode/baton/handoff/handoff.ts"
import type { HandoffRecord } from "../../../.opencode/baton/handoff/records.ts"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import type { Result } from "../../../.opencode/baton/host/sessions.ts"
import type { Interface, Tui } from "../../../.opencode/baton/host/tui.ts"
import { EMPTY_ACTIVITY } from "../../../.opencode/baton/task/activity.ts"
import { wordsOf } from "../../../.opencode/baton/task/task-search.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createFakeSessions, createRecordedLog, type FakeSession, userSays } from "../../support/unit.ts"

const setUp = (
  userInterface: Interface,
  {
    tui = {},
    hasTask = true,
    isKept = true,
    said = [],
    permission = [],
  }: {
    tui?: Partial<Tui>
    hasTask?: boolean
    isKept?: boolean
    said?: readonly string[]
    permission?: readonly PermissionRule[] | "unknown"
  } = {},
) => {
  const [done, released] = [[] as string[], [] as string[]]
  const does = async (what: string): Promise<Result<true>> => {
    done.push(what)
    return { kind: "ok", value: true }
  }
  const sessions = new Map<string, FakeSession>([["ses_1", { messages: [userSays("First.")] }]])
  const fake = createFakeSessions(sessions)
  const written: HandoffRecord[] = []
  const log = createRecordedLog()
  const handOver = createHandoffSession({
    gatherFacts: async () => ({
      compactions: 2,
      activity: EMPTY_ACTIVITY,
      todos: [{ content: "Write the test", status: "pending" }],
      said: {
        words: wordsOf(["Please do it.\nTask: ts-ffffff", ...said].map((text, at) => userSays(text, `msg_${at}`))),
        leftOut: 0,
      },
      git: { branch: "main", head: "0123456789abcdef" },
      dirtyFiles: ["src/a.ts"],
    }),
    findTask: async () => (hasTask ? BINDING : undefined),
    loadFiles: async (references) => ({ blocks: [], references, leftOut: [] }),
    whyNotStarted: async (_session, requester) =>
      userInterface === "tui" && requester === "model" ? "the user decides" : undefined,
    childSessions: {
      parentAndPermissions: async () =>
        permission === "unknown"
          ? { kind: "failed", reason: "session.get failed" }
          : { kind: "ok", value: { parentID: undefined, permission } },
    },
    chooseTarget: async (_wanted, current) => current,
    deliver: createDelivery({
      sessions: fake,
      tui: {
        openNewSession: () => does("new session"),
        appendPrompt: ({ length }) => does(`append ${length}`),
        ...tui,
      },
      notices: ({ title, message }) => void done.push(`notice ${title} — ${message}`),
      userInterface,
      log,
      pause: async (ms) => void done.push(`pause ${ms}`),
    }),
    releaseClaim: async (sessionID) => void released.push(sessionID),
    sessions: fake,
    records: { list: async () => written, write: async (record) => written.push(record) > 0 && isKept },
    log,
    now: () => new Date("2026-01-01T00:00:00.000Z"),
    random: () => "abc123",
  })
  const request = { sessionID: "ses_1", prompt: "Finish it.", files: ["src/a.ts", "@b c.ts"], goal: "", start: false }
  const ask = (changes: Partial<typeof request> = {}) => handOver({ ...request, ...changes })
  return { handOver: ask, done, released, fake, sessions, written, log }
}

describe("handoff_session", () => {
  test(
    promised("handoff.F1", "handoff_session says how many of the user's messages are left out, and keeps the others"),
    async () => {
      const said = ["a", "b", "c"].map((letter) => letter.repeat(4_000))
      const { handOver, written } = setUp("run", { said })
      await handOver()
      expect(written[0]?.draft).toContain("(2 older messages left out)")
      expect(written[0]?.draft).toContain(said[2])
      expect(written[0]?.draft).toContain("Please do it.")
      expect(written[0]?.said.words.slice(1).map(({ text }) => text)).toEqual(said)
    },
  )

  test(
    promised(["claim.B2", "handoff.B1"], "handoff_session gives the claim up, and hands over without a task"),
    async () => {
      for (const hasTask of [true, false]) {
        const { handOver, released, written } = setUp("run", { hasTask })
        await handOver()
        expect(released).toEqual(hasTask ? ["ses_1"] : [])
        expect(/^Task: |^# Worker/m.test(written[0]?.draft ?? "Task: ")).toBe(hasTask)
        expect(written[0]?.taskID).toBe(hasTask ? "ts-b54507" : undefined)
      }
    },
  )

  test(promised("handoff.B2", "in a TUI a handoff is a new session, a pause, the draft, a notice"), async () => {
    const { handOver, done, written, sessions } = setUp("tui")
    const answer = await handOver()
    expect(done).toEqual([
      "new session",
      `pause ${NEW_SESSION_SETTLE_MS}`,
      `append ${written[0]?.draft.length}`,
      "notice Handoff Ready — Review and edit the draft, then send",
    ])
    expect(sessions.size).toBe(1)
    expect(answer).toContain("the draft is in the prompt of a new session")
  })

  test(promised("handoff.B3", "on a server the draft is stored, and a toast says where"), async () => {
    const { handOver, done, sessions } = setUp("server")
    await handOver()
    expect(sessions.has("ses_new1")).toBe(true)
    expect(done).toEqual(["notice Handoff Ready — Stored as the session “Handoff: Finish it.”"])
  })

  test(promised(["handoff.B3", "handoff.E2"], "a TUI that takes no draft leaves it in a session"), async () => {
    const appendPrompt: Tui["appendPrompt"] = async () => ({ kind: "failed", reason: "tui.appendPrompt failed" })
    const { handOver, sessions, log } = setUp("tui", { tui: { appendPrompt } })
    expect(await handOver()).toContain("Handoff stored in the new session ses_new1")
    expect(sessions.has("ses_new1")).toBe(true)
    const said = log.lines.map(({ message }) => message)
    expect(said).toContain("the TUI did not take the draft: it is stored in a session instead")
  })

  test.each([
    [true, /The draft is kept in \.opencode\/state\/handoffs\/ \(\S+-abc123\)\./],
    [false, /could not be kept on disk either\..*The draft:\n\nContinuing work from session ses_1\..*Finish it\./s],
  ])(promised(["handoff.B3", "handoff.B5", "handoff.E2"], "no draft is lost (kept: %s)"), async (isKept, said) => {
    const lost = setUp("run", { isKept })
    // A created session is not found afterwards.
    lost.sessions.set = () => lost.sessions
    await expect(lost.handOver()).rejects.toThrow(said)
    const empty = setUp("run", { isKept })
    empty.fake.store = async () => ({ kind: "ok", value: undefined })
    await expect(empty.handOver()).rejects.toThrow("the new session does not hold the draft")
    await expect(empty.handOver()).rejects.toThrow(said)
  })

  const RULES = [{ permission: "bash", pattern: "*", action: "deny" }] as const
  test.each([
    ["run", false],
    ["server", false],
    ["server", true],
    ["tui", false],
  ] as const)(
    promised("handoff.B6", "on %s the new session has the rules of the old one (started: %s)"),
    async (ui, start) => {
      const { handOver, done, sessions } = setUp(ui, { permission: RULES })
      expect(await handOver({ start })).toContain(
        `Handoff ${start ? "started:" : "stored in"} the new session ses_new1`,
      )
      expect(sessions.get("ses_new1")?.permission).toEqual(RULES)
      expect(done).not.toContain("new session")
    },
  )

  test(promised("handoff.B6", "what `opencode run` denies its sessions does not count in the TUI"), async () => {
    const denied = (permission: string) => ({ permission, pattern: "*", action: "deny" }) as const
    const ofRun = ["question", "plan_enter", "plan_exit"].map(denied)
    const { handOver, done } = setUp("tui", { permission: ofRun })
    await handOver()
    expect(done).toContain("new session")
    const more = setUp("tui", { permission: [...ofRun, { ...denied("question"), pattern: "a*" }] })
    await more.handOver()
    expect(more.done).not.toContain("new session")
  })

  test.each(["run", "server", "tui"] as const)(
    promised("handoff.B6", "on %s a draft is kept and not delivered while the rules are not known"),
    async (ui) => {
      const { handOver, sessions, done, released } = setUp(ui, { permission: "unknown" })
      const said = "not delivered: this session's permission rules are not known: session.get failed. The draft is kept"
      await expect(handOver({ start: true })).rejects.toThrow(said)
      expect(sessions.size).toBe(1)
      expect(done).toEqual([])
      expect(released, "the task stays this session's").toEqual([])
    },
  )

  test(promised("handoff.F2", "a started session has its record first, and the answer names it"), async () => {
    const { handOver, done, sessions, written } = setUp("server")
    const answer = await handOver({ start: true })
    expect(answer).toContain("Handoff started: the new session ses_new1 (“Handoff: Finish it.”) works on it now.")
    expect(written.map(({ started }) => started)).toEqual([undefined, "ses_new1"])
    expect(sessions.get("ses_new1")?.messages).toHaveLength(1)
    expect(done).toEqual(["notice Handoff Started — At work as the session “Handoff: Finish it.”"])
  })

  test(promised("handoff.F2", "a handoff that cannot be recorded is not started"), async () => {
    const { handOver, fake } = setUp("server", { isKept: false })
    fake.start = async () => ({ kind: "failed", reason: "it must not be started" })
    expect(await handOver({ start: true })).toContain("Not started: the handoff could not be recorded.")
  })

  test.each([
    ["--start Make it work", "Make it work", "started"],
    ['"--start Make it work"', "Make it work", "started"],
    ["--start", "Finish it.", "started"],
    ["Add a flag --start", "Add a flag --start", "ready"],
    ["--starter kit", "--starter kit", "ready"],
    ['"say \\"done\\" at the end"', 'say "done" at the end', "ready"],
    ['"a" and "b"', '"a" and "b"', "ready"],
    ['"', '"', "ready"],
  ])(promised(["handoff.F2", "handoff.B5"], "/handoff %s has the goal %s and is %s"), async (goal, recorded, how) => {
    const { handOver, written } = setUp("tui")
    expect(await handOver({ goal })).toMatch(new RegExp(`^Handoff ${how}`))
    expect(written[0]).toMatchObject({ from: "ses_1", goal: recorded, taskID: "ts-b54507", arrivals: [] })
  })

  test(promised("handoff.E2", "neither goal nor title holds half a character"), async () => {
    const { handOver, written, sessions } = setUp("run")
    await handOver({ goal: "x😀".repeat(100) + "x".repeat(200) })
    await handOver({ goal: "😀".repeat(200) })
    const titles = [...sessions.values()].map(({ info }) => info?.title ?? "")
    for (const text of [...written.map(({ goal }) => goal), ...titles]) expect(text.isWellFormed(), text).toBe(true)
  })

  test(promised("handoff.B1", "files may come with the mark, quotes and ranges of a reference"), async () => {
    const { handOver, written } = setUp("tui")
    await handOver({ files: ["src/a.ts:10-20", "a b.ts#L3", "@c.ts:5", '@"d e.ts"', "  f.ts  "] })
    expect(written[0]?.draft).toContain('\n\n@src/a.ts:10-20 @"a b.ts":3 @c.ts:5 @"d e.ts" @f.ts\n\n')
  })

  test(promised("handoff.B3", "an empty prompt is refused with what to do"), async () => {
    await expect(setUp("tui").handOver({ prompt: " \n" })).rejects.toThrow("`prompt` is empty: write what")
  })
})
