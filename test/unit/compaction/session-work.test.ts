import { expect, test } from "vitest"
import { createSessionWork } from "../../../.opencode/baton/compaction/turns.ts"
import { promised } from "../../requirements.ts"

const withResolvers = () => {
  let settle: { resolve(): void; reject(error: Error): void } | undefined
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  if (!settle) throw new Error("a promise runs its executor at once")
  return { promise, ...settle }
}

const inTurn = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

test(
  promised("soak.B4", "a session's work is over after the last of it, what began meanwhile and failed too"),
  async () => {
    const work = createSessionWork()
    const first = withResolvers()
    const second = withResolvers()
    let isOver = false
    const began = work.begin("ses_1", first.promise)
    void work.over("ses_1").then(() => {
      isOver = true
    })
    work.begin("ses_1", second.promise).catch(() => {})
    first.resolve()
    await began
    await inTurn()
    expect(isOver).toBe(false)
    second.reject(new Error("the record failed"))
    await inTurn()
    expect(isOver).toBe(true)
  },
)

test(promised("soak.B4", "a session without work, or with another session's, is over at once"), async () => {
  const work = createSessionWork()
  void work.begin("ses_other", new Promise(() => {}))
  await work.over("ses_1")
})
