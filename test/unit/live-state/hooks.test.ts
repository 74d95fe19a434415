import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { expect, onTestFinished, test, vi } from "vitest"
import { openCore } from "../../../.opencode/baton/core/core.ts"
import { createLiveStateHooks } from "../../../.opencode/baton/live-state/hooks.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

type Event = Parameters<NonNullable<Hooks["event"]>>[0]

test(promised("soak.B5", "a message alone, as an ended instance may still hear of, begins no live state"), async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const directory = temporaryFolder()
  const client = { app: { log: async () => undefined } }
  const hooks = createLiveStateHooks(openCore({ client, directory, worktree: directory } as unknown as PluginInput))
  const receive = (type: string) => hooks.event?.({ event: { type, properties: {} } } as unknown as Event)
  await receive("message.updated")
  expect(vi.getTimerCount()).toBe(0)
  await receive("session.status")
  expect(vi.getTimerCount()).toBe(1)
  await hooks.dispose?.()
  expect(vi.getTimerCount()).toBe(0)
})
