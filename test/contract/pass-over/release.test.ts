import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"

const SECRET = "what only the user may release"

/** A project whose user is asked before a result is returned; `user.says` is the answer. */
const openAsking = () => {
  const passes = openFeaturePasses({
    defaults: { auto_return: false },
    agents: {
      coder: async ({ write, giveBack }) => {
        await write("made.txt", "made\n")
        await giveBack({ status: "completed", summary: SECRET })
      },
    },
  })
  const user = { says: "no", asked: 0 }
  const context = () => ({
    ...fakeToolContext(passes.opencode.rootID),
    ask: async ({ permission }: { permission: string }) => {
      if (permission !== "pass_over_result") return
      user.asked++
      if (user.says === "no") throw new Error("rejected")
    },
  })
  const told = () => JSON.stringify(passes.opencode.messagesOf(passes.opencode.rootID))
  return { ...passes, user, context, told }
}

describe("a result that the user has not released", () => {
  test(promised("pass-over.A6", "comes back by no other tool, until the user says yes"), async () => {
    const { pass, feature, ids, context, user } = openAsking()
    expect(await pass({}, context())).toContain("the user does not release the result of coder")
    const [id = ""] = ids()
    for (const tool of [feature.status, feature.apply]) {
      const answer = await tool({ pass_over_id: id }, context())
      expect(answer).toContain("the user does not release the result of coder")
      expect(answer).not.toContain(SECRET)
    }
    user.says = "yes"
    expect(await feature.status({ pass_over_id: id }, context())).toContain(SECRET)
    expect(user.asked).toBe(4)
    user.says = "no"
    expect(await feature.status({ pass_over_id: id }, context())).toContain(SECRET)
    expect(await feature.apply({ pass_over_id: id }, context())).toContain("applied")
    await feature.stop()
  })

  test(
    promised(["pass-over.A4", "pass-over.A6"], "is announced without its content, and asked for by its status"),
    async () => {
      const { pass, feature, context, user, told, reaches } = openAsking()
      await pass({ async: true }, context())
      const id = await reaches("returned")
      await expect.poll(told).toContain(`[result of ${id}]`)
      expect(told()).not.toContain(SECRET)
      expect(told()).toContain("pass_over_status")
      expect(user.asked).toBe(0)
      user.says = "yes"
      expect(await feature.status({ pass_over_id: id }, context())).toContain(SECRET)
      await feature.stop()
    },
  )
})
