import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { TextPart, UserMessage } from "@opencode-ai/sdk"
import { expect, test } from "vitest"
import { createCompactionHooks } from "../../../.opencode/baton/compaction/hooks.ts"
import { openCore } from "../../../.opencode/baton/core/core.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

const SESSION = "ses_1"

// A hook has one second, and vitest may need longer to transform the files.
await import("../../../.opencode/baton/compaction/feature.ts")

/** The hooks of a project with a session whose first message names a task. */
const open = async () => {
  const directory = temporaryFolder()
  const client = { session: {}, app: { log: async () => undefined } }
  const hooks = createCompactionHooks(openCore({ client, directory, worktree: directory } as unknown as PluginInput))
  const created = { type: "session.created", properties: { info: { id: SESSION, time: { created: 1 } } } }
  await hooks.event?.({ event: created } as Parameters<NonNullable<Hooks["event"]>>[0])
  const message: UserMessage = {
    id: "msg_1",
    sessionID: SESSION,
    role: "user",
    time: { created: 1 },
    agent: "build",
    model: { providerID: "p", modelID: "m" },
  }
  const part: TextPart = { id: "prt_1", sessionID: SESSION, messageID: "msg_1", type: "text", text: "Task: ts-b54507" }
  await hooks["chat.message"]?.({ sessionID: SESSION }, { message, parts: [part] })
  const file = join(directory, ".opencode", "state", "tasks", `${SESSION}.json`)
  return { stored: () => (existsSync(file) ? readFileSync(file, "utf8") : undefined) }
}

test(promised(["task.B2", "start.A5"], "the task is on disk before OpenCode makes the request"), async () => {
  const { stored } = await open()
  expect(stored()).toContain("ts-b54507")
})
