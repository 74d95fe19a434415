import { join } from "node:path"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"
import { expect, onTestFinished, test, vi } from "vitest"
import { promised } from "../../requirements.ts"
import { sourceFiles } from "../../support/files/source-files.ts"
import { openTestLedger } from "../../support/ledger/test-ledger.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { assistantMessage, compactionPart, textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { LEDGER_WAIT_MS, TASK } from "../../support/opencode/task-project.ts"
import { createTestProject } from "../../support/opencode/test-project.ts"

type LogCall = { body: { level: string; message: string } }
type HookName = Exclude<keyof Hooks, "tool" | "auth" | "provider" | "dispose">

const SESSION = "ses_1"

// A hook has one second, and vitest may need longer to transform the files.
await import("../../../.opencode/baton/compaction/feature.ts")
await import("../../../.opencode/baton/learning/learning.ts")

/** A client like that of OpenCode Desktop's plugins, with a session without messages. */
const createClient = (said: string[]) => {
  const ok = (data: unknown) => async () => ({ data })
  return {
    app: { log: async ({ body }: LogCall) => said.push(`${body.level} ${body.message}`) },
    config: { providers: ok({ providers: [] }) },
    tui: { showToast: ok(true) },
    session: { messages: ok([]), todo: ok([]), get: ok({ id: SESSION, title: "", projectID: "p", directory: "/" }) },
  }
}

/** A project with a task in the embedded ledger, and the six plugins loaded on Node: without Bun and its `$`. */
const openOnNode = async () => {
  const project = createTestProject({ binary: NEWEST, modelURL: "" })
  onTestFinished(() => project.remove())
  const { directory, environment } = project
  for (const [name, value] of Object.entries({ ...environment, BATON_RUNTIME: NEWEST.path })) vi.stubEnv(name, value)
  const ledger = openTestLedger(project, NEWEST)
  const taskID = await ledger.addTask(TASK)
  const said: string[] = []
  const input = { client: createClient(said), directory, worktree: directory, $: undefined } as unknown as PluginInput
  const plugins: Hooks[] = []
  for (const path of sourceFiles(".opencode/plugins", ".ts")) {
    const [plugin] = Object.values<Plugin>(await import(join(REPOSITORY, path)))
    if (plugin) plugins.push(await plugin(input))
  }
  onTestFinished(async () => {
    for (const { dispose } of plugins) await dispose?.()
    vi.unstubAllEnvs()
  })
  /** Calls the hook of each plugin, one after the other, as OpenCode does. */
  const call = async <Name extends HookName>(name: Name, ...given: Parameters<NonNullable<Hooks[Name]>>) => {
    for (const hooks of plugins) await (hooks[name] as ((...all: unknown[]) => Promise<void>) | undefined)?.(...given)
  }
  return { call, plugins, ledger, said, taskID }
}

test(promised(["compaction.C7", "ledger.D4"], "on Node, too, task and compaction are there"), async () => {
  expect(process.versions.bun).toBeUndefined()
  const { call, plugins, ledger, said, taskID } = await openOnNode()
  expect(plugins).toHaveLength(6)
  await call("config", {})
  const tools = plugins.flatMap(({ tool = {} }) => Object.keys(tool))
  expect(tools.sort()).toEqual(["forget", "handoff_session", "learned", "read_session", "task_log", "task_show"])
  const created = { type: "session.created", properties: { info: { id: SESSION, time: { created: 1 } } } }
  await call("event", { event: created } as Parameters<NonNullable<Hooks["event"]>>[0])
  const parts = [textPart(`Task: ${taskID}\nNever touch the lexer.`)]
  const { info: message } = userMessage(parts, "msg_1")
  if (message.role === "user") await call("chat.message", { sessionID: SESSION }, { message, parts })

  const request = async (...messages: ReturnType<typeof userMessage>[]) => {
    await call("experimental.chat.messages.transform", {}, { messages })
    return JSON.stringify(messages)
  }
  // What comes too late for a request of a busy machine is in the next one.
  await eventually("the task in the request", async () =>
    (await request(userMessage([...parts], "msg_1"))).includes(TASK.title) ? true : undefined,
  )

  const output: { context: string[]; prompt?: string } = { context: [] }
  await call("experimental.session.compacting", { sessionID: SESSION }, output)
  for (const part of ["# Write the handoff", `## Task ${taskID}`, "Never touch the lexer."])
    expect(output.prompt).toContain(part)

  const summary = { summary: true, finish: "stop", time: { created: Date.now() } }
  const answer = assistantMessage("A summary.", summary, { id: "msg_3", parentID: "msg_2" })
  await eventually("the note in the request", async () =>
    (await request(userMessage([compactionPart()], "msg_2"), answer)).includes("(compaction 1 of this session)")
      ? true
      : undefined,
  )
  const recorded = async () => ((await ledger.messages(taskID)).length > 0 ? await ledger.messages(taskID) : undefined)
  const messages = await eventually("the record", recorded, ...LEDGER_WAIT_MS)
  expect(messages).toEqual(["Compaction 1: A summary."])
  expect(said.filter((line) => line.startsWith("error"))).toEqual([])
})
