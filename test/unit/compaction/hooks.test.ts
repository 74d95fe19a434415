import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { UserMessage } from "@opencode-ai/sdk"

import { describe, expect, onTestFinished, test } from "vitest"
import { createCompactionHooks } from "../../../.opencode/baton/compaction/hooks.ts"
import { openCore } from "../../../.opencode/baton/core/core.ts"

import { promised } from "../../requirements.ts"
import { temporaryFolder, userSays } from "../../support/unit.ts"

const CREATED_AT = 1_000

// A hook has one second, and vitest may need longer to transform the files.
await import("../../../.opencode/baton/compaction/feature.ts")

type MessagesOutput = Parameters<NonNullable<Hooks["experimental.chat.messages.transform"]>>[1]

/** The hooks of a project, and their calls to OpenCode. */
const open = () => {
  const directory = temporaryFolder()
  const asked: string[] = []
  const ask = (call: string) => async () => {
    asked.push(call)
    return { data: call === "get" ? { id: "ses_1" } : [] }
  }
  const session = { messages: ask("messages"), get: ask("get"), todo: ask("todo") }
  const client = { session, app: { log: async () => undefined } }
  const hooks = createCompactionHooks(openCore({ client, directory, worktree: directory } as unknown as PluginInput))
  // An outbox that is not stopped goes on trying in the tests that share this process.
  onTestFinished(async () => hooks.dispose?.())
  const event = (type: string, info: object) =>
    hooks.event?.({ event: { type, properties: { info } } } as Parameters<NonNullable<Hooks["event"]>>[0])
  return {
    hooks,
    asked,
    state: join(directory, ".opencode", "state"),
    create: (id: string, parentID?: string) =>
      event("session.created", { id, parentID, time: { created: CREATED_AT } }),
    request: async (sessionID: string, createdAt: number) => {
      const { info, parts } = userSays("Go on.")
      const messages = [{ info: { ...info, sessionID, time: { created: createdAt } }, parts }]
      await hooks["experimental.chat.messages.transform"]?.({}, { messages } as MessagesOutput)
    },
  }
}

describe("a session", () => {
  test(promised("task.B4", "a session that began here without a task is looked up nowhere"), async () => {
    const { create, request, asked } = open()
    await create("ses_1")
    await request("ses_1", CREATED_AT)
    await create("ses_2", "ses_1")
    await request("ses_2", CREATED_AT + 1)
    expect(asked).toEqual([])
  })

  test(
    promised("task.B4", "a session is not looked up because a record of another one waits for the ledger"),
    async () => {
      const { create, request, asked, state } = open()
      mkdirSync(join(state, "outbox"), { recursive: true })
      writeFileSync(join(state, "outbox", "1780000000000-000000-1a2b3c4d.json"), "{}")
      await create("ses_1")
      await request("ses_1", CREATED_AT)
      expect(asked).toEqual([])
    },
  )

  test(promised("task.B3", "a session is looked up once its parent may have a task, as all its kin"), async () => {
    const { hooks, create, request, state } = open()
    await create("ses_1")
    for (const [child, parent] of [
      ["ses_2", "ses_1"],
      ["ses_3", "ses_2"],
      ["ses_4", "ses_1"],
    ]) {
      await create(child ?? "", parent)
      await request(child ?? "", CREATED_AT)
    }
    const { info, parts } = userSays("Task: ts-b54507")
    await hooks["chat.message"]?.({ sessionID: "ses_1" }, { message: info as UserMessage, parts })
    for (const child of ["ses_3", "ses_4"]) {
      await request(child, CREATED_AT)
      expect(readFileSync(join(state, "tasks", `${child}.json`), "utf8")).toContain("ts-b54507")
    }
  })

  test(promised("task.B2", "a session whose parent was there before is looked up"), async () => {
    const { create, request, asked } = open()
    await create("ses_1", "ses_0")
    await request("ses_1", CREATED_AT)
    expect(asked).not.toEqual([])
  })
})

test(promised(["task.B2", "start.A5"], "the task is on disk before OpenCode makes the request"), async () => {
  const { hooks, create, state } = open()
  await create("ses_1")
  const { info, parts } = userSays("Task: ts-b54507")
  await hooks["chat.message"]?.({ sessionID: "ses_1" }, { message: info as UserMessage, parts })
  expect(readFileSync(join(state, "tasks", "ses_1.json"), "utf8")).toContain("ts-b54507")
})

test(promised("task.D1", "a command of the user's named task is left alone, and so are both names"), async () => {
  const own = { template: "mine" }
  const registered = async (command: Record<string, { template: string }>) => {
    const config = { command }
    await open().hooks.config?.(config)
    return Object.entries(config.command).map(([name, { template }]) => [name, template === "mine"])
  }
  expect(await registered({})).toEqual([["task", false]])
  expect(await registered({ task: own })).toEqual([
    ["task", true],
    ["baton-task", false],
  ])
  expect(await registered({ task: own, "baton-task": own })).toEqual([
    ["task", true],
    ["baton-task", true],
  ])
})
