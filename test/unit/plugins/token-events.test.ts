import { createHook } from "node:async_hooks"
import { join } from "node:path"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"
import { expect, onTestFinished, test } from "vitest"
import { promised } from "../../requirements.ts"
import { sourceFiles } from "../../support/files/source-files.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"

type EventInput = Parameters<NonNullable<Hooks["event"]>>[0]

/** OpenCode's events for one token: a delta, and on older versions also the part that contains it. */
const TOKEN_EVENTS = [
  { type: "message.part.delta", properties: { sessionID: "ses_1", messageID: "msg_1", partID: "prt_1", delta: "x" } },
  { type: "message.part.updated", properties: { part: textPart("x"), delta: "x" } },
]

/** Counts the promises that `work` creates before it returns. */
const countPromises = (work: () => void): number => {
  let count = 0
  const note = (_id: number, type: string): void => {
    count += Number(type === "PROMISE")
  }
  const hook = createHook({ init: note }).enable()
  try {
    work()
  } finally {
    hook.disable()
  }
  return count
}

/** The hooks of each plugin file, in a project that uses every feature. */
const loadPlugins = async (): Promise<[path: string, hooks: Hooks][]> => {
  const directory = temporaryFolder()
  // A pass of an earlier process, so that the feature is loaded at the first request.
  const unfinished = "state/pass-over/unfinished/pass_20260101102030000_abcd"
  writeFiles(join(directory, ".opencode"), { "pass-over.json": "{}", [unfinished]: "" })
  const client = { app: { log: async () => ({ data: true }) } }
  const input = { client, directory, worktree: directory, $: undefined } as unknown as PluginInput
  const plugins = await Promise.all(
    sourceFiles(".opencode/plugins", ".ts").map(async (path): Promise<[string, Hooks]> => {
      const [plugin] = Object.values<Plugin>(await import(join(REPOSITORY, path)))
      if (!plugin) throw new Error(`${path} exports no plugin`)
      return [path, await plugin(input)]
    }),
  )
  onTestFinished(async () => {
    for (const [, { dispose }] of plugins) await dispose?.()
  })
  return plugins
}

test(promised("speed.G3", "a token costs no plugin a promise beside the one that its hook returns"), async () => {
  const plugins = await loadPlugins()
  const request = { messages: [userMessage([textPart("Hello.")])] }
  // From now on the feature of a pass is loaded and receives every event.
  for (const [, hooks] of plugins) await hooks["experimental.chat.messages.transform"]?.({}, request)
  expect(plugins).toHaveLength(6)
  for (const [path, { event }] of plugins) {
    expect(event, path).toBeDefined()
    for (const token of TOKEN_EVENTS) {
      const made = countPromises(() => void event?.({ event: token } as unknown as EventInput))
      expect(made, `${path}, ${token.type}`).toBeLessThanOrEqual(1)
    }
  }
  const compacted = { type: "session.compacted", properties: { sessionID: "ses_1" } }
  const [[, compaction] = []] = plugins
  const made = countPromises(() => void compaction?.event?.({ event: compacted } as unknown as EventInput))
  expect(made, "an event that is wanted").toBeGreaterThan(1)
})
