import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"
import { readIn } from "../../support/opencode/pass-project.ts"

const DONE = { status: "completed", summary: "Done." }

describe("what a child changed", () => {
  test.each([
    ["completed", true],
    ["partial", false],
    ["failed", false],
  ])(promised("pass-over.B2", "with auto_apply and a return that says %s goes in: %s"), async (status, goesIn) => {
    const passes = openFeaturePasses({
      defaults: { auto_apply: true },
      agents: {
        coder: async ({ write, giveBack }) => {
          await write("made.txt", "made\n")
          await giveBack({ status, summary: "So far." })
        },
      },
    })
    const answer = await passes.pass()
    expect(existsSync(join(passes.root, "made.txt"))).toBe(goesIn)
    expect(answer).toContain(goesIn ? "in the worktree (applied)" : "1 of them are held back")
    await passes.feature.stop()
  })
})

describe("a pass that OpenCode's exit ends", () => {
  test(promised(["pass-over.A4", "pass-over.B3"], "is kept, and told at the next start's first idle"), async () => {
    const passes = openFeaturePasses({
      agents: {
        coder: async ({ write, signal }) => {
          await write("half.txt", "half\n")
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
        },
      },
    })
    // Not awaited, since OpenCode is about to end.
    void passes.pass()
    const id = await passes.reaches("waiting_for_return")
    await expect.poll(() => existsSync(join(passes.folder, id, "copy", "half.txt"))).toBe(true)
    await passes.feature.stop()
    expect(passes.recordOf(id).state).toMatchObject({ state: "returned", is_late: true, undecided: ["half.txt"] })
    expect(existsSync(join(passes.root, "half.txt"))).toBe(false)
  })
})

test(promised("pass-over.E4", "a pass that cannot be begun leaves neither its files nor its lock"), async () => {
  let isBroken = true
  const passes = openFeaturePasses({
    agents: { coder: async ({ giveBack }) => void (await giveBack(DONE)) },
    faults: (call) => (isBroken && call === "create" ? "InjectedFault" : undefined),
  })
  expect(await passes.pass()).toContain("E011")
  const [id = ""] = passes.ids()
  expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
  expect(existsSync(join(passes.folder, id, "work.lock"))).toBe(false)
  isBroken = false
  expect(await passes.pass()).toContain("coder → completed")
  expect(readIn(passes.root, "a.txt")).toBe("a\n")
  await passes.feature.stop()
})

test(
  promised(["pass-over.A3", "pass-over.C3"], "applying a rename asks for the file that it removes, too"),
  async () => {
    const passes = openFeaturePasses({
      agents: {
        coder: async ({ write, remove, giveBack }) => {
          await remove("a.txt")
          await write("moved/a.txt", "a\n")
          await giveBack(DONE)
        },
      },
    })
    expect(await passes.pass()).toContain("renamed moved/a.txt (from a.txt)")
    const asked: string[][] = []
    const context = {
      ...fakeToolContext(passes.opencode.rootID),
      ask: async ({ patterns }: { patterns: string[] }) => void asked.push(patterns),
    }
    await passes.feature.apply({ pass_over_id: passes.ids()[0] ?? "" }, context)
    expect(asked).toEqual([["moved/a.txt", "a.txt"]])
    await passes.feature.stop()
  },
)
