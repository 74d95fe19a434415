import { expect, test } from "vitest"
import { createRecorder } from "../../../.opencode/baton/compaction/recorder.ts"
import type { SessionState } from "../../../.opencode/baton/compaction/session-state.ts"
import { createSessionStates } from "../../../.opencode/baton/compaction/session-state.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { CompletedCompaction } from "../../../.opencode/baton/host/messages.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { EMPTY_ACTIVITY } from "../../../.opencode/baton/task/activity.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createFakeSessions, createMemoryStore, createRecordedLog, taskWords } from "../../support/unit.ts"

const compaction = (at: number, summary = `Summary ${at}.`) =>
  ({ requestID: `msg_r${at}`, summaryID: `msg_s${at}`, createdAt: at, summary }) as const

const OTHER_BINDING = { ...BINDING, taskID: "ts-0aa111" }

type Known = {
  handoff?: string
  /** Undefined for an outbox that cannot be read. */
  waiting?: OutboxEntry[] | undefined
  bornAt?: number
  flush?: Promise<void>
  /** Awaited by the outbox before it takes a record. */
  gate?: Promise<void>
  isSilent?: boolean
}

const setUp = (disk = new Map<string, SessionState>(), known: Known = {}) => {
  const added: OutboxEntry[] = []
  const told: string[] = []
  const sessionStates = createSessionStates(createMemoryStore(disk))
  const recorder = createRecorder({
    sessionStates,
    sessions: createFakeSessions(new Map([["ses_1", { info: { time: { created: known.bornAt ?? 0 } } }]])),
    outbox: {
      add: async (entry) => {
        await known.gate
        added.push(entry)
      },
      pending: async () => ("waiting" in known ? known.waiting : []),
      flush: () => known.flush ?? Promise.resolve(),
    },
    loadContext: async ({ taskID, role, said }, { count }) => {
      const specification = untrusted(`The specification of ${taskID}.`)
      const ledger = { title: untrusted("T"), status: untrusted("open"), specification }
      const identity = { taskID, role, said, protocol: "", hasShell: true }
      return {
        identity: known.isSilent ? identity : { ...identity, ledger },
        logs: [],
        facts: { compactions: count, activity: EMPTY_ACTIVITY, todos: [] },
        handoffs: known.handoff === undefined ? [] : [known.handoff],
      }
    },
    instructions: () => "Sum it up.",
    notices: ({ title, message }) => void told.push(`${title}: ${message}`),
    log: createRecordedLog(),
    now: () => new Date("2026-01-01T00:00:00.000Z"),
  })
  const report = (binding: SessionTask, ended: CompletedCompaction, hasShell = true) =>
    recorder.record(binding, ended, hasShell)
  /** Until the record is written. */
  const record = async (...reported: Parameters<typeof report>) => {
    const noted = await report(...reported)
    await noted.delivered
    return noted
  }
  return { report, record, added, told, disk, sessionStates }
}

const messages = (entries: OutboxEntry[]) =>
  entries.flatMap((entry) => (entry.kind === "log" ? [entry.message.replace(" (session ses_1)", "")] : []))
const handoffs = (entries: OutboxEntry[]) => entries.filter((entry) => entry.kind === "handoff")
const newestHandoff = (entries: OutboxEntry[]) => handoffs(entries).at(-1)?.section ?? ""

test(promised("notices.A1", "the user is told once of a recorded compaction, with the next step"), async () => {
  const { record, told } = setUp()
  const summaries = [
    "It went fine.",
    "## Done\n- The lexer.\n\n## Next\n- Write the CRLF test.",
    "Sorry, I cannot.",
    "",
  ]
  for (const [at, summary] of summaries.entries())
    for (let again = 0; again < 2; again++) await record(BINDING, compaction(at + 1, summary))
  expect(told).toEqual([
    `compaction 1 recorded: ${BINDING.taskID} · It went fine.`,
    `compaction 2 recorded: ${BINDING.taskID} · next: Write the CRLF test.`,
    `compaction 3 recorded: ${BINDING.taskID} · the summary says less than the one before it, which is kept`,
    `compaction 4 recorded: ${BINDING.taskID} · the summary was empty; the task is kept`,
  ])
})

test(promised("start.A2", "the handoff of an earlier session stands in the first note alone"), async () => {
  const { record, sessionStates } = setUp()
  const lastHandoff = { summaryID: "msg_other", text: "Line 12 is proven." }
  await sessionStates.update("ses_1", (sessionState) => ({ ...sessionState, lastHandoff }))
  const first = await record(BINDING, compaction(1, "It went fine."))
  const second = await record(BINDING, compaction(2, "It went fine again."))
  expect(first.note).toContain("older than the summary\n```text\nLine 12 is proven.")
  expect(second.note).not.toContain("Line 12 is proven.")
})

test(promised("words.A5c", "a key that a summary repeats is in no record, note or state"), async () => {
  const { record, added, told, disk } = setUp()
  const key = `sk-live-${"0123456789abcdef"}`
  await record(BINDING, compaction(1, `The client has the key ${key}.`))
  const { note } = await record(BINDING, compaction(2, "Sorry, I cannot."))
  expect(newestHandoff(added)).toContain("The client has the key [redacted].")
  expect(JSON.stringify([added, note, told, [...disk]])).not.toContain(key)
})

test(promised("soak.B3", "a session's state does not grow, and tells of the newest compaction"), async () => {
  const { record, disk } = setUp()
  const sizes: number[] = []
  for (let at = 1_001; at <= 1_500; at++) {
    await record(BINDING, compaction(at))
    sizes.push(JSON.stringify(disk.get(BINDING.sessionID)).length)
  }
  expect(sizes[499]).toBe(sizes[149])
  expect(disk.get(BINDING.sessionID)).toMatchObject({ count: 500, lastHandoff: { summaryID: "msg_s1500" } })
})

test(promised("compaction.C7", "a compaction reported twice at the same time is recorded once"), async () => {
  const { report, added } = setUp()
  const notes = await Promise.all([report(BINDING, compaction(1)), report(BINDING, compaction(1))])
  await Promise.all(notes.map(({ delivered }) => delivered))
  expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
  expect(notes[0].note).toBe(notes[1].note)
})

test(promised("compaction.C7", "after a restart the count goes on, and nothing is repeated"), async () => {
  const first = setUp()
  const { note } = await first.record(BINDING, compaction(1))
  const second = setUp(first.disk)
  expect((await second.record(BINDING, compaction(1))).note).toBe(note)
  await second.record(BINDING, compaction(2))
  expect(messages(second.added)).toEqual(["Compaction 2: Summary 2."])
})

test(promised("compaction.C7", "a handoff carries summary, number and its task's specification"), async () => {
  const { record, added } = setUp()
  await record(BINDING, compaction(1))
  await record(OTHER_BINDING, compaction(2))
  const expected = (taskID: string) => ({ taskID, specification: `The specification of ${taskID}.` })
  expect(handoffs(added)).toMatchObject([BINDING, OTHER_BINDING].map(({ taskID }) => expected(taskID)))
  expect(handoffs(added)[0]?.section).toMatch(/Handoff after compaction 1 \(session ses_1.*Summary 1\./s)
})

test(promised("task.B3", "a task that the session changed to is in the note of the compaction before"), async () => {
  const { record, added } = setUp()
  await record(BINDING, compaction(1))
  const recorded = [...added]
  const { note } = await record(OTHER_BINDING, compaction(1))
  expect(note).toContain(`on task ${OTHER_BINDING.taskID}`)
  expect((await record(OTHER_BINDING, compaction(1))).note).toBe(note)
  expect(added).toEqual(recorded)
})

test.each(["the ledger", "the outbox"])(
  promised("compaction.C7", "another process's record is known by %s"),
  async (place) => {
    const known: Known = {}
    const here = setUp(new Map(), known)
    await here.record(OTHER_BINDING, compaction(1))
    const there = setUp(new Map(here.disk))
    await there.record(BINDING, compaction(2))
    if (place === "the outbox") known.waiting = there.added
    else known.handoff = newestHandoff(there.added)
    expect((await here.record(BINDING, compaction(2))).note).toContain("compaction 2 of this session")
    await here.record(BINDING, compaction(3))
    expect(messages(here.added)).toEqual(["Compaction 1: Summary 1.", "Compaction 3: Summary 3."])
  },
)

test(promised("compaction.C7", "a summary that a fork brought along has a note and no record"), async () => {
  const { record, added, sessionStates } = setUp(new Map(), { bornAt: 5 })
  const { note } = await record(BINDING, compaction(4))
  expect(note).toContain("was compacted before this session was forked.")
  expect((await record(BINDING, compaction(4))).note).toBe(note)
  expect(added).toEqual([])
  expect((await sessionStates.load("ses_1")).lastHandoff?.text).toBe("Summary 4.")
  await record(BINDING, compaction(6))
  expect(messages(added)).toEqual(["Compaction 1: Summary 6."])
})

test(promised("compaction.C6", "the note waits for no slow ledger, a second report of the record does"), async () => {
  const flush = createDeferred<void>()
  const { report } = setUp(new Map(), { flush: flush.promise })
  const first = await report(BINDING, compaction(1))
  expect(first.note).toContain(BINDING.taskID)
  const second = await report(BINDING, compaction(1))
  expect(second.delivered).toBe(first.delivered)
  flush.resolve()
  await second.delivered
})

test(promised("words.C1", "the note is there while the outbox hangs on a disk that refuses"), async () => {
  const gate = createDeferred<void>()
  const { report, added } = setUp(new Map(), { gate: gate.promise })
  const { note, delivered } = await report(BINDING, compaction(1))
  expect(note).toContain("The summary below is the task's newest handoff and is recorded in prog")
  expect(added).toEqual([])
  gate.resolve()
  await delivered
  expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
})

const GOOD = "## Done\n- Line 12 is proven.\n\n## Next\n- Write the CRLF test."

test(
  promised("words.A4", "a summary that says less is recorded as that, before the handoff that it keeps"),
  async () => {
    const { record, added, sessionStates } = setUp()
    await record(BINDING, compaction(1, GOOD))
    const { note } = await record(BINDING, compaction(2, "I'm sorry, I can't help with that."))
    const remark = "The summary of this compaction has none of the headings of a handoff"
    expect(messages(added)[1]).toBe(`Compaction 2: I'm sorry, I can't help with that. [${remark}]`)
    expect(newestHandoff(added)).toContain(
      `\n\n${remark}.\n\n\`\`\`text\nI'm sorry, I can't help with that.\n\`\`\`\n\nThe handoff before it:\n\n${GOOD}\n\n`,
    )
    expect(note).toContain(`## The last handoff that says more than the summary\n\`\`\`text\n${GOOD}\n\`\`\``)
    expect((await sessionStates.load("ses_1")).lastHandoff?.text).toBe(GOOD)
    const third = await record(BINDING, compaction(3, GOOD.replace("12", "13")))
    expect(third.note).not.toContain("Line 12 is proven.")
  },
)

test(promised("words.A2", "the ledger's section has the user's words behind the facts"), async () => {
  const { record, added } = setUp()
  await record({ ...BINDING, said: taskWords("First.", "Never touch the lexer.") }, compaction(1))
  expect(newestHandoff(added)).toMatch(
    /\n\n## Facts gathered by program\n[\s\S]*\n\n## The user's own words, newest first\nLater words outrank[^\n]*\n\n2026-01-01 00:00 UTC:\n```text\nNever touch the lexer\.\n```\n\n2026-01-01 00:00 UTC:\n```text\nFirst\.\n```$/,
  )
})

test(promised("task.D3", "the note is made again for an agent without a shell, and recorded once"), async () => {
  const { record, added } = setUp()
  expect((await record(BINDING, compaction(1))).note).toContain("`prog show ts-b54507`")
  const { note } = await record(BINDING, compaction(1), false)
  expect(note).toContain("`task_show`")
  expect(note).not.toContain("`prog ")
  expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
})

test.each([
  ["the ledger is silent", { isSilent: true }],
  ["the outbox cannot be read", { waiting: undefined }],
  ["a kill cut its record off", {}],
])(
  promised(["compaction.C7", "faults.F2"], "a compaction whose state is lost has the line it had before, where %s"),
  async (_, fault) => {
    const [before, after] = [setUp(), setUp(new Map(), fault)]
    for (const { record } of [before, after]) await record(BINDING, compaction(1))
    expect(messages(after.added)).toEqual(messages(before.added))
  },
)

test(promised("compaction.C7", "the handoff of another session says nothing of this one's count"), async () => {
  const handoff = "# Handoff after compaction 7 (session ses_2, summary msg_s1, 2026-01-01T00:00:00.000Z)\n\nText."
  const { record, added } = setUp(new Map(), { handoff })
  await record(BINDING, compaction(1))
  expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
})

test(promised("compaction.C8", "an empty summary keeps the last handoff with a text"), async () => {
  const { record, added, sessionStates } = setUp()
  await record(BINDING, compaction(1))
  const { note } = await record(BINDING, compaction(2, ""))
  expect(messages(added)[1]).toMatch(/^Compaction 2: the summary was empty/)
  expect(note).toContain("Summary 1.")
  expect((await sessionStates.load("ses_1")).lastHandoff?.text).toBe("Summary 1.")
})

test(promised(["compaction.C8", "task.B3"], "an empty summary brings no earlier task's handoff along"), async () => {
  const { record, added } = setUp()
  await record(BINDING, compaction(1))
  await record(OTHER_BINDING, compaction(1))
  const { note } = await record(OTHER_BINDING, compaction(2, ""))
  expect(note).toContain("Summary 1.")
  expect(newestHandoff(added)).toContain("There is no earlier handoff.")
})
