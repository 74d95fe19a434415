import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { expect, test } from "vitest"
import { openCore } from "../../../.opencode/baton/core/core.ts"
import { createLiveStateHooks } from "../../../.opencode/baton/live-state/hooks.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

type Event = Parameters<NonNullable<Hooks["event"]>>[0]

test(promised("soak.B5", "a message alone, as an ended instance may still hear of, begins no live state"), async () => {
  const directory = temporaryFolder()
  const client = { app: { log: async () => undefined } }
  const core = openCore({ client, directory, worktree: directory } as unknown as PluginInput)
  const hooks = createLiveStateHooks(core)
  const receive = (type: string) => hooks.event?.({ event: { type, properties: {} } } as unknown as Event)
  // The module is loaded, so that the feature would begin within some turns of the event loop.
  await import("../../../.opencode/baton/live-state/feature.ts")
  await receive("message.updated")
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(core.state.current).toBeUndefined()
  await receive("session.status")
  await eventually("the live state", () => core.state.current)
  await hooks.dispose?.()
})
