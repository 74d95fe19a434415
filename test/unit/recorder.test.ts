import { describe, expect, test } from "vitest"
import { type CompactionJournal, createJournals } from "../../.opencode/baton/compaction/journal.ts"
import { createRecorder } from "../../.opencode/baton/compaction/recorder.ts"
import type { OutboxEntry } from "../../.opencode/baton/ledger/outbox-entry.ts"
import { EMPTY_ACTIVITY } from "../../.opencode/baton/task/activity.ts"
import { promised } from "../requirements.ts"
import { createRecordedLog } from "../support/recorded-log.ts"
import { BINDING } from "../support/task-binding.ts"

const compaction = (at: number, summary = `Summary ${at}.`) => ({
  requestID: `msg_r${at}`,
  summaryID: `msg_s${at}`,
  summary,
})

const setUp = (
  disk = new Map<string, CompactionJournal>(),
  known: { handoff?: string; waiting?: OutboxEntry[] } = {},
) => {
  const added: OutboxEntry[] = []
  const again: OutboxEntry[] = []
  const journals = createJournals({
    read: async (sessionID) => disk.get(sessionID),
    write: async (sessionID, journal) => {
      disk.set(sessionID, journal)
      return true
    },
    remove: async () => {},
  })
  const recorder = createRecorder({
    journals,
    outbox: {
      add: async (entry) => void added.push(entry),
      addUnlessKnown: async (entry) => void again.push(entry),
      waiting: async () => known.waiting ?? [],
      flush: async () => {},
    },
    gather: async (_binding, journal) => ({
      identity: {
        taskID: BINDING.taskID,
        role: "worker",
        brief: BINDING.brief,
        protocol: "",
        ledger: { title: "T", status: "open", specification: "The specification." },
      },
      facts: { compactions: journal.count, activity: EMPTY_ACTIVITY, todos: [] },
      ...(known.handoff === undefined ? {} : { handoff: known.handoff }),
    }),
    log: createRecordedLog(),
    now: () => new Date("2026-01-01T00:00:00.000Z"),
  })
  return { recorder, added, again, disk, journals }
}

const messages = (entries: OutboxEntry[]) => entries.flatMap((entry) => (entry.kind === "log" ? [entry.message] : []))

describe("the recorder", () => {
  test(
    promised("soak.B3", "a journal is as long after 500 compactions as after 150, and tells of the newest"),
    async () => {
      const { recorder, disk } = setUp()
      const sizes: number[] = []
      for (let at = 1_001; at <= 1_500; at++) {
        await recorder.record(BINDING, compaction(at))
        sizes.push(JSON.stringify(disk.get(BINDING.sessionID)).length)
      }
      expect(sizes[499]).toBe(sizes[149])
      expect(disk.get(BINDING.sessionID)).toMatchObject({ count: 500, lastHandoff: { summaryID: "msg_s1500" } })
    },
  )

  test(promised("compaction.C7", "a compaction reported twice at the same time is recorded once"), async () => {
    const { recorder, added } = setUp()
    const notes = await Promise.all([recorder.record(BINDING, compaction(1)), recorder.record(BINDING, compaction(1))])
    expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
    expect(notes[0]).toBe(notes[1])
  })

  test(
    promised("compaction.C7", "after a restart the count goes on, nothing is repeated, and the note is the same text"),
    async () => {
      const first = setUp()
      const note = await first.recorder.record(BINDING, compaction(1))
      const second = setUp(first.disk)
      expect(await second.recorder.record(BINDING, compaction(1))).toBe(note)
      await second.recorder.record(BINDING, compaction(2))
      expect(messages(second.added)).toEqual(["Compaction 2: Summary 2."])
    },
  )

  test(
    promised("compaction.C7", "the handoff carries summary, number and the specification as first seen"),
    async () => {
      const { recorder, added } = setUp()
      await recorder.record(BINDING, compaction(1))
      const handoff = added.find((entry) => entry.kind === "handoff")
      expect(handoff).toMatchObject({ specification: "The specification." })
      expect(handoff?.kind === "handoff" && handoff.section).toMatch(
        /Handoff after compaction 1 \(session ses_1.*Summary 1\./s,
      )
    },
  )

  test.each(["the ledger", "the outbox"])(
    promised("compaction.C7", "a session whose journal is lost finds its newest compaction in %s"),
    async (place) => {
      const first = setUp()
      await first.recorder.record(BINDING, compaction(1))
      await first.recorder.record(BINDING, compaction(2))
      const newest = first.added.findLast((entry) => entry.kind === "handoff")
      const handoff = newest?.kind === "handoff" ? newest.section : ""
      const second = setUp(new Map(), place === "the ledger" ? { handoff } : { waiting: first.added })
      expect(await second.recorder.record(BINDING, compaction(2))).toContain(BINDING.taskID)
      expect(second.added).toEqual([])
      await second.recorder.record(BINDING, compaction(3))
      expect(messages(second.added)).toEqual(["Compaction 3: Summary 3."])
    },
  )

  test(promised("compaction.C7", "the handoff of another session says nothing of this one's count"), async () => {
    const handoff = "# Handoff after compaction 7 (session ses_2, summary msg_s1, 2026-01-01T00:00:00.000Z)\n\nText."
    const { recorder, added } = setUp(new Map(), { handoff })
    await recorder.record(BINDING, compaction(1))
    expect(messages(added)).toEqual(["Compaction 1: Summary 1."])
  })

  test(promised("compaction.C8", "an empty summary keeps the last handoff with a text"), async () => {
    const { recorder, added, journals } = setUp()
    await recorder.record(BINDING, compaction(1))
    const note = await recorder.record(BINDING, compaction(2, ""))
    expect(messages(added)[1]).toMatch(/^Compaction 2: the summary was empty/)
    expect(note).toContain("Summary 1.")
    expect((await journals.load("ses_1")).lastHandoff?.text).toBe("Summary 1.")
  })

  test(
    promised("faults.F2", "a recording that a kill cut off is taken up without repeating what was written"),
    async () => {
      const first = setUp()
      await first.recorder.record(BINDING, compaction(1))
      const journal = first.disk.get("ses_1")
      const cutOff = {
        ...journal,
        version: 1 as const,
        count: 0,
        recorded: [],
        recording: "msg_s1",
        activity: EMPTY_ACTIVITY,
      }
      const second = setUp(new Map([["ses_1", cutOff]]))
      await second.recorder.record(BINDING, compaction(1))
      expect(second.added).toEqual([])
      expect(messages(second.again)).toEqual(["Compaction 1: Summary 1."])
    },
  )
})
