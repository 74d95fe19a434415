import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { expect, onTestFinished, test } from "vitest"
import { openCore } from "../../../.opencode/baton/core/core.ts"
import { createLiveStateHooks } from "../../../.opencode/baton/live-state/hooks.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { liveFiles, liveFolder } from "../../support/opencode/live-stream.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

type Event = Parameters<NonNullable<Hooks["event"]>>[0]

/** A new instance of OpenCode, whose client does not answer. */
const newInstance = (directory: string) => {
  const silent = () => new Promise(() => {})
  const client = { app: { log: async () => undefined }, session: { get: silent } }
  const core = openCore({ client, directory, worktree: directory } as unknown as PluginInput)
  const hooks = createLiveStateHooks(core)
  onTestFinished(async () => hooks.dispose?.())
  const receive = async (type: string, properties = {}) =>
    hooks.event?.({ event: { type, properties } } as unknown as Event)
  return { core, hooks, receive }
}

const read = (directory: string, name: string) => readFileSync(join(liveFolder(directory), name), "utf8")

test(
  promised(["soak.B5", "speed.G1"], "the first request begins live state; what comes before is kept for it"),
  async () => {
    const directory = temporaryFolder()
    const { core, hooks, receive } = newInstance(directory)
    const ask = (agent: unknown) => hooks["chat.params"]?.({ agent } as never, {} as never)
    // The module is loaded, so that the feature would begin within some turns of the event loop.
    await import("../../../.opencode/baton/live-state/feature.ts")
    await receive("message.updated")
    await receive("session.created", { info: { id: "ses_early" } })
    await receive("session.status", { sessionID: "ses_early", status: { type: "busy" } })
    await ask("title")
    await ask({ name: "title" })
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(core.state.current).toBeUndefined()
    await ask("build")
    await eventually("the state", () =>
      liveFiles(directory).find((name) => read(directory, name).includes("ses_early")),
    )
  },
)

test(promised("live-state.D2", "a folder that begins anew has one statefile while its last still ends"), async () => {
  const directory = temporaryFolder()
  const begin = async (id: string) => {
    const instance = newInstance(directory)
    await instance.receive("session.created", { info: { id } })
    await instance.receive("session.status", { sessionID: id, status: { type: "busy" } })
    await instance.hooks["chat.params"]?.({ agent: "build" } as never, {} as never)
    await eventually("the state", () => liveFiles(directory).find((name) => read(directory, name).includes(id)))
    return instance
  }
  const first = await begin("ses_first")
  // It waits for the answer of its client, also at its end.
  await first.receive("session.status", { sessionID: "ses_unknown", status: { type: "busy" } })
  await begin("ses_second")
  expect(liveFiles(directory)).toEqual([`opencode-${basename(directory)}.json`])
})
