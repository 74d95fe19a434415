import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"

const RETURN = { status: "completed", summary: "Done." }

describe("a subagent whose copy cannot be made", () => {
  test(
    promised(["pass-over.B3", "pass-over.E1"], "is ended, and its originator is told why and what to do"),
    async () => {
      const refusals: string[] = []
      const passes = openFeaturePasses({
        agents: {
          coder: async (turn) => {
            await turn.write("b.txt", "b\n").catch((error: unknown) => refusals.push(String(error)))
            turn.signal.throwIfAborted()
            await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }))
          },
        },
      })
      // Git works with this folder, but copying it as a file fails.
      mkdirSync(join(passes.root, ".git", "shallow"))
      const answer = await passes.pass()
      expect(answer).toContain("E011")
      expect(answer).toContain("The subagent's files could not be set up")
      expect(answer).toMatch(/Child session: ses_/)
      expect(refusals).toEqual([expect.stringContaining("There is nothing to work in: copying the files of pass")])
      const [id = ""] = passes.ids()
      expect(passes.recordOf(id).state.state).toBe("returned")
      expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
      expect(existsSync(join(passes.root, "b.txt"))).toBe(false)
      expect(passes.opencode.turns()).toBe(1)
    },
  )

  test(promised("pass-over.B1", "and that does nothing but answer needs none"), async () => {
    const passes = openFeaturePasses({ agents: { coder: async (turn) => void (await turn.giveBack(RETURN)) } })
    const answer = await passes.pass()
    expect(answer).toContain("coder → completed")
    const [id = ""] = passes.ids()
    expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
    expect(existsSync(join(passes.folder, id, "files"))).toBe(false)
  })
})
