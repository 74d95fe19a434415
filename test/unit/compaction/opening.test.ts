import { describe, expect, test, vi } from "vitest"
import { createBudget } from "../../../.opencode/baton/compaction/budget.ts"
import { type OpeningInput, openingNotice, renderOpening } from "../../../.opencode/baton/compaction/opening.ts"
import { createOpenings } from "../../../.opencode/baton/compaction/openings.ts"
import { createSessionStates } from "../../../.opencode/baton/compaction/session-state.ts"
import type { TaskIdentity } from "../../../.opencode/baton/compaction/texts.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { Notice } from "../../../.opencode/baton/host/tui.ts"
import type { LedgerTask, TaskRead } from "../../../.opencode/baton/ledger/ledger.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { EMPTY_ACTIVITY, parseGitFact, renderFacts } from "../../../.opencode/baton/task/activity.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createMemoryStore, createRecordedLog } from "../../support/unit.ts"

const LEDGER = { title: "Teach CRLF", status: "open", definitionOfDone: "tests pass", specification: "CRLF counts." }
const inputWith = (known: Partial<TaskIdentity>): OpeningInput => ({
  identity: { taskID: "ts-b54507", role: "worker", brief: "Task: ts-b54507", protocol: "", isChild: false, ...known },
  logs: [],
  budget: createBudget(200_000),
})

describe("the text of the first request", () => {
  test(promised("start.A1", "it says no specification twice, and keeps within the budget"), () => {
    const brief = "Task: ts-b54507\nCRLF counts."
    expect(renderOpening(inputWith({ ledger: LEDGER, brief }))).not.toContain("CRLF counts.")
    expect(renderOpening(inputWith({ ledger: LEDGER }))).toContain("CRLF counts.")
    const long = "Keep what is there. ".repeat(2_000)
    const input: OpeningInput = {
      ...inputWith({ ledger: { ...LEDGER, specification: long } }),
      logs: Array.from({ length: 50 }, () => ({ message: long, createdAt: "2026-01-01T00:00:00Z" })),
      earlier: {
        title: { number: 1, sessionID: "ses_2", summaryID: "msg_1", at: "2026-01-01T00:00:00.000Z" },
        text: long,
        others: [],
        brief: `${long}!`,
      },
      budget: createBudget(20_000),
    }
    expect(input.budget.cost(renderOpening(input))).toBeLessThanOrEqual(1)
    expect(renderOpening(input)).toMatch(/last handoff cut to \d+ of \d+ characters/)
  })

  test(promised("start.A3", "each state of a task is told to the user in one way"), () => {
    const noticeOf = (status: string) => openingNotice(inputWith({ ledger: { ...LEDGER, status } }))
    for (const status of ["open", "in_progress", "blocked", "reviewing", "draft"])
      expect(noticeOf(status)).toEqual({ key: "bound", title: "task ts-b54507", message: `Teach CRLF · ${status}` })
    expect(noticeOf("done")).toMatchObject({ key: "done", title: "task ts-b54507 is done", isProblem: true })
    expect(noticeOf("canceled")).toMatchObject({ title: "task ts-b54507 is canceled", isProblem: true })
    expect(openingNotice(inputWith({}))).toBeUndefined()
    const unknown = inputWith({ ledger: "unknown" })
    const nearest = [{ id: "ts-b54508", title: "Teach CRLF", status: "open" }]
    expect(openingNotice({ ...unknown, nearest })?.message).toContain("ts-b54508 (Teach CRLF, open)")
    expect(openingNotice({ ...unknown, nearest: [] })?.message).toContain("no tasks at all")
    expect(openingNotice(unknown)?.message).toBe("The ledger does not have it.")
  })

  test(promised("start.A2", "branch and HEAD are read back from the facts of a handoff"), () => {
    const git = { branch: "feature/a b", head: "0123456789abcdef" }
    const facts = renderFacts({ compactions: 1, activity: EMPTY_ACTIVITY, todos: [], git })
    expect(parseGitFact(`# Handoff\n\n${facts}`)).toEqual({ branch: "feature/a b", head: "0123456789ab" })
    expect(parseGitFact("- Git: branch main at nowhere")).toBeUndefined()
  })
})

const NAMED = { id: "ts-b54507", type: "task", project: "p", title: "Teach CRLF" }
const TASK: LedgerTask = { ...NAMED, status: "open", description: "CRLF counts.", logs: [] }
const FOUND = { kind: "found", task: TASK } as const
const MODEL = { providerID: "p", modelID: "m" }

const setUp = (
  answers: (TaskRead | Promise<TaskRead>)[],
  stored: Record<string, SessionTask> = {},
  waiting: OutboxEntry[] = [],
  mode: "shared" | "exclusive" | "off" = "shared",
) => {
  const toasts: string[] = []
  const notices: Notice[] = []
  const asked: string[] = []
  const briefs: string[] = []
  const sessionStates = createSessionStates(createMemoryStore())
  const openings = createOpenings({
    recover: async () => {},
    ledger: {
      readTask: async (id) => {
        asked.push(id)
        return answers.shift() ?? { kind: "unavailable", reason: "no answer is left" }
      },
      listTasks: async () => [{ id: "ts-b54508", title: "Another", status: "open" }],
    },
    sessionStates,
    outbox: { pending: async () => waiting },
    bindings: { read: async (sessionID) => stored[sessionID] },
    modelContext: async () => undefined,
    tasks: { addToBrief: async (_sessionID, _taskID, text) => void briefs.push(text) },
    notices: (notice) => {
      notices.push(notice)
      toasts.push(notice.title)
    },
    claimsMode: async () => mode,
    prompts: { read: (name) => ({ kind: "foreign", path: `prompts/${name}.md` }) },
    run: async () => ({ kind: "exited", exitCode: 0, stdout: "3\n", stderr: "" }),
    root: "/nowhere",
    log: createRecordedLog(),
  })
  const ask = async (binding = BINDING): Promise<string> => (await openings.find(binding, MODEL, "Task: …")).text
  return { openings, ask, toasts, notices, asked, briefs, sessionStates }
}

describe("the first request of a session", () => {
  test(promised("start.A1", "each task is read once, however many requests and messages follow"), async () => {
    const { openings, ask, asked } = setUp([FOUND, { kind: "found", task: { ...TASK, title: "The other one" } }])
    await openings.begin(BINDING, MODEL)
    const first = await ask()
    await openings.begin(BINDING, MODEL)
    expect([await ask(), await ask()]).toEqual([first, first])
    expect(asked).toEqual(["ts-b54507"])
    expect(await ask({ ...BINDING, taskID: "ts-000002" })).toContain("The other one")
  })

  test(promised("start.A5", "a request waits 1.5 s at most, and the next one has what came later"), async () => {
    vi.useFakeTimers()
    const read = createDeferred<TaskRead>()
    const { openings, ask } = setUp([read.promise])
    await openings.begin(BINDING, MODEL)
    const first = ask()
    await vi.advanceTimersByTimeAsync(2_500)
    expect(await first).toContain("The ledger did not answer (not within 2500 ms)")
    const again = ask()
    await vi.advanceTimersByTimeAsync(1)
    expect(await again).toBe(await first)
    read.resolve(FOUND)
    await vi.advanceTimersByTimeAsync(1)
    expect(await ask()).toContain("CRLF counts.")
  })

  test(promised("task.C2", "a missing database is said until it is back, and to the user once"), async () => {
    const missingDatabase = "/home/me/.prog/prog.db"
    const missing = { kind: "unavailable", reason: "its database is missing", missingDatabase } as const
    const { openings, ask, toasts } = setUp([missing, missing, FOUND])
    for (let message = 0; message < 2; message++) {
      await openings.begin(BINDING, MODEL)
      const text = await ask()
      expect(text).toContain(`The ledger's database is missing: there is no ledger at ${missingDatabase}.`)
      expect(text).toContain("`prog init` makes a new, empty one")
    }
    expect(toasts).toEqual(["the ledger's database is missing"])
    await openings.begin(BINDING, MODEL)
    expect(await ask()).toContain("CRLF counts.")
  })

  test(promised("start.A3", "the user is told of an unknown task once, and not by a child session"), async () => {
    const { openings, ask, toasts } = setUp([{ kind: "unknown" }, { kind: "unknown" }, { kind: "unknown" }])
    await ask()
    await openings.begin(BINDING, MODEL)
    expect(await ask()).toContain("ts-b54508 (Another, open)")
    expect(toasts).toEqual(["no task ts-b54507"])
    const child = setUp([{ kind: "unknown" }])
    await child.ask({ ...BINDING, origin: "parent" })
    expect(child.toasts).toEqual([])
  })

  test(promised("claim.B2", "another's claim is told to the model and once to the user"), async () => {
    const summary = "ada (session ses_2 on host in /project) since 2026-02-09 22:17 UTC"
    const claimed = (session: string, isOwn = false) =>
      ({ kind: "found", task: { ...TASK, claim: { session, isOwn, summary } } }) as const
    const { openings, ask, toasts } = setUp([claimed("ses_2")])
    const text = await ask()
    expect(text).toContain(`the task was claimed by ${summary}`)
    expect(text).not.toContain("are refused")
    await openings.claimed(BINDING.sessionID, BINDING.taskID, summary)
    expect(await ask()).toBe(text)
    expect(toasts).toEqual(["task ts-b54507 is claimed"])
    const exclusive = setUp([claimed("ses_2")], {}, [], "exclusive")
    expect(await exclusive.ask()).toContain("are refused; `prog release ts-b54507`")
    const off = setUp([claimed("ses_2")], {}, [], "off")
    for (const own of [setUp([claimed(BINDING.sessionID)]), setUp([claimed("", true)]), off]) {
      expect(await own.ask()).not.toContain("claimed by")
      expect(own.toasts).toEqual(["task ts-b54507"])
    }
  })

  test(promised("claim.B2", "a claim that another was quicker with is told with the next message"), async () => {
    const task = { ...TASK, claim: { session: "ses_2", isOwn: false, summary: "ada" } }
    const { openings, ask, toasts } = setUp([FOUND, { kind: "found", task }])
    const first = await ask()
    await openings.claimed(BINDING.sessionID, BINDING.taskID, "ada")
    expect(await ask(), "the same from request to request").toBe(first)
    await openings.begin(BINDING, MODEL)
    expect(await ask()).toContain("claimed by ada")
    expect(toasts).toEqual(["task ts-b54507", "task ts-b54507 is claimed"])
  })

  test(promised(["start.A2", "task.B3"], "the handoff for the first compaction is the newest task's"), async () => {
    const handedOver = (sessionID: string) => {
      const title = `# Handoff after compaction 1 (session ${sessionID}, summary msg_${sessionID}, 2026-01-02T03:04:05.000Z)`
      const section = `<!-- baton:handoff 0123456789ab, x -->\n${title}\n\nBy ${sessionID}.\n<!-- /baton:handoff -->`
      return { kind: "found", task: { ...TASK, description: `CRLF counts.\n\n${section}` } } as const
    }
    const { ask, sessionStates } = setUp([handedOver("ses_2"), handedOver("ses_3"), FOUND])
    const last = async () => (await sessionStates.load(BINDING.sessionID)).lastHandoff
    await ask()
    expect(await last()).toEqual({ summaryID: "msg_ses_2", text: "By ses_2." })
    await ask({ ...BINDING, taskID: "ts-000002" })
    expect(await last()).toEqual({ summaryID: "msg_ses_3", text: "By ses_3." })
    await ask({ ...BINDING, taskID: "ts-000003" })
    expect(await last()).toBeUndefined()
    const own = { summaryID: "msg_own", text: "This session's own summary." }
    const withOwn = { recorded: [own.summaryID], lastHandoff: own }
    await sessionStates.update(BINDING.sessionID, (sessionState) => ({ ...sessionState, ...withOwn }))
    await ask({ ...BINDING, taskID: "ts-000002" })
    expect(await last()).toEqual(own)
  })

  test(promised("start.A2", "the last handoff of another session comes with that session's brief"), async () => {
    const section =
      "# Handoff after compaction 2 (session ses_2, summary msg_1, 2026-01-02T03:04:05.000Z)\n\n## Next\n- Go on."
    const description = `CRLF counts.\n\n<!-- baton:handoff 0123456789ab, x -->\n${section}\n<!-- /baton:handoff -->`
    const found = { kind: "found", task: { ...TASK, description } } as const
    const other = { ...BINDING, sessionID: "ses_2", brief: "Never touch the lexer." }
    const others = { ses_2: other }
    const opened = setUp([found], others)
    const text = await opened.ask()
    expect(opened.notices[0]?.message).toBe("Teach CRLF · open\nGoes on from session ses_2 (2026-01-02 03:04 UTC)")
    expect(opened.briefs, "kept for the compactions to come").toEqual(["Never touch the lexer."])
    const { lastHandoff } = await opened.sessionStates.load(BINDING.sessionID)
    expect(lastHandoff).toEqual({ summaryID: "msg_1", text: "## Next\n- Go on." })
    expect(text).toContain("Written 2026-01-02 03:04 UTC by session ses_2.")
    expect(text).toContain("```text\n## Next\n- Go on.\n```")
    expect(text).toContain("Never touch the lexer.")
    const newer = section.replace("Go on.", "Go on from the outbox.")
    const entry: OutboxEntry = { kind: "handoff", taskID: "ts-b54507", sessionID: "ses_2", section: newer }
    expect(await setUp([found], others, [entry]).ask()).toContain("- Go on from the outbox.")
    const own = await setUp([found], others).ask(other)
    expect(own, "its own handoff").not.toContain("The last handoff")
    const elsewhere = { ses_2: { ...other, taskID: "ts-000009" } }
    expect(await setUp([found], elsewhere).ask()).not.toContain("Never touch the lexer.")
  })
})
