import { expect, test } from "vitest"
import { parseWorkOptions } from "../../../.opencode/baton/work/options.ts"
import { limitOf, noteLook } from "../../../.opencode/baton/work/run.ts"
import { promised } from "../../requirements.ts"

const SECOND = 1_000
const MINUTE = 60 * SECOND
const options = parseWorkOptions([])
const LIVE = { agent: "worker", compactions: 0, contextTokens: 0, steps: 0, retry: undefined }
const retryUntil = (ms: number) => ({
  ...{ message: "429", attempt: 1, since: "", nextAt: ms === 0 ? "" : new Date(ms).toISOString() },
})
const watch = () => ({ startedMs: 0, progressMs: 0, lookedMs: 0, live: LIVE, retry: undefined })
type Looked = Parameters<typeof noteLook>[0]
const limitAt = (watched: Looked, now: number) => limitOf({ options, nowMs: () => now }, watched)

test(promised("work.B1", "one brief failure of the provider before a quiet tool does not end an agent"), () => {
  const watched: Looked = { ...watch(), lookedMs: 4 * MINUTE - SECOND }
  noteLook(watched, { ...LIVE, retry: retryUntil(4 * MINUTE + 10 * SECOND) }, 4 * MINUTE)
  for (let now = 4 * MINUTE + SECOND; now < 19 * MINUTE; now += SECOND) {
    noteLook(watched, LIVE, now)
    expect(limitAt(watched, now), `${now}`).toBeUndefined()
  }
  expect(limitAt(watched, 21 * MINUTE)).toMatchObject({ kind: "stuck" })
})

test(promised("work.B1", "a provider that fails again and again ends an agent five minutes after the first"), () => {
  const watched: Looked = watch()
  let now = 0
  for (; now < 10 * MINUTE; now += SECOND) noteLook(watched, LIVE, now)
  for (; limitAt(watched, now)?.kind !== "provider" && now < 60 * MINUTE; now += SECOND) {
    const isBusy = (now / SECOND) % 30 >= 2
    noteLook(watched, isBusy ? LIVE : { ...LIVE, retry: retryUntil(0) }, now)
  }
  expect(now).toBe(15 * MINUTE + SECOND)
})

test(promised("work.B1", "a provider that names a far time is waited for until it is over"), () => {
  const watched: Looked = watch()
  noteLook(watched, { ...LIVE, retry: retryUntil(3 * MINUTE) }, 0)
  for (let now = SECOND; now <= 4 * MINUTE; now += SECOND) noteLook(watched, LIVE, now)
  expect(watched.retry, "its next try may go on").toBeDefined()
  noteLook(watched, LIVE, 4 * MINUTE + SECOND)
  expect(watched.retry).toBeUndefined()
})

test(promised("work.B1", "the time in which the machine was suspended ends no agent"), () => {
  const watched: Looked = watch()
  const suspended = 8 * 60 * MINUTE
  for (let now = 0; now <= 19 * MINUTE; now += SECOND) noteLook(watched, LIVE, now)
  noteLook(watched, { ...LIVE, retry: retryUntil(0) }, 19 * MINUTE + SECOND)
  const woken = 19 * MINUTE + suspended
  noteLook(watched, { ...LIVE, retry: retryUntil(0) }, woken)
  expect(limitAt(watched, woken)).toBeUndefined()
  expect(limitAt(watched, woken + 59 * SECOND)).toBeUndefined()
  expect(limitAt(watched, woken + 2 * MINUTE), "awake, it is silent for 20 minutes").toBeDefined()
  // Its words came before the first look.
  watched.progressMs = woken + suspended
  noteLook(watched, LIVE, woken + suspended)
  expect(watched.progressMs).toBe(woken + suspended)
})
