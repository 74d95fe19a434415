import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { type AgentTurn, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"
import { gitIn, readIn, writeFiles } from "../../support/opencode/pass-project.ts"

const DONE = { status: "completed", summary: "Done." }

/** The child's copy of the project, found by the path to which its tool calls are moved. */
const copyOf = async (use: AgentTurn["use"], root: string): Promise<string> =>
  dirname(String((await use("read", { filePath: join(root, "a.txt") })).filePath))

describe("what a pass cannot carry", () => {
  test(
    promised(["pass-over.B1", "pass-over.B3"], "is the history of a repository that the child made, and not its files"),
    async () => {
      const passes = openFeaturePasses({
        agents: {
          coder: async ({ use, giveBack }) => {
            const app = join(await copyOf(use, passes.root), "app")
            writeFiles(app, { "index.ts": "1\n", ".gitignore": "built\n", "built/x": "x", "lib/deep.ts": "2\n" })
            gitIn(app, "init", "-q")
            gitIn(app, "add", "index.ts")
            gitIn(app, "commit", "-q", "-m", "made")
            gitIn(join(app, "lib"), "init", "-q")
            await giveBack(DONE)
          },
        },
      })
      const answer = await passes.pass()
      for (const path of ["app/index.ts", "app/.gitignore", "app/lib/deep.ts"])
        expect(answer).toContain(`added ${path}`)
      expect(answer).not.toContain("built")
      expect(answer).toContain("Not carried (2):\n- app/.git: ")
      const [id = ""] = passes.ids()
      await passes.feature.apply({ pass_over_id: id }, fakeToolContext(passes.opencode.rootID))
      expect(readIn(passes.root, "app/lib/deep.ts")).toBe("2\n")
      expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
      await passes.feature.stop()
    },
  )

  test(
    promised(["pass-over.B1", "pass-over.B3"], "is named, and stays in the copy when it is nowhere else"),
    async () => {
      const passes = openFeaturePasses({
        agents: {
          coder: async ({ use, write, giveBack }) => {
            const copy = await copyOf(use, passes.root)
            writeFileSync(Buffer.concat([Buffer.from(`${copy}/`), Buffer.from([0xff, 0xfe]), Buffer.from(".txt")]), "x")
            await write("named.txt", "n\n")
            await giveBack(DONE)
          },
        },
      })
      const answer = await passes.pass()
      const [id = ""] = passes.ids()
      expect(answer).toContain("its name is not UTF-8")
      expect(answer).toContain(`stays in .opencode/state/pass-over/${id}/copy`)
      await passes.feature.apply({ pass_over_id: id }, fakeToolContext(passes.opencode.rootID))
      expect(readdirSync(join(passes.folder, id, "copy")).join()).toContain("\uFFFD")
      await passes.feature.stop()
    },
  )

  test(promised("pass-over.B2", "is told to the child when the project has it and the copy does not"), async () => {
    let order = ""
    const passes = openFeaturePasses({
      agents: {
        coder: async ({ context, giveBack }) => {
          order = context
          await giveBack(DONE)
        },
      },
    })
    mkdirSync(join(passes.root, "nested"))
    gitIn(join(passes.root, "nested"), "init", "-q")
    writeFiles(join(passes.root, "nested"), { f: "x" })
    expect(await passes.pass()).not.toContain("nested")
    expect(order).toContain("nested/: it is a git repository of its own")
    await passes.feature.stop()
  })
})
