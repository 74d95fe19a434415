import { describe, expect, test } from "vitest"
import { createCompaction } from "../../../.opencode/baton/compaction/compaction.ts"
import {
  createSessionStates,
  EMPTY_STATE,
  type SessionState,
} from "../../../.opencode/baton/compaction/session-state.ts"
import { createTurns } from "../../../.opencode/baton/compaction/turns.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import type { JsonStore } from "../../../.opencode/baton/host/state.ts"
import { createTaskRegistry, type SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import { assistantMessage, compactionPart, textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const { sessionID } = BINDING

const onDisk = <T>(value: T | undefined): Pick<JsonStore<T>, "read" | "write" | "remove"> => ({
  read: async () => value,
  write: async () => true,
  remove: async () => {},
})

/** A session whose newest message asks for a compaction. */
const conversation = (count: number): StoredMessage[] =>
  Array.from({ length: count }, (_, at) => {
    const id = `msg_${String(at).padStart(6, "0")}`
    if (at === count - 1) return userMessage([compactionPart()], id)
    return at % 2 === 0 ? userMessage([textPart(`Question ${at}.`)], id) : assistantMessage("Answer.", {}, { id })
  })

/** Calls to OpenCode by a process with this state on disk. */
const setUp = (count: number, { cursors, sessionState }: { cursors: boolean; sessionState?: SessionState }) => {
  const messages = conversation(count)
  const sessions = createFakeSessions(new Map([[sessionID, { messages }]]), { cursors })
  const log = createRecordedLog()
  const now = () => new Date("2026-01-01T00:00:00.000Z")
  const bindings: Pick<JsonStore<SessionTask>, "read" | "write" | "remove"> = onDisk(BINDING)
  const tasks = createTaskRegistry({ store: bindings, sessions, log, now })
  const sessionStates = createSessionStates(onDisk(sessionState))
  const turns = createTurns({
    tasks,
    sessionStates,
    openings: {
      begin: async () => {},
      find: async ({ taskID, role }) => ({ taskID, role, text: "The task.", isComplete: true }),
      forget: () => {},
    },
    loadCompaction: async (seen) =>
      createCompaction({
        tasks,
        sessionStates,
        outbox: { add: async () => {}, addIfMissing: async () => {}, pending: async () => [], flush: async () => {} },
        ledger: { readTask: async () => ({ kind: "unknown" }) },
        prompts: { read: () => ({ kind: "text", path: "prompts/handoff.md", text: "Sum it up." }) },
        sessions,
        root: "/project",
        log,
        now,
        seen,
      }),
    root: "/project",
    log,
  })
  return {
    seeTurn: async () => (await turns.addNote(messages.slice(0, -1)))?.(),
    compact: async () => {
      const output: { context: string[]; prompt?: string } = { context: [] }
      ;(await turns.preparePrompt(sessionID, output))?.()
      expect(output.prompt).toContain("Sum it up.")
      return sessions.calls.map(({ limit }) => limit)
    },
  }
}

const COMPACTED: SessionState = {
  ...EMPTY_STATE,
  count: 1,
  recorded: ["msg_0"],
  lastHandoff: { summaryID: "msg_0", text: "The handoff." },
}

describe.each([true, false])("the messages that the compacting hook asks for (cursors: %s)", (cursors) => {
  test(promised("speed.G2", "are the newest ten in a session whose turns were seen, however long it is"), async () => {
    for (const count of [10, 10_000]) {
      const { seeTurn, compact } = setUp(count, { cursors })
      await seeTurn()
      expect(await compact(), `${count} messages`).toEqual([10])
    }
  })

  test(promised("speed.G2", "are the newest ten where a session goes on that was compacted before"), async () => {
    for (const count of [10, 10_000]) {
      const { compact } = setUp(count, { cursors, sessionState: COMPACTED })
      expect(await compact(), `${count} messages`).toEqual([10])
    }
  })

  test(promised("speed.G2", "are at most 10 pages of 50 more where nothing is known of the session"), async () => {
    const few = await setUp(10, { cursors }).compact()
    expect(few).toEqual([50, 10])
    const many = await setUp(10_000, { cursors }).compact()
    expect(many.filter((limit) => limit === 10)).toEqual([10])
    expect(many.filter((limit) => limit === 50)).toHaveLength(cursors ? 10 : 1)
  })
})
