import { expect, test } from "vitest"
import { createSessionStates } from "../../../.opencode/baton/compaction/session-state.ts"
import { createTurns } from "../../../.opencode/baton/compaction/turns.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { MessagePage, Result } from "../../../.opencode/baton/host/sessions.ts"
import { createTaskRegistry } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const SESSION = "ses_1"
const NO_DISK = { read: async () => undefined, write: async () => true, remove: async () => {} }

test(
  promised("compaction.C5", "tool uses of a resumed session count while its task is still searched for"),
  async () => {
    const history = createDeferred<void>()
    const messages = [userMessage([textPart("Task: ts-b54507")])]
    const fake = createFakeSessions(new Map([[SESSION, { messages }]]))
    const slow = async (...call: Parameters<typeof fake.messages>): Promise<Result<MessagePage>> => {
      await history.promise
      return fake.messages(...call)
    }
    const log = createRecordedLog()
    const tasks = createTaskRegistry({
      store: NO_DISK,
      sessions: { ...fake, messages: slow },
      log,
      now: () => new Date("2026-01-01T00:00:00.000Z"),
    })
    const sessionStates = createSessionStates(NO_DISK)
    const turns = createTurns({
      tasks,
      sessionStates,
      openings: {
        begin: async () => {},
        find: () => Promise.reject(new Error("no request is made")),
        forget: () => {},
      },
      loadCompaction: () => Promise.reject(new Error("no compaction comes")),
      root: "/project",
      log,
    })
    const search = tasks.find(SESSION)
    turns.toolUsed(SESSION, { tool: "edit", args: { filePath: "/project/src/a.ts" }, metadata: {} })
    history.resolve()
    await search
    turns.stop()
    expect((await sessionStates.load(SESSION)).activity.files).toMatchObject([{ path: "src/a.ts", changes: 1 }])
  },
)
