import { describe, expect, test, vi } from "vitest"
import { createBudget } from "../../../.opencode/baton/compaction/budget.ts"
import { createSessionStates } from "../../../.opencode/baton/compaction/session-state.ts"
import {
  type EarlierHandoff,
  renderTaskNote,
  type TaskNoteInput,
  taskNotice,
} from "../../../.opencode/baton/compaction/task-note.ts"
import { createTaskNotes } from "../../../.opencode/baton/compaction/task-notes.ts"
import type { OtherHandoff, TaskIdentity } from "../../../.opencode/baton/compaction/texts.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { DRAFT_START } from "../../../.opencode/baton/host/messages.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import type { Notice } from "../../../.opencode/baton/host/tui.ts"
import type { LedgerTask, TaskRead } from "../../../.opencode/baton/ledger/ledger.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { EMPTY_ACTIVITY, parseGitFact, renderFacts } from "../../../.opencode/baton/task/activity.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { NO_WORDS, withWords } from "../../../.opencode/baton/task/user-words.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createMemoryStore, createRecordedLog, taskWords, userMessage, userWords } from "../../support/unit.ts"

const LEDGER = {
  title: untrusted("Teach CRLF"),
  status: untrusted("open"),
  definitionOfDone: untrusted("tests pass"),
  specification: untrusted("CRLF counts."),
}
const MESSAGE = { text: "Task: ts-b54507", isAbove: true, namesTask: true, hasDraft: false }
const inputWith = (known: Partial<TaskIdentity>, message: Partial<TaskNoteInput["message"]> = {}): TaskNoteInput => ({
  identity: { taskID: "ts-b54507", role: "worker", said: NO_WORDS, protocol: "", hasShell: true, ...known },
  logs: [],
  message: { ...MESSAGE, ...message },
  budget: createBudget(200_000),
})
const EARLIER: EarlierHandoff = {
  title: { number: 1, sessionID: "ses_2", summaryID: "msg_1", at: "2026-01-01T00:00:00.000Z" },
  text: "Line 12 is proven.",
  isAtWork: false,
  others: [],
}

describe("the text of the first request", () => {
  test(
    promised("start.A1", "the text of the first request says no specification twice, and keeps within the budget"),
    () => {
      const text = "Task: ts-b54507\nCRLF counts."
      expect(renderTaskNote(inputWith({ ledger: LEDGER }, { text }))).not.toContain("CRLF counts.")
      expect(renderTaskNote(inputWith({ ledger: LEDGER }))).toContain("CRLF counts.")
      const long = "Keep what is there. ".repeat(2_000)
      const input: TaskNoteInput = {
        ...inputWith({ ledger: { ...LEDGER, specification: untrusted(long) }, said: taskWords(`${long}!`, "Go on.") }),
        logs: Array.from({ length: 50 }, () => ({ message: untrusted(long), createdAt: "2026-01-01T00:00:00Z" })),
        earlier: { ...EARLIER, text: long },
        budget: createBudget(20_000),
      }
      expect(input.budget.cost(renderTaskNote(input))).toBeLessThanOrEqual(1)
      expect(renderTaskNote(input)).toMatch(/last handoff cut to \d+ of \d+ characters/)
    },
  )

  test(promised("start.A3", "each state of a task is told to the user in one way"), () => {
    const noticeOf = (status: string) => taskNotice(inputWith({ ledger: { ...LEDGER, status: untrusted(status) } }))
    for (const status of ["open", "in_progress", "blocked", "reviewing", "draft"])
      expect(noticeOf(status)).toEqual({ key: "bound", title: "task ts-b54507", message: `Teach CRLF · ${status}` })
    expect(noticeOf("done")).toMatchObject({ key: "done", title: "task ts-b54507 is done", isProblem: true })
    expect(noticeOf("canceled")).toMatchObject({ title: "task ts-b54507 is canceled", isProblem: true })
    expect(taskNotice(inputWith({}))).toBeUndefined()
    const unknown = inputWith({ ledger: "unknown" })
    const nearest = [{ id: "ts-b54508", title: untrusted("Teach CRLF"), status: untrusted("open") }]
    expect(taskNotice({ ...unknown, nearest })?.message).toContain('ts-b54508 ("Teach CRLF", open)')
    expect(taskNotice({ ...unknown, nearest: [] })?.message).toContain("no tasks at all")
    expect(taskNotice(unknown)?.message).toBe("The ledger does not have it.")
  })

  test(promised("task.B3", "a subagent is told that its order is all that is asked of it"), () => {
    const input = inputWith({ ledger: LEDGER, order: "Count the files." }, { text: "Count the files." })
    const text = renderTaskNote({ ...input, earlier: EARLIER })
    expect(text).toMatch(
      /^\[Baton\] The session that started you works on task ts-b54507\. The task is context for you: your order is the message that started this session, and all that is asked of you\.\n/,
    )
    expect(text).not.toMatch(/Line 12|Your order, from|prog done/)
    expect(text).toContain("CRLF counts.")
  })

  test(
    promised("words.B4", "the text of the first request calls a writer another agent only while it is at work"),
    () => {
      const opening = (isAtWork: boolean, kind: OtherHandoff["kind"]) => {
        const section =
          "# Handoff after compaction 1 (session ses_3, summary msg_3, 2026-01-01T00:00:00.000Z)\n\nBy ses_3."
        return renderTaskNote({
          ...inputWith({ ledger: LEDGER }),
          earlier: { ...EARLIER, isAtWork, others: [{ section, kind }] },
        })
      }
      const who = "(session ses_3, 2026-01-01 00:00 UTC)"
      const earlier = opening(false, "earlier")
      expect(earlier).toContain("Another session has worked on it: go on where it stands, do not start over.")
      expect(earlier).toContain("Written 2026-01-01 00:00 UTC by session ses_2. `read_session`")
      expect(earlier).toContain(
        `### Handoff of an earlier session on this task ${who}\nIts files are this task's files. What is newer counts.\n\n\`\`\`text\nBy ses_3.`,
      )
      expect(earlier).not.toContain("another agent")
      const now = opening(true, "at work")
      expect(now).toContain("by session ses_2, which works on the task now: its work is not yours.")
      expect(now).toContain(`### Handoff of another agent that works on this task now ${who}\nIts work is not yours:`)
      const below = `### Handoff of a subagent on this task ${who}\nIt had its order from an agent, not from the user.`
      expect(opening(false, "subagent")).toContain(below)
    },
  )

  test(promised("words.B4", "a draft above takes the place of the last handoff"), () => {
    const input = { ...inputWith({ ledger: LEDGER }, { hasDraft: true }), earlier: EARLIER }
    expect(renderTaskNote(input)).not.toContain("Line 12 is proven.")
    expect(renderTaskNote(input)).toContain("Another session has worked on it")
    expect(renderTaskNote({ ...inputWith({ ledger: LEDGER }), earlier: EARLIER })).toContain("Line 12 is proven.")
  })

  test(promised("task.D3", "the text for an agent without a shell names the tools and no command"), () => {
    const text = renderTaskNote(inputWith({ ledger: LEDGER, hasShell: false }))
    expect(text).toContain("This is the task as the ledger has it; `task_show` reads it, `task_log` adds to its log.")
    expect(text).not.toContain("`prog")
  })

  test(promised("start.A2", "branch and HEAD are read back from the facts of a handoff"), () => {
    const git = { branch: "feature/a b", head: "0123456789abcdef" }
    const facts = renderFacts({ compactions: 1, activity: EMPTY_ACTIVITY, todos: [], git })
    expect(parseGitFact(`# Handoff\n\n${facts}`)).toEqual({ branch: "feature/a b", head: "0123456789ab" })
    expect(parseGitFact("- Git: branch main at nowhere")).toBeUndefined()
  })
})

const NAMED = { id: "ts-b54507", title: untrusted("Teach CRLF"), status: untrusted("open"), logs: [], labels: [] }
const TASK: LedgerTask = { ...NAMED, description: untrusted("CRLF counts.") }
const FOUND = { kind: "found", task: TASK } as const
const MODEL = { providerID: "p", modelID: "m" }

const setUp = (
  answers: (TaskRead | Promise<TaskRead>)[],
  stored: Record<string, SessionTask> = {},
  waiting: OutboxEntry[] = [],
  mode: "shared" | "exclusive" | "off" = "shared",
  atWork?: string,
  /** The handoffs that the recovery of an ended process's sessions makes. */
  recovery?: { readonly sections: readonly string[]; readonly over: Promise<void> },
) => {
  let isRecovered = recovery === undefined
  let { said } = BINDING
  const toasts: string[] = []
  const notices: Notice[] = []
  const asked: string[] = []
  const inherited: string[] = []
  const sessionStates = createSessionStates(createMemoryStore())
  const taskNotes = createTaskNotes({
    recover: async () => {
      await recovery?.over
      isRecovered = true
    },
    recordOthers: async () => {},
    goesFirst: () => {},
    recordedOn: () => (isRecovered ? (recovery?.sections ?? []) : []),
    ledger: {
      readTask: async (id) => {
        asked.push(id)
        return answers.shift() ?? { kind: "unavailable", reason: "no answer is left" }
      },
      listTasks: async () => [{ id: "ts-b54508", title: untrusted("Another"), status: untrusted("open") }],
    },
    sessionStates,
    outbox: { pending: async () => waiting },
    modelContext: async () => undefined,
    tasks: {
      inherit: async (_sessionID, _taskID, words) => {
        inherited.push(...words.map(({ text }) => text))
        said = withWords(said, words)
      },
      readStored: async (sessionID) => stored[sessionID],
      owner: async ({ sessionID }) => (sessionID === "ses_child" ? stored.ses_2 : stored[sessionID]),
      cached: () => ({ ...BINDING, said }),
    },
    isAtWork: async (sessionID) => sessionID === atWork,
    notices: (notice) => {
      notices.push(notice)
      toasts.push(notice.title)
    },
    isIdleOn: async () => false,
    claimsMode: async () => mode,
    prompts: { read: (name) => ({ kind: "foreign", path: `prompts/${name}.md` }) },
    run: async () => ({ kind: "exited", exitCode: 0, stdout: "3\n", stderr: "" }),
    root: "/nowhere",
    log: createRecordedLog(),
  })
  const ask = async (binding = BINDING, text = "Task: ts-b54507", createdAt = 0): Promise<string> => {
    const { info } = userMessage([], BINDING.messageID)
    if (info.role !== "user") throw new Error("expected a user's message")
    const anchor = { info: { ...info, time: { created: createdAt } }, text, hasShell: true, askedAt: performance.now() }
    return (await taskNotes.find(binding, anchor)).text
  }
  return { taskNotes, ask, toasts, notices, asked, inherited, sessionStates }
}

describe("the first request of a session", () => {
  test(promised("start.A1", "each task is read once, however many requests and messages follow"), async () => {
    const { taskNotes, ask, asked } = setUp([
      FOUND,
      { kind: "found", task: { ...TASK, title: untrusted("The other one") } },
    ])
    await taskNotes.begin(BINDING, MODEL)
    const first = await ask()
    await taskNotes.begin(BINDING, MODEL)
    expect([await ask(), await ask()]).toEqual([first, first])
    expect(asked).toEqual(["ts-b54507"])
    expect(await ask({ ...BINDING, taskID: "ts-000002" })).toContain("The other one")
  })

  test(promised("start.A5", "a request waits 2.5 s at most, and the next one has what came later"), async () => {
    vi.useFakeTimers()
    const read = createDeferred<TaskRead>()
    const { taskNotes, ask } = setUp([read.promise])
    await taskNotes.begin(BINDING, MODEL)
    const first = ask()
    await vi.advanceTimersByTimeAsync(2_500)
    expect(await first).toContain("The ledger did not answer (not within 2500 ms). Ask it with `prog show ts-b54507`")
    const again = ask()
    await vi.advanceTimersByTimeAsync(1)
    expect(await again).toBe(await first)
    read.resolve(FOUND)
    await vi.advanceTimersByTimeAsync(1)
    expect(await ask()).toContain("CRLF counts.")
  })

  test(promised("start.A5", "a request that OpenCode makes late waits no less for the task"), async () => {
    vi.useFakeTimers()
    const read = createDeferred<TaskRead>()
    const { taskNotes, ask } = setUp([read.promise])
    await taskNotes.begin(BINDING, MODEL)
    await vi.advanceTimersByTimeAsync(4_000)
    const first = ask()
    await vi.advanceTimersByTimeAsync(2_000)
    read.resolve(FOUND)
    await vi.advanceTimersByTimeAsync(1)
    expect(await first).toContain("CRLF counts.")
  })

  test(promised("start.A5", "the request of the message after one without the task waits for it, too"), async () => {
    vi.useFakeTimers()
    const read = createDeferred<TaskRead>()
    const { taskNotes, ask } = setUp([{ kind: "unavailable", reason: "it hangs" }, read.promise])
    expect(await ask()).toContain("The ledger did not answer (it hangs)")
    await taskNotes.begin(BINDING, MODEL)
    const next = ask()
    await vi.advanceTimersByTimeAsync(2_000)
    read.resolve(FOUND)
    await vi.advanceTimersByTimeAsync(1)
    expect(await next).toContain("CRLF counts.")
  })

  test(promised("task.C2", "a missing database is said until it is back, and to the user once"), async () => {
    const missingDatabase = "/home/me/.prog/prog.db"
    const missing = { kind: "unavailable", reason: "its database is missing", missingDatabase } as const
    const { taskNotes, ask, toasts } = setUp([missing, missing, FOUND])
    for (let message = 0; message < 2; message++) {
      await taskNotes.begin(BINDING, MODEL)
      const text = await ask()
      expect(text).toContain(`The ledger's database is missing: there is no ledger at ${missingDatabase}.`)
      expect(text).toContain("`prog init` makes a new, empty one")
    }
    expect(toasts).toEqual(["the ledger's database is missing"])
    await taskNotes.begin(BINDING, MODEL)
    expect(await ask()).toContain("CRLF counts.")
  })

  test(promised("start.A3", "the user is told of an unknown task once, and not by a child session"), async () => {
    const { taskNotes, ask, toasts } = setUp([{ kind: "unknown" }, { kind: "unknown" }, { kind: "unknown" }])
    await ask()
    await taskNotes.begin(BINDING, MODEL)
    expect(await ask()).toContain("ts-b54508 (Another, open)")
    expect(toasts).toEqual(["no task ts-b54507"])
    const child = setUp([{ kind: "unknown" }])
    await child.ask({ ...BINDING, origin: "parent", order: "Count the files." })
    expect(child.toasts).toEqual([])
  })

  test(promised("claim.B2", "another's claim is told to the model and once to the user"), async () => {
    const summary = "ada (session ses_2 on host in /project) since 2026-02-09 22:17 UTC"
    const claimed = (session: string, isOwn = false) =>
      ({ kind: "found", task: { ...TASK, claim: { session, isOwn, summary: untrusted(summary) } } }) as const
    const { taskNotes, ask, toasts } = setUp([claimed("ses_2")])
    const text = await ask()
    expect(text).toContain(`the task was claimed by "${summary}"`)
    expect(text).not.toContain("are refused")
    await taskNotes.claimed(BINDING.sessionID, BINDING.taskID, summary)
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
    const task = { ...TASK, claim: { session: "ses_2", isOwn: false, summary: untrusted("ada") } }
    const { taskNotes, ask, toasts } = setUp([FOUND, { kind: "found", task }])
    const first = await ask()
    await taskNotes.claimed(BINDING.sessionID, BINDING.taskID, "ada")
    expect(await ask(), "the same from request to request").toBe(first)
    await taskNotes.begin(BINDING, MODEL)
    expect(await ask()).toContain("claimed by ada")
    expect(toasts).toEqual(["task ts-b54507", "task ts-b54507 is claimed"])
  })

  test(promised(["start.A2", "task.B3"], "the handoff for the first compaction is the newest task's"), async () => {
    const handedOver = (sessionID: string) => {
      const title = `# Handoff after compaction 1 (session ${sessionID}, summary msg_${sessionID}, 2026-01-02T03:04:05.000Z)`
      const section = `<!-- baton:handoff 0123456789ab, x -->\n${title}\n\nBy ${sessionID}.\n<!-- /baton:handoff -->`
      return { kind: "found", task: { ...TASK, description: untrusted(`CRLF counts.\n\n${section}`) } } as const
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

  test(promised("start.A2", "the last handoff of another session comes with what the user said there"), async () => {
    const section =
      "# Handoff after compaction 2 (session ses_2, summary msg_1, 2026-01-02T03:04:05.000Z)\n\n## Next\n- Go on."
    const description = `CRLF counts.\n\n<!-- baton:handoff 0123456789ab, x -->\n${section}\n<!-- /baton:handoff -->`
    const found = { kind: "found", task: { ...TASK, description: untrusted(description) } } as const
    const words = userWords("Never touch the lexer.", 0, "ses_2")
    const other = { ...BINDING, sessionID: "ses_2", said: { words: [words], leftOut: 0 } }
    const others = { ses_2: other }
    const opened = setUp([found], others)
    const text = await opened.ask()
    expect(opened.notices[0]?.message).toBe("Teach CRLF · open\nGoes on from session ses_2 (2026-01-02 03:04 UTC)")
    expect(opened.inherited, "kept for the compactions to come").toEqual(["Never touch the lexer."])
    const { lastHandoff } = await opened.sessionStates.load(BINDING.sessionID)
    expect(lastHandoff).toEqual({ summaryID: "msg_1", text: "## Next\n- Go on." })
    expect(text).toContain("Written 2026-01-02 03:04 UTC by session ses_2.")
    expect(text).toContain("```text\n## Next\n- Go on.\n```")
    expect(text).toContain("2026-01-01 00:00 UTC:\n```text\nNever touch the lexer.\n```")
    expect(text, "its own message is above").not.toContain("Mind the lexer.")
    const newer = section.replace("Go on.", "Go on from the outbox.")
    const entry: OutboxEntry = { kind: "handoff", taskID: "ts-b54507", sessionID: "ses_2", section: newer }
    expect(await setUp([found], others, [entry]).ask()).toContain("- Go on from the outbox.")
    const own = await setUp([found], others).ask(other)
    expect(own, "its own handoff").not.toContain("The last handoff")
    const elsewhere = { ses_2: { ...other, taskID: "ts-000009" } }
    expect(await setUp([found], elsewhere).ask()).not.toContain("Never touch the lexer.")
  })

  const handoffBy = (sessionID: string, at = "2026-01-02T03:04:05.000Z") =>
    `<!-- baton:handoff 0123456789ab, ${sessionID} -->\n# Handoff after compaction 1 (session ${sessionID}, summary msg_1, ${at})\n\nBy ${sessionID}.\n<!-- /baton:handoff -->`
  const foundWith = (...sections: string[]) => {
    const description = untrusted(["CRLF counts.", ...sections].join("\n\n"))
    return { kind: "found", task: { ...TASK, description } } as const
  }

  test(
    promised("start.A2", "the ledger is read while work of an ended process is recorded, and both are told"),
    async () => {
      const over = createDeferred<void>()
      const section = "# Work in progress (session ses_3, 2026-01-03T03:04:05.000Z)\n\nBy ses_3, recovered."
      const recovery = { sections: [section], over: over.promise }
      const opened = setUp([foundWith(handoffBy("ses_2"))], {}, [], "shared", undefined, recovery)
      const asking = opened.ask()
      await expect.poll(() => opened.asked).toEqual(["ts-b54507"])
      over.resolve()
      const text = await asking
      expect(text).toContain("By ses_3, recovered.")
      expect(text).toContain("By ses_2.")
    },
  )

  test(promised("words.B4", "a draft replaces the last handoff if it is newer, not if it is older"), async () => {
    const draft = `Task: ts-b54507\n${DRAFT_START}ses_2. When you lack it, use read_session. Go on.`
    const [before, after] = ["2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z"].map((at) => Date.parse(at))
    expect(await setUp([foundWith(handoffBy("ses_2"))]).ask(BINDING, draft, after)).not.toContain("By ses_2.")
    expect(await setUp([foundWith(handoffBy("ses_2"))]).ask(BINDING, draft, before)).toContain("By ses_2.")
  })

  test(promised("words.B4", "a writer is at work where it was seen so, or claims from another folder"), async () => {
    const other = { ...BINDING, sessionID: "ses_2" }
    const found = foundWith(handoffBy("ses_2"))
    const claim = { session: "ses_2", isOwn: false, summary: untrusted("ada") }
    const claimed = { ...found, task: { ...found.task, claim } }
    const now = "which works on the task now"
    expect(await setUp([found], { ses_2: other }).ask()).not.toContain(now)
    expect(await setUp([found], { ses_2: other }, [], "shared", "ses_2").ask()).toContain(now)
    // Idle with a claim.
    expect(await setUp([claimed], { ses_2: other }).ask()).not.toContain(now)
    expect(await setUp([claimed]).ask()).toContain(now)
  })

  test(
    promised(["words.B4", "words.A2"], "a subagent's handoff is no last one, and its owner's words count"),
    async () => {
      const words = userWords("Never touch the lexer.", 0, "ses_2")
      const other = { ...BINDING, sessionID: "ses_2", said: { words: [words], leftOut: 0 } }
      const child: SessionTask = {
        ...BINDING,
        sessionID: "ses_child",
        origin: "parent",
        said: NO_WORDS,
        order: "Count.",
      }
      const found = foundWith(handoffBy("ses_2"), handoffBy("ses_child", "2026-01-03T03:04:05.000Z"))
      const text = await setUp([found], { ses_2: other, ses_child: child }).ask()
      expect(text).toContain("by session ses_2. `read_session`")
      expect(text).toContain("### Handoff of a subagent on this task (session ses_child, 2026-01-03 03:04 UTC)")
      expect(text.split("Never touch the lexer.")).toHaveLength(2)
    },
  )
})
