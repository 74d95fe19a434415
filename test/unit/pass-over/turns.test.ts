import { expect, test } from "vitest"
import { createTurns } from "../../../.opencode/baton/pass-over/pass.ts"
import { promised } from "../../requirements.ts"

test(promised("pass-over.D1", "passes that are made at the same time are counted one after the other"), async () => {
  const inTurn = createTurns()
  let made = 0
  const counted: number[] = []
  const failing = inTurn(() => Promise.reject(new Error("refused")))
  const rest = Array.from({ length: 3 }, () =>
    inTurn(async (next) => {
      counted.push(made)
      await Promise.resolve()
      made++
      next()
      // After `next` the next call may run.
      return made
    }),
  )
  await expect(failing).rejects.toThrow("refused")
  await Promise.all(rest)
  expect(counted).toEqual([0, 1, 2])
})

test(
  promised("pass-over.D1", "a pass that waits for its copy or for a person does not keep the next one waiting"),
  async () => {
    const inTurn = createTurns()
    let end = (): void => {}
    const long = inTurn((next) => {
      next()
      return new Promise<string>((resolve) => {
        end = () => resolve("long")
      })
    })
    expect(await inTurn(async () => "short")).toBe("short")
    end()
    expect(await long).toBe("long")
  },
)
