import { type CompletedCompaction, summaryLine } from "../host/completed-compaction.ts"
import type { Log } from "../host/log.ts"
import type { Outbox } from "../ledger/outbox-entry.ts"
import type { TaskBinding } from "../task/binding.ts"
import type { Facts } from "../task/facts.ts"
import { createMeter, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import type { Gathered } from "./gather.ts"
import { parseHandoffTitle, renderHandoffSection } from "./handoff-section.ts"
import { type CompactionJournal, type Journals, withNote, withRecorded } from "./journal.ts"
import { renderResumeNote } from "./resume-note.ts"

export type Recorder = {
  /** Records a compaction once, however often and from wherever it is reported. @returns the note for the next turns */
  record(binding: TaskBinding, compaction: CompletedCompaction): Promise<string>
}

export type RecorderDeps = {
  journals: Journals
  outbox: Pick<Outbox, "add" | "addUnlessKnown" | "waiting" | "flush">
  gather: (binding: TaskBinding, journal: CompactionJournal) => Promise<Gathered>
  log: Log
  now: () => Date
}

/**
 * How long a compaction waits for its record to reach the ledger. OpenCode may exit right after the next turn without
 * telling its plugins (1.2.15 does), and observers look now; what is not there in time comes from the outbox later.
 */
const DELIVERY_WAIT_MS = 1_000

const counted = (count: number, one: string, several: string): string => `${count} ${count === 1 ? one : several}`

const logMessage = (number: number, { summary }: CompletedCompaction, { activity }: Facts): string => {
  if (summary !== "") return `Compaction ${number}: ${summaryLine(summary)}`
  const changed = activity.files.filter((file) => file.changes > 0).length
  const files = counted(changed, "file changed", "files changed")
  const failures = counted(activity.failures.length, "failing command", "failing commands")
  return `Compaction ${number}: the summary was empty; known by program: ${files}, ${failures}`
}

export const createRecorder = ({ journals, outbox, gather, log, now }: RecorderDeps): Recorder => {
  const running = new Map<string, Promise<string>>()

  /** What a session knew whose journal never reached the disk or is damaged: its newest handoff says it. */
  const recall = async (
    { sessionID, taskID }: TaskBinding,
    journal: CompactionJournal,
    inLedger: string | undefined,
  ): Promise<CompactionJournal> => {
    const inOutbox = (await outbox.waiting(taskID)).flatMap((entry) => (entry.kind === "handoff" ? entry.section : []))
    const newest = [...(inLedger === undefined ? [] : [inLedger]), ...inOutbox]
      .flatMap((section) => parseHandoffTitle(section) ?? [])
      .findLast((title) => title.sessionID === sessionID)
    if (!newest) return journal
    log.info("the count of compactions is taken from the newest handoff", { taskID, ...newest })
    return journals.update(sessionID, (current) => ({
      ...current,
      count: newest.number,
      recorded: [newest.summaryID],
    }))
  }

  const recordOnce = async (binding: TaskBinding, compaction: CompletedCompaction): Promise<string> => {
    const { sessionID, taskID } = binding
    const stored = await journals.load(sessionID)
    const isStored = stored.recorded.includes(compaction.summaryID)
    if (isStored && stored.note?.requestID === compaction.requestID) return stored.note.text
    const gathered = await gather(binding, stored)
    const journal = stored.recorded.length > 0 ? stored : await recall(binding, stored, gathered.handoff)
    const isRecorded = journal.recorded.includes(compaction.summaryID)
    const number = isRecorded ? journal.count : journal.count + 1
    const { identity } = gathered
    const facts = { ...gathered.facts, compactions: number }
    const note = renderResumeNote({
      identity,
      facts,
      number,
      summary: compaction.summary,
      ...(journal.lastHandoff ? { earlierHandoff: journal.lastHandoff.text } : {}),
      meter: createMeter(journal.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
    })
    if (isRecorded) {
      await journals.update(sessionID, (current) => withNote(current, compaction, note))
      return note
    }
    const specification = journal.specification ?? identity.ledger?.specification
    const wasCutOff = journal.recording === compaction.summaryID
    await journals.update(sessionID, (current) => ({ ...current, recording: compaction.summaryID }))
    await journals.save(sessionID)
    // Its journal is lost, and the ledger cannot be asked now.
    const isUnsure = journal.recorded.length === 0 && identity.ledger === undefined && !gathered.wasPrepared
    const add = wasCutOff || isUnsure ? outbox.addUnlessKnown : outbox.add
    await add({ kind: "log", taskID, message: logMessage(number, compaction, facts) })
    await add({
      kind: "handoff",
      taskID,
      sessionID,
      section: renderHandoffSection({ number, sessionID }, now(), compaction, facts, journal.lastHandoff?.text),
      ...(specification === undefined ? {} : { specification }),
    })
    await journals.update(sessionID, (current) => withRecorded({ ...current, specification }, compaction, note))
    await journals.save(sessionID)
    log.info("compaction recorded", { sessionID, taskID, number, empty: compaction.summary === "" })
    await outbox.flush(DELIVERY_WAIT_MS)
    return note
  }

  return {
    record: (binding, compaction) => {
      const known = running.get(compaction.summaryID)
      if (known) return known
      const started = recordOnce(binding, compaction).finally(() => running.delete(compaction.summaryID))
      running.set(compaction.summaryID, started)
      return started
    },
  }
}
